"""`share_pairs`: pairs of digits that occur more than once in sums become adders of their own.

Source: Hartley, "Subexpression Sharing in Filters Using Canonic Signed Digit Multipliers" (1996): the pair of digits
that occurs most often becomes an adder, and the search begins anew. Here all pairs are counted at once, and those that
occur almost as often as the most frequent one become adders in the same round.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

# One sum of digits: (node, shift) -> sign.
Digits = dict[tuple[int, int], int]

# Pairs that occur at least this fraction as often as the most frequent pair are replaced in the same round.
_NEAR = 0.8
# Bits of a key that hold the distance between two shifts, and half of their range.
_DISTANCE_BITS, _HALF = 8, 128
_NODE_BITS = 27


class Builder(Protocol):
    """Makes adders; `depth` has, for each node, the levels of adders from the inputs to it."""

    depth: list[int]

    def combined(self, one: tuple[int, int, int], two: tuple[int, int, int]) -> tuple[int, int]:
        """Add the sum of `one` and `two`, each (node, shift, sign), the smaller shift 0; return node and sign."""


def share_pairs(builder: Builder, columns: list[Digits], room: list[int], youngest: bool) -> None:
    """Put nodes of `builder` in the place of pairs of digits that occur more than once in `columns`.

    Args:
        builder: makes the adders.
        columns: the sums.
        room: what each sum has left for deeper nodes: a tree of `n` levels adds nodes whose `2 ** depth` sum to
            at most `2 ** n`. A pair of unequal depth takes some of it; a pair that finds no room stays as it is.
        youngest: of equally frequent pairs, those of the newest adders come first, else the shallowest.
    """
    search = _Search(builder, columns, room, youngest)
    while True:
        pairs, counts = search.repeated()
        if not counts.size:
            return
        least = max(2, int(np.ceil(_NEAR * counts.max())))
        while not search.replace_all(pairs[counts >= least], least):
            # The pairs that are left overlap, or find no room.
            if least == 2:
                return
            least -= 1


class _Search:
    """The digits of each column, and where each node occurs."""

    def __init__(self, builder: Builder, columns: list[Digits], room: list[int], youngest: bool) -> None:
        self.builder = builder
        self.room = room
        self.youngest = youngest
        self.columns = columns
        self.shifts: list[dict[int, set[int]]] = [defaultdict(set) for _ in columns]
        self.where: dict[int, set[int]] = defaultdict(set)
        for number, column in enumerate(columns):
            for node, shift in column:
                self._note(number, node, shift)

    def repeated(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Find pairs (a, b, distance of shifts, product of signs) that occur again, and how often; most first."""
        found = [_keys(column) for column in self.columns if len(column) > 1]
        keys = np.sort(np.concatenate(found)) if found else np.zeros(0, np.int64)
        starts = np.flatnonzero(np.diff(keys, prepend=-1))
        counts = np.diff(starts, append=len(keys))
        keys, counts = keys[starts[counts > 1]], counts[counts > 1]
        nodes = keys >> 1 + _DISTANCE_BITS
        a, b = nodes >> _NODE_BITS, nodes & (1 << _NODE_BITS) - 1
        distance = (keys >> 1 & (1 << _DISTANCE_BITS) - 1) - _HALF
        depths = np.array(self.builder.depth)[[a, b]]
        order = np.lexsort((-keys, -counts) if self.youngest else (keys, abs(distance), depths.max(axis=0), -counts))
        order = order[(_growth(*depths) <= max(self.room))[order]]
        return np.stack((a, b, distance, 2 * (keys & 1) - 1), axis=-1)[order], counts[order]

    def replace_all(self, pairs: NDArray[np.int64], least: int) -> int:
        """Replace each pair that still occurs `least` times by an adder; return the number of replaced pairs."""
        return sum(self._replace(a, b, distance, sign, least) for a, b, distance, sign in pairs.tolist())

    def _replace(self, a: int, b: int, distance: int, sign: int, least: int) -> bool:
        growth = _growth(self.builder.depth[a], self.builder.depth[b])
        places = []
        for number in sorted(self.where[a] & self.where[b]):
            most = self.room[number] // growth if growth else None
            places += [(number, *at) for at in self._places(number, a, b, distance, sign)[:most]]
        if len(places) < least:
            return False
        p, q = max(0, -distance), max(0, distance)
        node, factor = self.builder.combined((a, p, 1), (b, q, sign))
        for number, at, first in places:
            self.room[number] -= growth
            self._forget(number, a, at)
            self._forget(number, b, at + distance)
            self.columns[number][node, at - p] = first * factor
            self._note(number, node, at - p)
        return True

    def _places(self, number: int, a: int, b: int, distance: int, sign: int) -> list[tuple[int, int]]:
        """Find the pair in a column: shift and sign of its first digit each time. No two occurrences share a digit."""
        column = self.columns[number]
        taken: set[int] = set()
        found = []
        for at in sorted(self.shifts[number][a]):
            first = column[a, at]
            if column.get((b, at + distance), 0) * first == sign and not (a == b and taken & {at, at + distance}):
                taken.update((at, at + distance))
                found.append((at, first))
        return found

    def _note(self, number: int, node: int, shift: int) -> None:
        self.shifts[number][node].add(shift)
        self.where[node].add(number)

    def _forget(self, number: int, node: int, shift: int) -> None:
        del self.columns[number][node, shift]
        self.shifts[number][node].discard(shift)
        if not self.shifts[number][node]:
            self.where[node].discard(number)


def _growth(one: Any, two: Any) -> Any:
    """Return how much the sum of `2 ** depth` grows when an adder replaces two nodes of these depths."""
    return abs((1 << one) - (1 << two))


def _keys(column: Digits) -> NDArray[np.int64]:
    """Return a number for each pair of digits of a column, equal for equal pairs."""
    digits = np.array([(node, shift, sign) for (node, shift), sign in sorted(column.items())], np.int64)
    node, shift, sign = digits.T
    one, two = np.triu_indices(len(digits), 1)
    nodes = node[one] << _NODE_BITS | node[two]
    keys: NDArray[np.int64] = (nodes << _DISTANCE_BITS | shift[two] - shift[one] + _HALF) << 1
    keys |= sign[one] == sign[two]
    return keys
