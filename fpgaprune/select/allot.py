"""Makes scores of layers comparable, puts all units into one row, and locks the lowest up to a count."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from fpgaprune.errors import MaskError


@dataclass
class Units:
    """Every unit of the chosen weights; coupled units stand once.

    Attributes:
        numbers: weight path to the numbers of its units; a slice if they are consecutive.
        scores: score of each unit.
        locked: True for units that are locked.
        kept: True for units that must not be locked further.
    """

    numbers: dict[str, NDArray[np.intp] | slice]
    scores: NDArray[np.float64]
    locked: NDArray[np.bool_]
    kept: NDArray[np.bool_]


def merge_units(
    scores: Mapping[str, NDArray[np.float64]],
    locked: Mapping[str, NDArray[np.bool_]],
    coupled: Mapping[str, NDArray[np.intp]],
    *,
    average: bool,
) -> Units:
    """Merge the units of each group in `coupled` into one unit, which is locked if all its members are.

    Args:
        scores: weight path to the score of each unit.
        locked: weight path to whether each unit is locked already.
        coupled: weight path to the group of each unit, for weights with groups.
        average: whether the score of a group is the mean of its units, or else the score of its first.
    """
    values = np.concatenate(list(scores.values()))
    if not coupled:
        ends = np.cumsum([len(of_one) for of_one in scores.values()]).tolist()
        slices = (slice(start, end) for start, end in pairwise([0, *ends]))
        rows: dict[str, NDArray[np.intp] | slice] = dict(zip(scores, slices, strict=True))
        return Units(rows, values, np.concatenate(list(locked.values())), np.zeros(len(values), dtype=bool))
    numbers: dict[str, NDArray[np.intp] | slice] = {}
    group_numbers: dict[int, int] = {}
    count = 0
    for path, of_one in scores.items():
        if path not in coupled:
            numbers[path] = np.arange(count, count + len(of_one))
            count += len(of_one)
            continue
        mine = np.empty(len(of_one), dtype=np.intp)
        for at, group in enumerate(coupled[path].tolist()):
            if group not in group_numbers:
                group_numbers[group] = count
                count += 1
            mine[at] = group_numbers[group]
        numbers[path] = mine
    flat = np.concatenate(list(numbers.values()))
    free = np.concatenate([~flags for flags in locked.values()])
    if average:
        merged = np.bincount(flat, weights=values, minlength=count) / np.bincount(flat, minlength=count)
    else:
        merged = np.empty(count)
        merged[flat[::-1]] = values[::-1]
    any_free = np.zeros(count, dtype=bool)
    any_free[flat[free]] = True
    return Units(numbers, merged, ~any_free, np.zeros(count, dtype=bool))


def lock_lowest(units: Units, shares: Mapping[str, tuple[str, float]], *, per_layer: bool) -> None:
    """Lock units in each group of weights until `round(share * units)` are locked.

    Args:
        units: the units, changed in place.
        shares: weight path to the name of its group and the fraction to lock.
        per_layer: whether each weight is its own group, and locks fewer units if more must stay free. Weights that
            share a unit are one group in any case.

    Raises:
        UnreachableSparsityError: a group cannot reach its share; if `per_layer`, no group with free units can. Or all
            units have to stay free.
        MaskError: coupled weights have different shares.
    """
    asked = [_Demand(units, paths, share) for paths, share in _groups(units, shares, per_layer)]
    short = [demand for demand in asked if demand.missing > len(demand.eligible)]
    giving = [demand for demand in asked if demand.eligible.size or demand.missing <= 0]
    if short and not (per_layer and any(demand not in short for demand in giving)):
        first = short[0]
        raise UnreachableSparsityError(
            f"sparsity {first.share} cannot be reached in {_names(first.paths)}: what must stay free leaves "
            f"{np.floor(first.reachable * 1e4) / 1e4:.4f} at most; ask for less or protect less"
        )
    _require_possible([demand for demand in asked if demand.share > 0])
    for demand in asked:
        demand.lock(units)


def _require_possible(demands: Sequence[_Demand]) -> None:
    """Raise `UnreachableSparsityError` if all units of `demands` stay free; rounding to 0 units would hide that."""
    if not demands or any(demand.reachable for demand in demands):
        return
    first = demands[0]
    stays = "the only unit there has" if first.members == 1 else f"all {first.members} units there have"
    raise UnreachableSparsityError(
        f"sparsity {first.share} locks nothing in {_names(first.paths)}: {stays} to stay free; take a finer "
        "granularity or protect less"
    )


class UnreachableSparsityError(MaskError):
    """So many units must stay free that the sparsity cannot be reached."""


class _Demand:
    """How many units one group of weights should lock, and how many it can."""

    def __init__(self, units: Units, paths: list[str], share: float) -> None:
        self.paths, self.share = paths, share
        self._span, is_member = _members(units, paths)
        now_locked = units.locked[self._span]
        self.members, locked = int(is_member.sum()), int((is_member & now_locked).sum())
        self.eligible = np.flatnonzero(is_member & ~(now_locked | units.kept[self._span]))
        self.missing = round(share * self.members) - locked
        self.reachable = (locked + len(self.eligible)) / self.members

    def lock(self, units: Units) -> None:
        """Lock the units with the lowest scores: as many as are missing, or all that may be locked."""
        count = min(self.missing, len(self.eligible))
        if count > 0:
            of_eligible = units.scores[self._span][self.eligible]
            units.locked[self._span][self.eligible[lowest(of_eligible, count)]] = True


def lowest(scores: NDArray[np.float64], count: int) -> NDArray[np.intp]:
    """Return the indices of the `count` lowest scores, in linear time; of equal scores the first."""
    if count == 0:
        return np.empty(0, dtype=np.intp)
    threshold = np.partition(scores, count - 1)[count - 1]
    below = np.flatnonzero(scores < threshold)
    ties = np.flatnonzero(scores == threshold)[: count - len(below)]
    return np.concatenate([below, ties])


def _members(units: Units, paths: list[str]) -> tuple[slice, NDArray[np.bool_]]:
    """Return the range of all units that covers the weights `paths`, and a flag for each unit that is theirs."""
    numbers = [units.numbers[path] for path in paths]
    rows = [row for row in numbers if isinstance(row, slice)]
    whole = len(rows) < len(numbers)
    start = 0 if whole else min(row.start for row in rows)
    stop = len(units.scores) if whole else max(row.stop for row in rows)
    is_member = np.zeros(stop - start, dtype=bool)
    for row in numbers:
        is_member[slice(row.start - start, row.stop - start) if isinstance(row, slice) else row - start] = True
    return slice(start, stop), is_member


def _groups(units: Units, shares: Mapping[str, tuple[str, float]], per_layer: bool) -> list[tuple[list[str], float]]:
    owner: dict[int, str] = {}
    home = {path: path for path in shares}

    def root(path: str) -> str:
        while home[path] != path:
            path = home[path]
        return path

    by_name: dict[str, str] = {}
    for path, (name, _) in shares.items():
        if not per_layer:
            home[root(path)] = root(by_name.setdefault(name, path))
        numbers = units.numbers[path]
        for number in () if isinstance(numbers, slice) else numbers.tolist():
            home[root(path)] = root(owner.setdefault(number, path))
    groups: dict[str, list[str]] = {}
    for path in shares:
        groups.setdefault(root(path), []).append(path)
    found = []
    for paths in groups.values():
        asked = {shares[path][1] for path in paths}
        if len(asked) > 1:
            raise MaskError(
                f"{_names(paths)} are coupled by additions, but are asked for sparsities "
                f"{', '.join(f'{share:.6g}' for share in sorted(asked))}; give them one"
            )
        found.append((paths, asked.pop()))
    return found


def _names(paths: list[str]) -> str:
    return ", ".join(paths[:6]) + (f" and {len(paths) - 6} more" if len(paths) > 6 else "")


Scores = NDArray[np.float64]


def none(scores: Scores) -> Scores:
    """Return the scores as they are: a layer with small weights may lose all units that are not protected."""
    return scores


def mean(scores: Scores) -> Scores:
    """Return the scores divided by their mean in the layer."""
    return _divided(scores, float(scores.mean()))


def largest(scores: Scores) -> Scores:
    """Return the scores divided by the largest in the layer."""
    return _divided(scores, float(scores.max()))


def norm(scores: Scores) -> Scores:
    """Return the scores divided by their Euclidean norm in the layer.

    Source: Molchanov, Tyree, Karras, Aila, Kautz, "Pruning Convolutional Neural Networks for Resource Efficient
    Inference", 2017, section 2.2 (layer-wise l2 normalization).
    """
    return _divided(scores, float(np.sqrt(np.square(scores).sum())))


def lamp(scores: Scores) -> Scores:
    """Divide the square of each score by the sum of the squares that are not smaller: a layer's best gets 1.

    The k-th best unit of each layer gets about 1/k, so that a small layer keeps its units. If the lowest score is below
    zero, all scores are first raised by its size; the order within the layer stays.

    Source: Lee, Park, Mo, Ahn, Shin, "Layer-adaptive Sparsity for the Magnitude-based Pruning", 2021, section 3.
    """
    scores = scores - min(float(scores.min(initial=0.0)), 0.0)
    top = float(scores.max(initial=0.0))
    squares = np.square(_divided(scores, top))
    order = np.argsort(squares)
    ascending = squares[order]
    remaining = np.cumsum(ascending[::-1])[::-1]
    # Equal scores are divided by the same sum: that of the first of them.
    first = np.flatnonzero(np.diff(ascending, prepend=-1.0))
    remaining = np.repeat(remaining[first], np.diff(first, append=len(ascending)))
    found = np.empty_like(squares)
    found[order] = np.divide(ascending, remaining, out=np.zeros_like(squares), where=remaining > 0)
    return found


def _divided(scores: Scores, by: float) -> Scores:
    return scores / by if by > 0 else scores


NORMALIZATIONS: Mapping[str, Callable[[Scores], Scores]] = {
    "none": none,
    "mean": mean,
    "max": largest,
    "l2": norm,
    "lamp": lamp,
}
