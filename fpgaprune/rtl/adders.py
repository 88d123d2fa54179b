"""Products of a vector with constants as adders: canonical signed digits, whose common pairs are shared."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fpgaprune.rtl.common_pairs import Digits, share_pairs
from fpgaprune.signed_digits import count_digits, signed_digits

# Pairs of digits that are counted together, in all outputs: a second of sorting, 70 MB.
_MOST_PAIRS = 1 << 23


@dataclass(frozen=True)
class Sum:
    """`(a << p) + (b << q)`, or minus; a node below 0 is the number 0."""

    a: int
    p: int
    b: int
    q: int
    subtract: bool


@dataclass(frozen=True)
class Exit:
    """An output: `node << shift` (an exact shift right where negative), negated or not; a node below 0 is 0."""

    node: int
    shift: int
    negate: bool


@dataclass(frozen=True)
class AdderGraph:
    """Adders that turn `inputs` integers into `len(exits)` weighted sums.

    Nodes 0 to `inputs` - 1 are the inputs, then one for each of `sums`, operands first.
    """

    inputs: int
    sums: tuple[Sum, ...]
    exits: tuple[Exit, ...]

    def matrix(self) -> NDArray[np.int64]:
        """The weights that the graph multiplies by, (inputs, outputs)."""
        size = self.inputs
        rows = np.zeros((size + len(self.sums) + 1, size), np.int64)
        rows[:size] = np.eye(size, dtype=np.int64)
        # The last row stays zero: a negative place, which means 0, indexes it.
        for place, item in enumerate(self.sums, start=size):
            right = rows[item.b] << item.q
            rows[place] = (rows[item.a] << item.p) + (-right if item.subtract else right)
        columns = []
        for leaving in self.exits:
            row = rows[leaving.node]
            row = row << leaving.shift if leaving.shift >= 0 else row >> -leaving.shift
            columns.append(-row if leaving.negate else row)
        return np.array(columns, np.int64).reshape(len(self.exits), size).T

    def to_json(self) -> dict[str, object]:
        """The graph as JSON data."""
        return {
            "inputs": self.inputs,
            "sums": [[s.a, s.p, s.b, s.q, int(s.subtract)] for s in self.sums],
            "exits": [[e.node, e.shift, int(e.negate)] for e in self.exits],
        }

    @classmethod
    def from_json(cls, document: Mapping[str, list[list[int]]], inputs: int) -> AdderGraph:
        """The graph that `document` holds."""
        sums = tuple(Sum(a, p, b, q, bool(s)) for a, p, b, q, s in document["sums"])
        return cls(inputs, sums, tuple(Exit(node, shift, bool(n)) for node, shift, n in document["exits"]))


def share(weights: NDArray[np.int64], search: bool = True) -> AdderGraph:
    """Adders for `weights` (inputs, outputs), pairs shared if `search`; zeros take part in nothing.

    Sharing adds no level of adders. Two orders are tried: the one is better for dense matrices, the other for sparse.
    """
    found = [_shared(weights, youngest) for youngest in ((True, False) if search else (None,))]
    return min(found, key=lambda graph: len(graph.sums))


def _shared(weights: NDArray[np.int64], youngest: bool | None) -> AdderGraph:
    """Adders for `weights`; no pair is shared if `youngest` is None."""
    builder = _Builder(weights.shape[0])
    columns: list[list[Digits]] = [[] for _ in range(weights.shape[1])]
    counts = count_digits(weights).sum(axis=0).tolist()
    # The tree of the longest column, without sharing, has so many levels; no column gets more.
    levels = max(max(counts, default=0) - 1, 0).bit_length()
    room = [(1 << levels) - count for count in counts]
    for block in _blocks(weights):
        digits = [_column_digits(weights[:, output], block) for output in range(weights.shape[1])]
        if youngest is not None:
            share_pairs(builder, digits, room, youngest)
        for column, found in zip(columns, digits, strict=True):
            column.append(found)
    exits = []
    for column in columns:
        joined = {key: sign for part in column for key, sign in part.items()}
        exits.append(builder.collected(joined))
    return AdderGraph(weights.shape[0], tuple(builder.sums), tuple(exits))


def _blocks(weights: NDArray[np.int64]) -> Iterable[range]:
    """Runs of inputs; in each run, no more than `_MOST_PAIRS` pairs of digits, if it is not a single input."""
    counts = count_digits(weights)
    start, total = 0, np.zeros(weights.shape[1], np.int64)
    for place, row in enumerate(counts):
        if place > start and int(((total + row) ** 2).sum()) > 2 * _MOST_PAIRS:
            yield range(start, place)
            start, total = place, np.zeros_like(total)
        total = total + row
    yield range(start, len(weights))


def _column_digits(column: NDArray[np.int64], block: range) -> Digits:
    return {(place, shift): sign for place in block for shift, sign in signed_digits(int(column[place]))}


class _Builder:
    """Sums made so far; equal ones exist once."""

    def __init__(self, inputs: int) -> None:
        self.inputs = inputs
        self.sums: list[Sum] = []
        self.depth = [0] * inputs
        self._known: dict[Sum, int] = {}

    def add(self, item: Sum) -> int:
        if item not in self._known:
            self._known[item] = self.inputs + len(self.sums)
            self.sums.append(item)
            self.depth.append(1 + max(self.depth[item.a], self.depth[item.b]))
        return self._known[item]

    def combined(self, one: tuple[int, int, int], two: tuple[int, int, int], last: bool = False) -> tuple[int, int]:
        """The node and the sign that make `one` plus `two`, each (node, shift, sign), where the smaller shift is 0.

        What is shifted is taken off what is not: so the lowest bits of the difference are wires. The `last` difference
        of an output is positive instead.
        """
        if one[2] != two[2] and ((one[2] < two[2]) if last or one[1] == two[1] else (one[1] > two[1])):
            one, two = two, one
        return self.add(Sum(one[0], one[1], two[0], two[1], one[2] != two[2])), one[2]

    def collected(self, digits: Digits) -> Exit:
        """The sum of `digits`, shallowest first, so that the tree stays low."""
        heap = [(self.depth[node], shift, node, sign) for (node, shift), sign in digits.items()]
        if not heap:
            return Exit(-1, 0, False)
        heapq.heapify(heap)
        while len(heap) > 1:
            (_, p, a, first), (_, q, b, second) = heapq.heappop(heap), heapq.heappop(heap)
            low = min(p, q)
            node, sign = self.combined((a, p - low, first), (b, q - low, second), last=not heap)
            heapq.heappush(heap, (self.depth[node], low, node, sign))
        _, shift, node, sign = heap[0]
        return Exit(node, shift, sign < 0)
