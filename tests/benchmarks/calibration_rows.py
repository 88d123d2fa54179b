"""The rows of published vendor reports as equations, to which the shipped coefficients are fitted."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from fpgaprune.errors import EstimateError
from fpgaprune.estimate import (
    CALIBRATED,
    Coefficient,
    DesignFeatures,
    Equation,
    Hardware,
    LayerFeatures,
    Parts,
    build,
    can_be_priced,
    left_of,
    row_features,
    total_hardware,
)
from fpgaprune.estimate.fit import fit
from fpgaprune.measure import LABELS

Row = Mapping[str, Any]
# The parts of a report's top level that stand between its processes.
_TOP = ("FIFO", "Expression", "Multiplexer", "Register")
Piece = tuple[str, Hardware, Mapping[str, Any]]


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a .jsonl file."""
    return [json.loads(line) for line in path.read_text().splitlines() if line.strip()]


def equations(rows: Iterable[Row]) -> dict[str, list[Equation]]:
    """The equations that `rows` give, by resource (`lut`, `ff`)."""
    found: dict[str, list[Equation]] = {name: [] for name in CALIBRATED}
    for row in rows:
        if not _trusted(row):
            continue
        # A row with a recurrent layer cannot be priced as a whole; its other layers can.
        priced = [layer for layer in row["layers"] if can_be_priced(layer.get("class"))]
        whole = len(priced) == len(row["layers"])
        try:
            design = row_features(row if whole else {**row, "layers": priced})
        except EstimateError:
            continue
        pieces = _pieces(row, design, build(design)) if whole else _layers(priced, design, build(design))
        for what, hardware, truth in pieces:
            for resource in CALIBRATED:
                if (actual := truth.get(LABELS[resource])) is not None:
                    quantities = getattr(hardware, resource)
                    found[resource].append(Equation(row["repo"], f"{row['id']}: {what}", quantities, actual))
    return found


def fit_rows(rows: Sequence[Row], start: Mapping[str, Coefficient]) -> dict[str, Coefficient]:
    """The coefficients fitted to `rows`, by name; `start` gives names, priors, units and meanings."""
    found = equations(rows)
    values = {name: value for resource in CALIBRATED for name, value in fit(found[resource], start, resource).items()}
    fitted = {name: replace(c, value=values.get(name, c.value)) for name, c in start.items()}
    shares = fit(_remains(rows, fitted), start, "synth")
    return {name: replace(c, value=shares.get(name, c.value)) for name, c in fitted.items()}


def _remains(rows: Iterable[Row], fitted: Mapping[str, Coefficient]) -> list[Equation]:
    """What logic synthesis left of what the HLS report said: one equation for LUTs and one for flip-flops a design.

    The report's total is split in the proportions of the model: the error of the model's own total does not matter.
    """
    values = {name: c.value for name, c in fitted.items()}
    found = []
    for row in rows:
        before, after = row["truth"].get("csynth"), row["truth"].get("vsynth")
        if not _trusted(row) or not before or not after:
            continue
        if not all(can_be_priced(layer.get("class")) for layer in row["layers"]):
            continue
        try:
            whole = total_hardware(build(row_features(row)))
        except EstimateError:
            continue
        for resource in CALIBRATED:
            key = LABELS[resource]
            what = f"{row['id']}: {key}"
            found.append(left_of(row["repo"], what, whole, resource, values, before[key], after[key]))
    return found


def _trusted(row: Row) -> bool:
    """Rows on released templates whose layers have their own figures, each design once."""
    return bool(row.get("layers") and row.get("standard_templates") and row.get("part") and not row.get("dup_of"))


def used_rows(rows: Iterable[Row]) -> list[tuple[str, str, str, int]]:
    """Id, repository, commit and number of equations of every row that the fit reads."""
    used = []
    for row in rows:
        count = sum(len(found) for found in equations([row]).values())
        if count:
            used.append((row["id"], row["repo"], row["commit"], count))
    return used


def _layers(layers: Sequence[Row], design: DesignFeatures, parts: Parts) -> list[Piece]:
    """Name, hardware and report of every layer that the report knows by name."""
    known = zip(layers, design.layers, parts.layers, strict=True)
    return [(features.name, hardware, layer["truth"]) for layer, features, hardware in known if layer.get("truth")]


def _pieces(row: Row, design: DesignFeatures, parts: Parts) -> list[Piece]:
    """Name, hardware and report of every layer, of unnamed dense layers, and of what lies between the layers."""
    pieces = _layers(row["layers"], design, parts)
    missing = [i for i, layer in enumerate(row["layers"]) if layer["class"] == "Dense" and not layer.get("truth")]
    pieces += _unnamed_dense(row, design, parts, missing)
    breakdown = (row["truth"].get("csynth") or {}).get("breakdown") or {}
    # Between processes that hand on all numbers at once, the top level chooses and registers for every number.
    kinds = ("Register",) if design.pipelined else ("FIFO",) if design.streams else _TOP
    found = {key: [(breakdown.get(kind) or {}).get(key) for kind in kinds] for key in ("LUT", "FF")}
    wanted = {key: sum(v for v in values if v is not None) for key, values in found.items() if values[0] is not None}
    pieces.append(("between", parts.between, {"FF": wanted.get("FF")} if design.pipelined else wanted))
    return pieces


def _unnamed_dense(row: Row, design: DesignFeatures, parts: Parts, missing: Sequence[int]) -> list[Piece]:
    """Dense layers whose modules bear no layer's name; they match by size where there are as many modules as layers."""
    named = {layer["truth"]["module"] for layer in row["layers"] if layer.get("truth") and layer["truth"].get("module")}
    modules = [m for name, m in (row.get("modules") or {}).items() if name.startswith("dense_") and name not in named]
    if not missing or len(modules) != len(missing):
        return []
    by_size = sorted(missing, key=lambda i: _nonzero(design.layers[i]))
    modules.sort(key=lambda m: m["LUT"])
    return [(design.layers[i].name, parts.layers[i], m) for i, m in zip(by_size, modules, strict=True)]


def _nonzero(layer: LayerFeatures) -> int:
    return layer.products.nonzero if layer.products else 0
