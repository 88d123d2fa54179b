"""Products of a vector and a constant matrix as adders; pairs of signed digits that sums have in common are shared."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fpgaprune.rtl.common_pairs import Digits, share_pairs
from fpgaprune.values import count_digits, signed_digits

# At most so many pairs of digits, over all outputs, are counted together: a second of sorting, 70 MB.
MOST_PAIRS = 1 << 23


@dataclass(frozen=True)
class Sum:
    """`(a << p) + (b << q)`, or the difference if `subtract`; a negative node stands for the number 0."""

    a: int
    p: int
    b: int
    q: int
    subtract: bool


@dataclass(frozen=True)
class Exit:
    """An output: `node << shift` (if negative, an exact shift right), times -1 if `negate`; a negative node is 0."""

    node: int
    shift: int
    negate: bool


@dataclass(frozen=True)
class AdderGraph:
    """Adders that turn `inputs` integers into `len(exits)` weighted sums.

    Nodes 0 to `inputs` - 1 are the inputs; `sums` follow, each after its operands.
    """

    inputs: int
    sums: tuple[Sum, ...]
    exits: tuple[Exit, ...]

    def matrix(self) -> NDArray[np.int64]:
        """Return the weights by which the graph multiplies, (inputs, outputs)."""
        size = self.inputs
        rows = np.zeros((size + len(self.sums) + 1, size), np.int64)
        rows[:size] = np.eye(size, dtype=np.int64)
        # Node -1, which stands for 0, indexes the last row, which stays zero.
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
        """Return the graph as JSON data."""
        return {
            "inputs": self.inputs,
            "sums": [[s.a, s.p, s.b, s.q, int(s.subtract)] for s in self.sums],
            "exits": [[e.node, e.shift, int(e.negate)] for e in self.exits],
        }

    @classmethod
    def from_json(cls, document: Mapping[str, list[list[int]]], inputs: int) -> AdderGraph:
        """Return the graph that `document` holds."""
        sums = tuple(Sum(a, p, b, q, bool(s)) for a, p, b, q, s in document["sums"])
        return cls(inputs, sums, tuple(Exit(node, shift, bool(n)) for node, shift, n in document["exits"]))


def share(weights: NDArray[np.int64], search: bool = True) -> AdderGraph:
    """Make adders for `weights` (inputs, outputs), none for zeros; pairs of digits are shared if `search`.

    Sharing adds no level of adders. Two orders of the search are tried, and the one with fewer adders is taken: the
    one is better for dense matrices, the other for sparse.
    """
    found = [_shared(weights, youngest) for youngest in ((True, False) if search else (None,))]
    return min(found, key=lambda graph: len(graph.sums))


def _shared(weights: NDArray[np.int64], youngest: bool | None) -> AdderGraph:
    """Make adders for `weights`; no pair is shared if `youngest` is None."""
    builder = _Builder(weights.shape[0])
    columns: list[list[Digits]] = [[] for _ in range(weights.shape[1])]
    counts = count_digits(weights).sum(axis=0).tolist()
    # Without sharing, the tree of the longest column has so many levels; with it, no tree gets more.
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
    """Yield ranges of inputs; each has at most `MOST_PAIRS` pairs of digits, or is a single input."""
    counts = count_digits(weights)
    start, total = 0, np.zeros(weights.shape[1], np.int64)
    for place, row in enumerate(counts):
        if place > start and int(((total + row) ** 2).sum()) > 2 * MOST_PAIRS:
            yield range(start, place)
            start, total = place, np.zeros_like(total)
        total = total + row
    yield range(start, len(weights))


def _column_digits(column: NDArray[np.int64], block: range) -> Digits:
    return {(place, shift): sign for place in block for shift, sign in signed_digits(int(column[place]))}


class _Builder:
    """The sums made so far; equal sums are stored once."""

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
        """Add the sum of `one` and `two`, each (node, shift, sign), the smaller shift 0; return node and sign.

        A difference subtracts the shifted operand from the other one, so that its lowest bits are wires. The `last`
        difference of an output subtracts the negative operand instead, so that it needs no change of sign.
        """
        if one[2] != two[2] and ((one[2] < two[2]) if last or one[1] == two[1] else (one[1] > two[1])):
            one, two = two, one
        return self.add(Sum(one[0], one[1], two[0], two[1], one[2] != two[2])), one[2]

    def collected(self, digits: Digits) -> Exit:
        """Return the sum of `digits`; nodes of the least depth are added first, so that the tree has few levels."""
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
