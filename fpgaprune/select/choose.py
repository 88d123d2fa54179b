"""`select`: the units with the lowest scores are locked until the asked sparsity is met."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpgaprune.errors import MaskError
from fpgaprune.masks import MaskSet
from fpgaprune.select.criteria import CRITERIA
from fpgaprune.weights import match_paths, named_weights

# Which leading axes of a convolution's (K..., C_in, C_out) one unit spans.
GRANULARITIES = ("weight", "kernel", "filter", "input_channel")
SCOPES = ("network", "layer")


@dataclass(frozen=True)
class _Units:
    """The units of one weight: `scores` has one entry per unit and broadcasts over the weight."""

    path: str
    shape: tuple[int, ...]
    scores: NDArray[np.float64]
    already: NDArray[np.bool_]


def select(
    model: Any,
    sparsity: float,
    granularity: str = "kernel",
    criterion: str = "l1",
    scope: str = "network",
    paths: Sequence[str] = (),
    base: MaskSet | None = None,
) -> MaskSet:
    """Masks in which the `sparsity` least important units are locked, with `base` locked besides.

    The count of locked units is `round(sparsity * units)`, those that `base` locks whole included; equal
    scores are locked in the order of their index, so the result is the same each time. Scores are means
    over a unit, so kernels of different sizes compare. At least one unit of each weight stays free.

    Args:
        model: a Keras model.
        sparsity: fraction of units to lock, 0..1.
        granularity: `weight`, `kernel` (one `W[..., i, o]`), `filter` (one `W[..., o]`) or `input_channel`.
        criterion: `l1` or `l2`.
        scope: `network` for one threshold over all weights, `layer` for the same sparsity in each.
        paths: globs of weight paths; every convolution kernel unless given.
        base: elements that are locked whatever their score.

    Raises:
        MaskError: an option is not allowed, no weight fits, a weight holds NaN, or the sparsity cannot be reached.
    """
    _check_options(sparsity, granularity, criterion, scope)
    units = [_units_of(path, array, granularity, criterion, base) for path, array in _candidates(model, paths).items()]
    groups = [units] if scope == "network" else [[unit] for unit in units]
    masks: dict[str, NDArray[np.bool_]] = {}
    for group in groups:
        masks.update(_lock_lowest(group, sparsity))
    selected = MaskSet(masks)
    return selected & base if base is not None else selected


def _check_options(sparsity: float, granularity: str, criterion: str, scope: str) -> None:
    if not 0 <= sparsity <= 1:
        raise MaskError(f"sparsity is {sparsity}; wanted a fraction from 0 to 1")
    for name, value, allowed in (
        ("granularity", granularity, GRANULARITIES),
        ("criterion", criterion, tuple(CRITERIA)),
        ("scope", scope, SCOPES),
    ):
        if value not in allowed:
            raise MaskError(f"{name} {value!r} is unknown; wanted one of {', '.join(allowed)}")


def _candidates(model: Any, patterns: Sequence[str]) -> dict[str, NDArray[Any]]:
    weights = named_weights(model)
    if patterns:
        chosen = [path for pattern in patterns for path in match_paths(pattern, weights)]
    else:
        chosen = [path for path, variable in weights.items() if path.endswith("/kernel") and len(variable.shape) > 2]
    if not chosen:
        raise MaskError("the model has no convolution kernel to select from; name weights with 'paths'")
    return {path: weights[path].numpy() for path in dict.fromkeys(chosen)}


def _units_of(path: str, array: NDArray[Any], granularity: str, criterion: str, base: MaskSet | None) -> _Units:
    if not np.isfinite(array).all():
        raise MaskError(f"weight {path!r} holds NaN or infinity; no score orders it: retrain the model")
    if granularity != "weight" and array.ndim < 2:
        raise MaskError(f"weight {path!r} of shape {array.shape} has no {granularity}; use granularity 'weight'")
    axes = _unit_axes(array.ndim, granularity)
    scores = CRITERIA[criterion](array).mean(axis=axes, keepdims=True)
    already = np.zeros(scores.shape, dtype=bool)
    if base is not None and path in base:
        already = np.logical_not(base[path].any(axis=axes, keepdims=True))
    return _Units(path, array.shape, scores, already)


def _unit_axes(ndim: int, granularity: str) -> tuple[int, ...]:
    spatial = tuple(range(ndim - 2))
    return {
        "weight": (),
        "kernel": spatial,
        "filter": (*spatial, ndim - 2),
        "input_channel": (*spatial, ndim - 1),
    }[granularity]


def _lock_lowest(group: list[_Units], sparsity: float) -> dict[str, NDArray[np.bool_]]:
    total = sum(unit.scores.size for unit in group)
    wanted = round(sparsity * total)
    locked = np.concatenate([unit.already.ravel() for unit in group])
    order = np.argsort(np.concatenate([unit.scores.ravel() for unit in group]), kind="stable")
    protected = np.zeros(total, dtype=bool)
    start = 0
    for unit in group:
        stop = start + unit.scores.size
        if not unit.already.all():
            # The best unit of each weight stays, or the network would end at this layer.
            scores = np.where(unit.already, -np.inf, unit.scores).ravel()
            # Of equal ones the last, which is the last to be locked anyway.
            protected[stop - 1 - int(np.argmax(scores.ravel()[::-1]))] = True
        start = stop
    missing = wanted - int(locked.sum())
    eligible = order[~(locked | protected)[order]]
    if missing > len(eligible):
        reachable = (int(locked.sum()) + len(eligible)) / total
        names = ", ".join(unit.path for unit in group)
        raise MaskError(
            f"sparsity {sparsity} cannot be reached in {names}: at least one unit of each weight stays free, which "
            f"leaves {reachable:.4f} at most"
        )
    locked[eligible[: max(missing, 0)]] = True
    masks = {}
    start = 0
    for unit in group:
        stop = start + unit.scores.size
        free = ~locked[start:stop].reshape(unit.scores.shape)
        masks[unit.path] = np.broadcast_to(free, unit.shape).copy()
        start = stop
    return masks
