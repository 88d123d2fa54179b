"""`fit`: the coefficients fitted to vendor reports.

Each layer with figures of its own is one equation: quantities times coefficients equal LUTs, or flip-flops. The
coefficients are at least 0 and minimise the sum of absolute relative errors (iteratively reweighted). Priors with the
weight of a fraction of one equation keep a coefficient that no report shows at its textbook value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fpgaprune.estimate.coefficients import Coefficient
from fpgaprune.estimate.hardware import Hardware, ff_share, lut_share

# Weight of the priors against the equations; few designs show what logic synthesis leaves, so it is high there.
PRIOR_WEIGHT = {"lut": 0.012, "ff": 0.012, "synth": 0.3}
# The errors of figures below this are taken relative to it: so few are overhead of the report.
_SMALL = {"lut": 60.0, "ff": 60.0, "synth": 100.0}
_ROUNDS = 25


@dataclass(frozen=True)
class Equation:
    """In a design of `repo`, `quantities` of hardware cost `actual` LUTs or flip-flops."""

    repo: str
    what: str
    quantities: Mapping[str, float]
    actual: float


def left_of(
    repo: str, what: str, whole: Hardware, resource: str, values: Mapping[str, float], before: float, after: float
) -> Equation:
    """Make a design's equation for what logic synthesis leaves: `before` in the HLS report became `after`."""
    share = lut_share if resource == "lut" else ff_share
    split: dict[str, float] = {}
    for name, amount in getattr(whole, resource).items():
        group = share(name).removeprefix("synth.")
        split[group] = split.get(group, 0.0) + amount * values[f"{resource}.{name}"]
    scale = before / max(sum(split.values()), 1.0)
    return Equation(repo, what, {group: amount * scale for group, amount in split.items()}, after)


def fit(
    found: Sequence[Equation], start: Mapping[str, Coefficient], prefix: str, strength: float | None = None
) -> dict[str, float]:
    """Fit the coefficients of `start` whose names begin with `prefix` to `found`; return value by name.

    `strength` is the weight of each prior against the equation of one design, by default `PRIOR_WEIGHT` of all.
    """
    names = [name for name in start if name.startswith(f"{prefix}.")]
    if not found:
        return {name: start[name].prior for name in names}
    column = {name.removeprefix(f"{prefix}."): i for i, name in enumerate(names)}
    priors = np.array([start[name].prior for name in names])
    matrix = np.zeros((len(found), len(names)))
    for r, equation in enumerate(found):
        for name, amount in equation.quantities.items():
            matrix[r, column[name]] = amount
    actual = np.array([equation.actual for equation in found])
    repos = [equation.repo for equation in found]
    # A repository weighs the square root of the number of its equations, so the largest does not decide alone.
    share = np.array([1.0 / np.sqrt(repos.count(repo)) for repo in repos])
    # In units of its prior every coefficient is near 1, which keeps the least squares well conditioned.
    matrix = matrix * priors
    ratio = np.ones(len(names))
    if strength is None:
        strength = PRIOR_WEIGHT[prefix] * np.sqrt(np.sum(share))
    for _ in range(_ROUNDS):
        predicted = matrix @ ratio
        # Relative to the larger of the two, an error is 1 at most: neither a direction nor an outlier can dominate.
        larger = np.maximum(np.maximum(actual, predicted), _SMALL[prefix])
        relative = np.abs(predicted - actual) / larger
        # A prediction that is too large gets less weight, because it would outweigh one that is too small.
        slope = np.where(predicted > actual, np.maximum(actual, _SMALL[prefix]) / larger, 1.0)
        weight = share / larger * np.sqrt(slope / np.maximum(relative, 0.03))
        weighted = matrix * weight[:, None]
        square = weighted.T @ weighted + np.eye(len(names)) * strength**2
        ratio = _nonnegative(square, weighted.T @ (actual * weight) + strength**2)
    solution = ratio * priors
    return {name: float(solution[i]) for i, name in enumerate(names)}


def _nonnegative(square: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    """Find the x >= 0 that minimises x'Ax/2 - b'x, A positive definite, by an active set (Lawson and Hanson 1974)."""
    free = np.ones(len(right), dtype=bool)
    x = np.zeros(len(right))
    for _ in range(3 * len(right)):
        x = np.zeros(len(right))
        x[free] = np.linalg.solve(square[np.ix_(free, free)], right[free])
        if (x < 0).any():
            free &= x > 0
            continue
        slack = np.where(free, 0.0, right - square @ x)
        if slack.max() <= 1e-9 * np.abs(right).max():
            break
        free[int(np.argmax(slack))] = True
    return np.maximum(x, 0.0)
