"""Products of a vector with constants as adders: canonical signed digits, whose common pairs are shared.

Source: Hartley, "Subexpression Sharing in Filters Using Canonic Signed Digit Multipliers" (1996): the pair of
digits that occurs most often becomes an adder, and the search begins anew.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fpgaprune.signed_digits import count_digits, signed_digits

# Digits of one output that are searched for pairs together; the search grows with their square.
_BLOCK_DIGITS = 128

# One digit of an output: (node, shift) -> sign.
_Digits = dict[tuple[int, int], int]
# `(a << p) + sign * (b << q)` as (a, p, b, q, sign), min(p, q) == 0.
_Pair = tuple[int, int, int, int, int]


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
    """Adders for `weights` (inputs, outputs), pairs shared if `search`; zeros take part in nothing."""
    builder = _Builder(weights.shape[0])
    columns: list[list[_Digits]] = [[] for _ in range(weights.shape[1])]
    for block in _blocks(weights):
        digits = [_column_digits(weights[:, output], block) for output in range(weights.shape[1])]
        if search:
            _Search(builder, digits).run()
        for column, found in zip(columns, digits, strict=True):
            column.append(found)
    exits = []
    for column in columns:
        joined = {key: sign for part in column for key, sign in part.items()}
        exits.append(builder.collected(joined))
    return AdderGraph(weights.shape[0], tuple(builder.sums), tuple(exits))


def _blocks(weights: NDArray[np.int64]) -> Iterable[range]:
    """Runs of inputs; in each run, no output has many more than `_BLOCK_DIGITS` digits."""
    counts = count_digits(weights)
    start, total = 0, np.zeros(weights.shape[1], np.int64)
    for place, row in enumerate(counts):
        if place > start and (total + row).max(initial=0) > _BLOCK_DIGITS:
            yield range(start, place)
            start, total = place, np.zeros_like(total)
        total = total + row
    yield range(start, len(weights))


def _column_digits(column: NDArray[np.int64], block: range) -> _Digits:
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

    def collected(self, digits: _Digits) -> Exit:
        """The sum of `digits`, shallowest first, so that the tree stays low."""
        heap = [(self.depth[node], shift, node, sign) for (node, shift), sign in digits.items()]
        if not heap:
            return Exit(-1, 0, False)
        heapq.heapify(heap)
        while len(heap) > 1:
            one, two = heapq.heappop(heap), heapq.heappop(heap)
            _, low, _, _ = min(one, two, key=lambda row: row[1])
            # The first operand is positive if any operand is.
            if one[3] < two[3]:
                one, two = two, one
            node = self.add(Sum(one[2], one[1] - low, two[2], two[1] - low, one[3] != two[3]))
            heapq.heappush(heap, (self.depth[node], low, node, one[3]))
        _, shift, node, sign = heap[0]
        return Exit(node, shift, sign < 0)


class _Search:
    """Greedy replacement of the most frequent pair of digits in `columns`, which it changes."""

    def __init__(self, builder: _Builder, columns: list[_Digits]) -> None:
        self.builder = builder
        self.columns = columns
        self.counts: dict[_Pair, int] = defaultdict(int)
        self.nodes: list[dict[int, set[int]]] = [defaultdict(set) for _ in columns]
        for column, nodes in zip(columns, self.nodes, strict=True):
            keys = list(column)
            for place, one in enumerate(keys):
                nodes[one[0]].add(one[1])
                for two in keys[:place]:
                    self.counts[_pair(one, column[one], two, column[two])] += 1
        self.heap = [self._entry(pair, count) for pair, count in self.counts.items() if count > 1]
        heapq.heapify(self.heap)

    def run(self) -> None:
        """No pair is left that occurs twice."""
        while self.heap:
            entry = heapq.heappop(self.heap)
            pair, count = entry[-1], -entry[0]
            now = self.counts.get(pair, 0)
            if now < 2:
                continue
            if now != count:
                # The count has changed since the pair was queued: queue it again by the new count.
                if now < count:
                    heapq.heappush(self.heap, self._entry(pair, now))
                continue
            self._replace(pair)

    def _entry(self, pair: _Pair, count: int) -> tuple[int, int, int, _Pair]:
        a, p, b, q, _ = pair
        depth = self.builder.depth
        return (-count, max(depth[a], depth[b]), p + q, pair)

    def _replace(self, pair: _Pair) -> None:
        a, p, b, q, sign = pair
        places: list[tuple[int, int, int]] = []
        for number, nodes in enumerate(self.nodes):
            if a in nodes and b in nodes:
                places.extend((number, *found) for found in self._occurrences(number, pair))
        if len(places) < 2:
            self.counts[pair] = 0
            return
        node = self.builder.add(Sum(a, p, b, q, sign < 0))
        for number, shift, first_sign in places:
            self._remove(number, (a, shift + p))
            self._remove(number, (b, shift + q))
            self._insert(number, (node, shift), first_sign)
        self.counts[pair] = 0

    def _occurrences(self, number: int, pair: _Pair) -> list[tuple[int, int]]:
        """(shift, sign of the first digit) of each place where the pair stands, none sharing a digit."""
        a, p, b, q, sign = pair
        column, nodes = self.columns[number], self.nodes[number]
        taken: set[tuple[int, int]] = set()
        found = []
        for at in sorted(nodes[a]):
            shift = at - p
            one, two = (a, at), (b, shift + q)
            if shift < 0 or two not in column or one in taken or two in taken or one == two:
                continue
            if column[one] * column[two] == sign:
                taken.update((one, two))
                found.append((shift, column[one]))
        return found

    def _remove(self, number: int, key: tuple[int, int]) -> None:
        column = self.columns[number]
        sign = column.pop(key)
        shifts = self.nodes[number][key[0]]
        shifts.discard(key[1])
        if not shifts:
            del self.nodes[number][key[0]]
        for other, other_sign in column.items():
            self.counts[_pair(key, sign, other, other_sign)] -= 1

    def _insert(self, number: int, key: tuple[int, int], sign: int) -> None:
        column = self.columns[number]
        for other, other_sign in column.items():
            pair = _pair(key, sign, other, other_sign)
            count = self.counts[pair] = self.counts[pair] + 1
            if count > 1:
                heapq.heappush(self.heap, self._entry(pair, count))
        column[key] = sign
        self.nodes[number][key[0]].add(key[1])


def _pair(one: tuple[int, int], sign_one: int, two: tuple[int, int], sign_two: int) -> _Pair:
    if one > two:
        one, two = two, one
    low = min(one[1], two[1])
    return (one[0], one[1] - low, two[0], two[1] - low, sign_one * sign_two)
