"""Predictions for designs that are described by counts, one line of JSON for each, as in `calibration.jsonl`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from fpgaprune.errors import EstimateError, TargetError
from fpgaprune.estimate.coefficients import Calibration, calibration
from fpgaprune.estimate.compose import build
from fpgaprune.estimate.from_row import row_features
from fpgaprune.estimate.hardware import stage_figures
from fpgaprune.estimate.pricing import total_hardware
from fpgaprune.files import parse_json
from fpgaprune.measure import LABELS
from fpgaprune.target import find_part

# A product that finds no DSP slice takes so many look-up tables (70 and 77 in designs of two repositories).
_SPILLED_LUT = 70


@dataclass(frozen=True, slots=True)
class Refusal:
    """A row that was not priced.

    Attributes:
        line: number of its line.
        id: its id; None if it has none.
        reason: why, in one line.
    """

    line: int
    id: str | None
    reason: str


def predict_row(row: Mapping[str, object], calibrated: Calibration | None = None) -> dict[str, Any]:
    """Return the prediction for one row, as `{"id", "csynth": {"LUT", ...}, "synth": {...}}`; its `truth` is not read.

    Logic synthesis is said to spill: products beyond the DSPs of the row's part are multipliers in look-up tables.
    A layer that cannot be priced is left out; `"left_out"` then holds sentences on what the figures lack.

    Raises:
        EstimateError: a field of the row is missing or malformed.
    """
    design = row_features(row)
    rates = (calibrated or calibration()).rates
    parts = build(design)
    figures = stage_figures(total_hardware(parts), rates)
    spilled = max(figures["synth"]["dsp"] - _dsps_of(design.part), 0.0)
    figures["synth"]["dsp"] -= spilled
    figures["synth"]["lut"] += spilled * _SPILLED_LUT
    made: dict[str, Any] = {
        "id": design.name,
        "csynth": {
            **{LABELS[k]: round(v) for k, v in figures["csynth"].items()},
            "latency_cycles": parts.latency_cycles,
            "interval_cycles": parts.interval_cycles,
        },
        "synth": {LABELS[k]: round(v) for k, v in figures["synth"].items()},
    }
    return made | ({"left_out": list(design.left_out)} if design.left_out else {})


@cache
def _dsps_of(part: str) -> float:
    """Return the DSP slices of the part with this order number; infinite if it is unknown."""
    try:
        there = find_part(part).dsp
    except TargetError:
        return math.inf
    return math.inf if there is None else there


def estimate_rows(
    lines: Iterable[str], calibrated: Calibration | None = None
) -> tuple[list[dict[str, Any]], list[Refusal]]:
    """Return the predictions for the rows in `lines`, in their order, and the refused rows; empty lines are skipped."""
    predictions: list[dict[str, Any]] = []
    refusals: list[Refusal] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        name: str | None = None
        try:
            row = parse_json(line)
            if not isinstance(row, dict):
                raise EstimateError(f"line {number} holds {type(row).__name__}; wanted an object")
            name = row["id"] if isinstance(row.get("id"), str) else None
            predictions.append(predict_row(row, calibrated))
        except EstimateError as error:
            refusals.append(Refusal(number, name, str(error)))
        except ValueError as error:
            refusals.append(Refusal(number, name, f"line {number} is not JSON: {error}"))
    return predictions, refusals


def estimate_designs_file(
    path: Path, calibrated: Calibration | None = None
) -> tuple[list[dict[str, Any]], list[Refusal]]:
    """Estimate the designs in the lines of a file, as `estimate_rows` does.

    Raises:
        EstimateError: the file cannot be read.
    """
    try:
        with open(path, encoding="utf-8") as handle:
            return estimate_rows(handle, calibrated)
    except (OSError, UnicodeDecodeError) as error:
        raise EstimateError(f"designs file {path} cannot be read: {error}") from error
