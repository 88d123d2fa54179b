"""How often the laws of cycles and DSPs give what the report of a layer says.

    python tests/benchmarks/bench_laws.py [ROWS.jsonl]

A layer counts once, on released templates. Cycles of a stream are those of one pixel, without what the reuse factor
takes where the law is about the rest.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from fpgaprune.errors import EstimateError  # noqa: E402
from fpgaprune.estimate import (  # noqa: E402
    DesignFeatures,
    Hardware,
    LayerFeatures,
    build,
    row_features,
)
from tests.benchmarks.calibration_rows import Row, read_rows  # noqa: E402
from tests.benchmarks.leave_out import family  # noqa: E402

_NARROW = 8


@dataclass(frozen=True)
class Seen:
    """One layer, or design, under one law: what the law gives and what the report says."""

    law: str
    repo: str
    design: str
    given: float
    reported: float


def out(text: str = "") -> None:
    sys.stdout.write(text + "\n")


def seen_in(row: Row) -> Iterator[Seen]:
    """What the laws give for the layers of `row` and for the whole."""
    try:
        design = row_features(row)
    except EstimateError:
        return
    parts = build(design)
    for spec, layer, hardware in zip(row["layers"], design.layers, parts.layers, strict=True):
        truth = spec.get("truth")
        if truth and truth.get("lat_max") is not None:
            for law, given, reported in _of_layer(design, layer, hardware, truth):
                yield Seen(law, family(row), row["id"], given, reported)
    whole = row["truth"].get("csynth") or {}
    if not design.streams and not design.pipelined and whole.get("II"):
        law = "parallel, dataflow: interval" if design.overlaps else "parallel, no pragma: interval"
        yield Seen(law, family(row), row["id"], parts.interval_cycles, whole["II"])


def _of_layer(
    design: DesignFeatures, layer: LayerFeatures, hardware: Hardware, truth: dict[str, Any]
) -> Iterator[tuple[str, float, float]]:
    pixels = layer.positions_in
    given, reported = round(hardware.latency_cycles / pixels), round(truth["lat_max"] / pixels)
    folded = layer.strategy == "resource" and layer.reuse > 1
    if design.streams and pixels > 1 and layer.family == "conv":
        if folded:
            yield (
                "stream, resource: cycles of a pixel beyond the reuse factor",
                given - layer.reuse,
                reported - layer.reuse,
            )
        elif design.tool == "vivado" and layer.reuse > 1:
            yield "stream, latency, reuse, Vivado: cycles of a pixel", given, reported
        elif design.tool == "vitis" and layer.reuse == 1:
            yield "stream, reuse 1, Vitis: cycles of a pixel", given, reported
    if design.streams and pixels > 1 and layer.family == "pooling":
        yield "stream, pooling: cycles of a pixel", given, reported
    if design.pipelined and layer.family in ("activation", "scale"):
        yield "parallel: cycles of an activation or a scale", round(hardware.latency_cycles), truth["lat_max"]
    if folded and max(layer.inp.bits, layer.weight_bits) <= _NARROW:
        yield f"resource, operands of 8 bits or fewer, {design.tool}: DSPs", round(hardware.dsp), truth["DSP"]


def main(arguments: Sequence[str]) -> int:
    path = Path(arguments[0]) if arguments else ROOT.parent / "shared" / "ground_truth" / "calibration.jsonl"
    if not path.is_file():
        out(f"skipped: no calibration rows at {path}")
        return 0
    laws: dict[str, list[Seen]] = {}
    for row in read_rows(path):
        if row.get("standard_templates") and row.get("layers") and not row.get("dup_of"):
            for one in seen_in(row):
                laws.setdefault(one.law, []).append(one)
    out("| law | seen | designs | repositories | exact | within one | within 20 % |")
    out("|---|---|---|---|---|---|---|")
    for law, found in sorted(laws.items()):
        away = [abs(one.given - one.reported) for one in found]
        near = sum(off <= 0.2 * max(one.reported, 1) for off, one in zip(away, found, strict=True))
        places = len({one.design for one in found}), len({one.repo for one in found})
        counts = len(found), *places, away.count(0), sum(off <= 1 for off in away), near
        out(f"| {law} | {' | '.join(map(str, counts))} |")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
