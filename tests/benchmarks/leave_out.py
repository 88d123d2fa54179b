"""The model's errors on repositories that it was not fitted to, and the intervals that follow from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fpgaprune.errors import EstimateError
from fpgaprune.estimate import Calibration, Coefficient, predict_row
from fpgaprune.measure import ESTIMATED, LABELS
from tests.benchmarks.calibration_rows import Row, fit_rows

# The truth's names for the figures of a prediction, by stage.
_RESOURCES = {LABELS[name]: LABELS[name] for name in ESTIMATED}
FIGURES = {
    "csynth": {**_RESOURCES, "latency_cycles": "latency_max", "interval_cycles": "II"},
    "synth": _RESOURCES,
}
_TRUTH = {"csynth": "csynth", "synth": "vsynth"}
# Repositories with the same designs count as one: if only one were left out, its twin would stay in the fit.
_TWINS = {"fastmachinelearning/hls4ml-tutorial": "Hector-Plata/hls4ml-tutorial"}
# The middle share of truths that an interval is to hold.
COVERAGE = 0.8
_WIDEST = 0.98
# Below this many truths an interval is made symmetric.
_FEW = 20
# Ends of an interval are rounded outwards to whole counts; this much of a ratio stands for that.
_WHOLE = 1e-3


def family(row: Row) -> str:
    """The repository that `row` is left out with."""
    repo = str(row["repo"])
    return _TWINS.get(repo, repo)


def predict_left_out(rows: Sequence[Row], start: Mapping[str, Coefficient]) -> list[dict[str, Any]]:
    """A prediction for every row that can be priced, by coefficients that its repository had no part in."""
    predictions = []
    for left in sorted({family(row) for row in rows if row.get("layers")}):
        fitted = fit_rows([row for row in rows if family(row) != left], start)
        calibrated = Calibration(fitted, {})
        for row in rows:
            if family(row) != left or not row.get("layers"):
                continue
            try:
                predictions.append(predict_row(row, calibrated))
            except EstimateError:
                continue
    return predictions


def ratios(rows: Sequence[Row], predictions: Sequence[Mapping[str, Any]]) -> dict[str, list[tuple[str, float]]]:
    """Truth divided by prediction with its repository, by figure, as `csynth.lut`; rows without either are left out."""
    by_id = {p["id"]: p for p in predictions}
    found: dict[str, list[tuple[str, float]]] = {}
    for row in rows:
        prediction = by_id.get(row["id"])
        if prediction is None:
            continue
        for stage, names in FIGURES.items():
            truth = row["truth"].get(_TRUTH[stage]) or {}
            for name, actual in names.items():
                value, guess = truth.get(actual), prediction[stage][name]
                if f"{_TRUTH[stage]}_{name.lower()}_anomalous" in row.get("flags", ()):
                    continue
                if value and guess:
                    found.setdefault(f"{stage}.{name.lower()}", []).append((family(row), value / guess))
    return found


def interval_factors(found: Mapping[str, Sequence[tuple[str, float]]]) -> dict[str, tuple[float, float]]:
    """Factors on an estimate that hold `COVERAGE` of the left-out truths; no repository outweighs the rest.

    Designs of one repository err alike, so that the middle 80 % of the known errors hold fewer of another
    repository's. The factors are as wide as it takes: made of all other repositories, they hold 80 % of each one's.
    """
    return {name: _quantiles(pairs, _middle(pairs)) for name, pairs in found.items()}


def _middle(pairs: Sequence[tuple[str, float]]) -> float:
    """The middle share of the known truths, from `COVERAGE` on, with which the factors hold `COVERAGE` of new ones."""
    for middle in np.arange(COVERAGE, _WIDEST, 0.01):
        share = _held(pairs, float(middle))
        if share is None or share >= COVERAGE:
            return float(middle)
    return _WIDEST


def _quantiles(pairs: Sequence[tuple[str, float]], middle: float) -> tuple[float, float]:
    repos = [repo for repo, _ in pairs]
    values = np.array([ratio for _, ratio in pairs])
    weight = np.array([1.0 / np.sqrt(repos.count(repo)) for repo in repos])
    order = np.argsort(values)
    position = (np.cumsum(weight[order]) - weight[order] / 2) / weight.sum()
    # The next truth is one of n + 1 equally likely ranks: few truths must give a wider interval (Vovk et al. 2005).
    outside = np.floor((len(values) + 1) * (1 - middle) / 2) / len(values)
    bounds = np.exp(np.interp([outside, 1 - outside], position, np.log(values[order])))
    below, above = float(min(bounds[0], 1.0)), float(max(bounds[1], 1.0))
    if len(values) < _FEW:
        # So few truths do not tell which side is wider: both sides get the wider one.
        above = max(above, 1 / below)
        below = 1 / above
    return below, above


def covered(
    rows: Sequence[Row], predictions: Sequence[Mapping[str, Any]], factors: Mapping[str, tuple[float, float]]
) -> dict[str, float]:
    """Share of the truths that lie within the factors, by figure."""
    shares = {}
    for name, pairs in ratios(rows, predictions).items():
        low, high = factors[name]
        shares[name] = sum(low - _WHOLE <= ratio <= high + _WHOLE for _, ratio in pairs) / len(pairs)
    return shares


def covered_by_others(found: Mapping[str, Sequence[tuple[str, float]]]) -> dict[str, float | None]:
    """Share of the truths that lie within intervals made of the other repositories alone, by figure.

    None where no figure has three truths outside the repository in question.
    """
    return {name: _held(pairs, _middle(pairs)) for name, pairs in found.items()}


def _held(pairs: Sequence[tuple[str, float]], middle: float) -> float | None:
    inside = asked = 0
    for left in {repo for repo, _ in pairs}:
        others = [pair for pair in pairs if pair[0] != left]
        if len(others) < 3:
            continue
        low, high = _quantiles(others, middle)
        mine = [ratio for repo, ratio in pairs if repo == left]
        inside += sum(low - _WHOLE <= ratio <= high + _WHOLE for ratio in mine)
        asked += len(mine)
    return inside / asked if asked else None
