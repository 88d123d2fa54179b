"""Errors on a repository before and after two of its own reports calibrated the estimates.

    python tests/benchmarks/bench_calibrate.py [ROWS.jsonl]

A user's place is taken by each repository with four designs or more. The coefficients are first fitted to all other
repositories; these give the errors before. Then two designs of the repository calibrate them, as `fpgaprune calibrate`
does, and give the errors on its remaining designs: with up to 15 pairs of designs, of which the table shows the median,
and for each design with the two that are most like it, by family, clock and what its look-up tables are made of.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from fpgaprune.errors import EstimateError  # noqa: E402
from fpgaprune.estimate import (  # noqa: E402  # noqa: E402  # noqa: E402
    CALIBRATED,
    Calibration,
    ReportedDesign,
    build,
    calibration,
    can_be_priced,
    recalibrate,
    recalibration_errors,
    row_features,
    total_hardware,
)
from fpgaprune.measure import LABELS  # noqa: E402
from tests.benchmarks.calibration_rows import Row, fit_rows, read_rows  # noqa: E402
from tests.benchmarks.leave_out import family  # noqa: E402

FEWEST_DESIGNS = 4
MOST_PAIRS = 15
FIGURES = ("csynth.lut", "csynth.ff", "synth.lut", "synth.ff")


def out(text: str = "") -> None:
    sys.stdout.write(text + "\n")


def reported(row: Row) -> ReportedDesign | None:
    """What `fpgaprune calibrate` would read of `row`; None without a price or a report of the whole design."""
    if not row["truth"].get("csynth") or not all(can_be_priced(layer.get("class")) for layer in row["layers"]):
        return None
    try:
        design = row_features(row)
    except EstimateError:
        return None
    layers = {
        features.name: _counts(layer["truth"])
        for features, layer in zip(design.layers, row["layers"], strict=True)
        if layer.get("truth")
    }
    return ReportedDesign(design, _counts(row["truth"]["csynth"]), _counts(row["truth"].get("vsynth") or {}), layers)


def _counts(truth: Mapping[str, Any]) -> dict[str, float]:
    return {name: truth[LABELS[name]] for name in CALIBRATED if truth.get(LABELS[name]) is not None}


def own_designs(rows: Sequence[Row]) -> dict[str, list[ReportedDesign]]:
    """Repository -> its designs, each one once, of repositories that have enough of them."""
    found: dict[str, list[ReportedDesign]] = {}
    for row in rows:
        if row.get("clean") and not row.get("dup_of") and (one := reported(row)):
            found.setdefault(family(row), []).append(one)
    return {repo: designs for repo, designs in found.items() if len(designs) >= FEWEST_DESIGNS}


def errors_with_any_two(designs: Sequence[ReportedDesign], start: Calibration) -> dict[str, float]:
    """Figure -> median over pairs of the median error on the designs that are not of the pair."""
    pairs = list(combinations(range(len(designs)), 2))
    if len(pairs) > MOST_PAIRS:
        pairs = [pairs[i] for i in np.random.default_rng(0).choice(len(pairs), MOST_PAIRS, replace=False)]
    found: dict[str, list[float]] = {}
    for pair in pairs:
        rest = [one for at, one in enumerate(designs) if at not in pair]
        fitted = recalibrate([designs[at] for at in pair], start)
        for figure, by_design in recalibration_errors(rest, fitted).items():
            found.setdefault(figure, []).append(median(by_design.values()))
    return {figure: median(values) for figure, values in found.items()}


def errors_with_the_nearest(designs: Sequence[ReportedDesign], start: Calibration) -> dict[str, float]:
    """Figure -> median error of a design after the two that are most like it calibrated the coefficients."""
    found: dict[str, list[float]] = {}
    for one in designs:
        others = sorted((x for x in designs if x is not one), key=lambda x: distance(one, x, start))
        for figure, by_design in recalibration_errors([one], recalibrate(others[:2], start)).items():
            found.setdefault(figure, []).extend(by_design.values())
    return {figure: median(values) for figure, values in found.items()}


def distance(one: ReportedDesign, other: ReportedDesign, start: Calibration) -> float:
    """How unlike two designs are: in family, in clock, and in what their LUTs are made of. No report is read."""
    clocks = abs(np.log(one.design.clock_ns / other.design.clock_ns)) + (one.design.part[:4] != other.design.part[:4])
    mine, theirs = (_kinds(x, start) for x in (one, other))
    return float(clocks) + sum(abs(mine.get(name, 0.0) - theirs.get(name, 0.0)) for name in {*mine, *theirs})


def _kinds(one: ReportedDesign, start: Calibration) -> dict[str, float]:
    made = total_hardware(build(one.design)).lut
    cost = {name: amount * start.rates.lut[name][0] for name, amount in made.items()}
    return {name: each / max(sum(cost.values()), 1.0) for name, each in cost.items()}


def main(arguments: Sequence[str]) -> int:
    path = Path(arguments[0]) if arguments else ROOT.parent / "shared" / "ground_truth" / "calibration.jsonl"
    if not path.is_file():
        out(f"skipped: no calibration rows at {path}")
        return 0
    rows = [row for row in read_rows(path) if row.get("standard_templates") and row.get("layers")]
    start = calibration().coefficients
    gains: dict[str, list[tuple[float, float]]] = {figure: [] for figure in FIGURES}
    out("Median errors: before, with any two of its own reports, with the two of designs most like it.\n")
    out(f"| repository | designs | {' | '.join(FIGURES)} |")
    out("|---|---|" + "---|" * len(FIGURES))
    for repo, designs in sorted(own_designs(rows).items()):
        others = Calibration(fit_rows([row for row in rows if family(row) != repo], start), {})
        before = recalibration_errors(designs, others)
        any_two, nearest = errors_with_any_two(designs, others), errors_with_the_nearest(designs, others)
        cells = []
        for figure in FIGURES:
            if len(before.get(figure, ())) < FEWEST_DESIGNS:
                cells.append("-")
                continue
            was = median(before[figure].values())
            gains[figure].append((any_two[figure] / was, nearest[figure] / was))
            cells.append(f"{was:.3f}, {any_two[figure]:.3f}, {nearest[figure]:.3f}")
        out(f"| {repo} | {len(designs)} | {' | '.join(cells)} |")
    middle = [f"x{median(a for a, _ in gains[f]):.2f}, x{median(n for _, n in gains[f]):.2f}" for f in FIGURES]
    out(f"| after / before, median over repositories | | {' | '.join(middle)} |")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
