"""Errors of the estimator on repositories that were left out of its fit.

    python tests/benchmarks/bench_estimate.py [ROWS.jsonl] [--write] [--plot FILE]

ROWS.jsonl is by default `shared/ground_truth/calibration.jsonl` beside the checkout. `--write` puts the fitted
coefficients, the intervals and the list of rows into `hw/calibration`; `--plot` draws predicted against actual.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from fpgaprune.estimate import (  # noqa: E402
    Calibration,
    calibration,
    predict_row,
    write_calibration,
)
from tests.benchmarks.calibration_rows import fit_rows, read_rows, used_rows  # noqa: E402
from tests.benchmarks.leave_out import covered_by_others, family, interval_factors, predict_left_out, ratios  # noqa: E402

GOALS = {
    "csynth.lut": (0.10, 0.35), "csynth.ff": (0.18, 0.5), "csynth.dsp": (0.03, 0.3), "csynth.bram18": (0.02, 0.5),
    "csynth.latency_cycles": (0.07, 0.3), "csynth.interval_cycles": (0.03, 0.3),
    "synth.lut": (0.15, 0.45), "synth.ff": (0.18, 0.5), "synth.dsp": (0.05, 0.5),
}  # fmt: skip


def out(text: str = "") -> None:
    sys.stdout.write(text + "\n")


def percentile(values: Sequence[float], q: float) -> float:
    """The scorer's own definition."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(q * len(ordered)))]


def error_table(rows: Sequence[Mapping[str, Any]], predictions: Sequence[Mapping[str, Any]]) -> None:
    found = ratios(rows, predictions)
    factors, shares = interval_factors(found), covered_by_others(found)
    out("| figure | designs | median | 90th percentile | goal | 80 % interval | covered |")
    out("|---|---|---|---|---|---|---|")
    for name, pairs in found.items():
        errors = [abs(1 / ratio - 1) for _, ratio in pairs]
        goal = "{:.2f} / {:.2f}".format(*GOALS[name]) if name in GOALS else "-"
        low, high = factors[name]
        out(
            f"| {name} | {len(errors)} | {median(errors):.3f} | {percentile(errors, 0.9):.3f} | {goal} "
            f"| x{low:.2f} to x{high:.2f} | {'-' if shares[name] is None else format(shares[name], '.0%')} |"
        )


def repository_table(rows: Sequence[Mapping[str, Any]], predictions: Sequence[Mapping[str, Any]]) -> None:
    found = ratios(rows, predictions)
    figures = ["csynth.lut", "csynth.ff", "csynth.dsp", "csynth.latency_cycles"]
    out(f"| repository left out | designs | {' | '.join(figures)} |")
    out("|---|---|" + "---|" * len(figures))
    for repo in sorted({family(row) for row in rows}):
        cells = []
        for figure in figures:
            errors = [abs(1 / ratio - 1) for name, ratio in found[figure] if name == repo]
            cells.append(f"{median(errors):.3f}" if errors else "-")
        out(f"| {repo} | {sum(family(r) == repo for r in rows)} | {' | '.join(cells)} |")


def plot(rows: Sequence[Mapping[str, Any]], predictions: Sequence[Mapping[str, Any]], path: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    # The same rows give the same bytes.
    mpl.rcParams.update({"font.size": 8, "svg.hashsalt": "estimate", "svg.fonttype": "none"})
    from matplotlib import pyplot

    by_id = {p["id"]: p for p in predictions}
    figure, axes = pyplot.subplots(2, 3, figsize=(9, 6))
    names = [
        *((n, n) for n in ("LUT", "FF", "DSP", "BRAM18")),
        ("latency_max", "latency_cycles"),
        ("II", "interval_cycles"),
    ]
    for axis, (actual, guess) in zip(axes.flat, names, strict=True):
        for repo in sorted({family(r) for r in rows}):
            pairs = [
                (r["truth"]["csynth"][actual], by_id[r["id"]]["csynth"][guess])
                for r in rows
                if family(r) == repo and r["id"] in by_id and r["truth"]["csynth"].get(actual)
            ]
            axis.plot([a for a, _ in pairs], [p for _, p in pairs], "o", ms=3, alpha=0.6, label=repo)
        axis.set(xscale="log", yscale="log", title=guess, xlabel="csynth report", ylabel="left-out prediction")
        low, high = axis.get_xlim()
        axis.plot([low, high], [low, high], "k-", lw=0.6)
        axis.plot([low, high], [low * 1.5, high * 1.5], "k:", lw=0.5)
        axis.plot([low, high], [low / 1.5, high / 1.5], "k:", lw=0.5)
    axes.flat[0].legend(fontsize=5)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def speed(rows: Sequence[Mapping[str, Any]]) -> float:
    """Designs a second, features, hardware and figures included."""
    calibrated = calibration()
    begin = time.perf_counter()
    for _ in range(5):
        for row in rows:
            predict_row(row, calibrated)
    return 5 * len(rows) / (time.perf_counter() - begin)


def main(arguments: Sequence[str]) -> int:
    named = [a for a in arguments if not a.startswith("--")]
    plot_to = named.pop() if "--plot" in arguments else None
    path = Path(named[0]) if named else ROOT.parent / "shared" / "ground_truth" / "calibration.jsonl"
    if not path.is_file():
        out(f"skipped: no calibration rows at {path}")
        return 0
    rows = read_rows(path)
    known = [row for row in rows if row.get("standard_templates") and row.get("layers")]
    clean = [row for row in known if row.get("clean")]
    start = calibration().coefficients
    predictions = predict_left_out(known, start)
    error_table(clean, predictions)
    out()
    repository_table(clean, predictions)
    priced = {prediction["id"] for prediction in predictions}
    left_out = [row["id"] for row in clean if row["id"] not in priced]
    if left_out:
        out(f"\nrefused, so in no line above: {', '.join(left_out)}")
    out(f"\n{speed([row for row in clean if row['id'] in priced]):.0f} designs a second")
    if "--write" in arguments:
        home = ROOT / "hw" / "calibration"
        fitted = Calibration(fit_rows(known, start), interval_factors(ratios(clean, predictions)))
        origin = "Written by `tests/benchmarks/bench_estimate.py --write`; the rows that it read are cited in rows.csv."
        write_calibration(home / "coefficients.toml", fitted, origin)
        lines = ["id,repository,commit,equations", *(",".join(map(str, used)) for used in used_rows(known))]
        (home / "rows.csv").write_text("\n".join(lines) + "\n")
    if plot_to:
        plot(clean, predictions, Path(plot_to))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
