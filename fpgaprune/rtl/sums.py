"""Weighted and plain sums as circuits, in the arithmetic of an accumulator.

Where the accumulator keeps every bit of an addend and wraps or cannot overflow, any order gives the same bits: adders
are shared and trees are balanced. Where it rounds each product and wraps, products are rounded one by one and added in
a tree. Where it saturates, additions keep the template's order, or a tree gives the bits of that order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fpgaprune.emulate import Exact
from fpgaprune.errors import RtlError
from fpgaprune.rtl.adders import AdderGraph
from fpgaprune.rtl.number import TOWARDS_A_SIDE, Number, in_pairs
from fpgaprune.values import FixedType

# For each sum that reads the same inputs, so many additions follow one another in a row; a tree joins the rest. An
# addition in the row takes an adder and two comparisons; in the tree it takes three adders and four comparisons, about
# 60 bits of LUTs and registers more. But each addition in the row delays all inputs by two cycles: 16 bits for each.
_IN_A_ROW = 8
# Longer rows let the text and simulators grow by more than they save.
_LONGEST_ROW = 128


@dataclass(frozen=True)
class Run:
    """What additions do to a total: `addend` is added, and the sum brought between `low` and `high`.

    An addition adds a number and brings the total between two bounds. A run of additions equals one addition of the
    sum of all addends with two other bounds: the totals that the run makes of the lowest and of the highest total. So
    runs join in any grouping, and a tree of them takes as many steps as it has levels. Source: K. Papadantonakis,
    N. Kapre, S. Chan and A. DeHon, Pipelining Saturated Accumulation, IEEE Transactions on Computers, 2009.
    """

    addend: Number
    low: Number
    high: Number

    def after(self, total: Number) -> Number:
        """Return `total` after the additions."""
        return (total + self.addend).between(self.low, self.high)

    def then(self, later: Run) -> Run:
        """Return these additions and then those of `later`."""
        return Run(self.addend + later.addend, later.after(self.low), later.after(self.high))


def saturated(start: Number, addends: Sequence[Number], accum: FixedType, sums: int) -> Number:
    """Add `addends` to `start` one by one, each sum saturated to `accum`, which has all of their fraction bits.

    Exact: the same bits as the additions in their order.

    Args:
        start: within `accum`.
        addends: in their order.
        accum: type of every total; its overflow mode is `SAT` or `SAT_SYM`.
        sums: how many sums are made of the same inputs.
    """
    row = min(_IN_A_ROW * sums, _LONGEST_ROW)
    total = start
    for addend in addends[:row]:
        total = (total + addend).into(accum)
    low, high = (Number.constant(start.circuit, raw, accum.fraction) for raw in (accum.raw_min, accum.raw_max))
    runs = [Run(addend, low, high) for addend in addends[row:]]
    return in_pairs(runs, Run.then).after(total) if runs else total


# At most so many numbers are added one after another. They wait in registers, whose bits grow with the square of that.
LONGEST_CHAIN = 512

Solver = Callable[[NDArray[np.int64], int, int], AdderGraph]


@dataclass(frozen=True)
class Weights:
    """The weights and biases of weighted sums, with their types.

    Attributes:
        matrix: raw weights (inputs, outputs).
        kind: their type.
        bias: added to each output, as assigned to the accumulator.
        accum: the accumulator's type.
        orders: for each output, the inputs in the order in which they are added.
    """

    matrix: NDArray[np.int64]
    kind: FixedType
    bias: Exact
    accum: FixedType
    orders: Sequence[NDArray[np.int64]]

    @property
    def kept(self) -> int:
        """Multiplications by a weight that is not zero."""
        return int(np.count_nonzero(self.matrix))

    @cached_property
    def starts(self) -> list[int]:
        """Raw biases, with the accumulator's fraction."""
        raw = self.bias.into(self.accum).at_fraction(self.accum.fraction)
        return [int(value) for value in np.broadcast_to(raw.integers().reshape(-1), (self.matrix.shape[1],))]

    def with_bias(self, output: int, total: Number, negate: bool) -> Number:
        """Return the accumulator of `output`: its bias plus (minus, if `negate`) `total`, the sum of raw products."""
        start = Number.constant(total.circuit, self.starts[output], self.accum.fraction)
        total = total.scaled(-self.kind.fraction)
        return (start - total if negate else start + total).into(self.accum)

    def bounds(self, low: int, high: int) -> tuple[int, int]:
        """Bound every raw sum, without its bias, for inputs from `low` to `high`, zero among them."""
        low, high = min(low, 0), max(high, 0)
        positive = np.where(self.matrix > 0, self.matrix, 0).sum(axis=0)
        negative = np.where(self.matrix < 0, self.matrix, 0).sum(axis=0)
        return int((positive * low + negative * high).min()), int((positive * high + negative * low).max())

    def any_order(self, low: int, high: int, fraction: int) -> NDArray[np.bool_]:
        """Return for each output whether inputs from `low` to `high` can be added in any order."""
        shift = self.accum.fraction - fraction - self.kind.fraction
        count = self.matrix.shape[1]
        if shift < 0:
            return np.zeros(count, bool)
        if self.accum.overflow == "WRAP":
            return np.ones(count, bool)
        low, high = min(low, 0), max(high, 0)
        found = []
        for column, start in zip(self.matrix.T, self.starts, strict=True):
            positive, negative = int(column[column > 0].sum()), int(column[column < 0].sum())
            bottom, top = positive * low + negative * high, positive * high + negative * low
            inside = start + (bottom << shift) >= self.accum.raw_min and start + (top << shift) <= self.accum.raw_max
            found.append(inside)
        return np.array(found, bool)


def weighted(values: Sequence[Number], weights: Weights, solve: Solver) -> list[Number]:
    """Return bias plus weighted `values` for each output, as the accumulator holds them."""
    low, high = min(v.low for v in values), max(v.high for v in values)
    free = weights.any_order(low, high, values[0].fraction)
    found: dict[int, Number] = {}
    if free.any():
        chosen = np.flatnonzero(free)
        totals = matrix_product(values, weights.matrix[:, chosen], solve)
        for output, total in zip(chosen.tolist(), totals, strict=True):
            found[output] = weights.with_bias(output, *total)
    rest = np.flatnonzero(~free)
    if rest.size:
        found.update(_in_order(values, weights, [int(r) for r in rest], solve))
    return [found[output] for output in range(len(free))]


def summed(addends: Sequence[Number], accum: FixedType, tree: bool) -> Number:
    """Return the sum in `accum`: balanced, as `nnet::reduce` adds, if `tree`, else one after another from zero."""
    if tree:
        addends = [addend.into(accum) for addend in addends]
    elif accum.rounding in TOWARDS_A_SIDE:
        addends = [addend.rounded(accum) for addend in addends]
    shifts = [accum.fraction - addend.fraction for addend in addends]
    if min(shifts) >= 0:
        low = sum(min(a.low, 0) << s for a, s in zip(addends, shifts, strict=True))
        high = sum(max(a.high, 0) << s for a, s in zip(addends, shifts, strict=True))
        if accum.overflow == "WRAP" or (accum.raw_min <= low and high <= accum.raw_max):
            return balanced(addends).into(accum)
    if tree:
        return _cast_tree(addends, accum)
    return _one_after_another(Number.constant(addends[0].circuit, 0, accum.fraction), addends, accum, sums=1)


def balanced(addends: Sequence[Number]) -> Number:
    """Return the exact sum of `addends`, neighbours first."""
    return in_pairs(addends, lambda a, b: a + b)


def scaled_each(values: Sequence[Number], factors: Sequence[int], kind: FixedType, solve: Solver) -> list[Number]:
    """Return each of `values` times its raw constant of type `kind`, exact."""
    products = _products(values, list(enumerate(factors)), solve)
    return [product.scaled(-kind.fraction) for product in products]


def _cast_tree(addends: Sequence[Number], accum: FixedType) -> Number:
    if len(addends) == 1:
        return addends[0]
    # nnet::reduce puts the largest power of two below the count on the left.
    left = 1 << ((len(addends) - 1).bit_length() - 1)
    return (_cast_tree(addends[:left], accum) + _cast_tree(addends[left:], accum)).into(accum)


def _in_order(values: Sequence[Number], weights: Weights, outputs: list[int], solve: Solver) -> dict[int, Number]:
    """Return the `outputs`, if each product is assigned to the accumulator before it is added."""
    accum, circuit = weights.accum, values[0].circuit
    pairs = [
        (int(place), int(weights.matrix[place, output]))
        for output in outputs
        for place in weights.orders[output]
        if weights.matrix[place, output]
    ]
    multiples = {
        pair: product.scaled(-weights.kind.fraction).into(accum)
        for pair, product in zip(
            dict.fromkeys(pairs), _products(values, list(dict.fromkeys(pairs)), solve), strict=True
        )
    }
    found = {}
    for output in outputs:
        column = weights.matrix[:, output]
        total = Number.constant(circuit, weights.starts[output], accum.fraction)
        addends = [multiples[int(p), int(column[p])] for p in weights.orders[output] if column[p]]
        low = total.low + sum(min(a.low, 0) for a in addends)
        high = total.high + sum(max(a.high, 0) for a in addends)
        if accum.overflow == "WRAP" or (accum.raw_min <= low and high <= accum.raw_max):
            found[output] = balanced([total, *addends]).into(accum)
            continue
        found[output] = _one_after_another(total, addends, accum, len(outputs))
    return found


def _one_after_another(total: Number, addends: Sequence[Number], accum: FixedType, sums: int) -> Number:
    """Add each of `addends` to `total` in order, each sum assigned to `accum`; one of `sums` of the same inputs."""
    if accum.overflow != "SAT_ZERO" and all(addend.fraction <= accum.fraction for addend in addends):
        return saturated(total, addends, accum, sums)
    if len(addends) > LONGEST_CHAIN:
        raise RtlError(
            f"{len(addends)} numbers are added one after another, because the accumulator {accum} rounds or is set to "
            f"zero after each; the Verilog adds at most {LONGEST_CHAIN} like that: widen the accumulator"
        )
    for addend in addends:
        total = (total + addend).into(accum)
    return total


def _products(values: Sequence[Number], pairs: Sequence[tuple[int, int]], solve: Solver) -> list[Number]:
    """Compute `values[place] * factor` for each (place, factor), adders shared between those of one place."""
    matrix = np.zeros((len(values), len(pairs)), np.int64)
    for column, (place, factor) in enumerate(pairs):
        matrix[place, column] = factor
    zero = Number.constant(values[0].circuit, 0, values[0].fraction)
    return [zero - total if negate else total for total, negate in matrix_product(values, matrix, solve)]


def matrix_product(values: Sequence[Number], matrix: NDArray[np.int64], solve: Solver) -> list[tuple[Number, bool]]:
    """Compute `values @ matrix`, exact: for each output a number, and whether that is the negative of the output."""
    circuit = values[0].circuit
    values, matrix = _without_zeros(values, matrix)
    graph = solve(matrix, min(v.low for v in values), max(v.high for v in values))
    zero = Number.constant(circuit, 0, values[0].fraction)
    nodes = list(values)
    for item in graph.sums:
        a = zero if item.a < 0 else nodes[item.a]
        b = zero if item.b < 0 else nodes[item.b]
        combine = circuit.sub if item.subtract else circuit.add
        nodes.append(a.on(combine(a.place, b.place, item.p, item.q)))
    found = []
    for leaving in graph.exits:
        node = zero if leaving.node < 0 else nodes[leaving.node]
        found.append((node.shifted(leaving.shift), leaving.negate))
    return found


def _without_zeros(values: Sequence[Number], matrix: NDArray[np.int64]) -> tuple[list[Number], NDArray[np.int64]]:
    """Cut lowest bits that are always zero off `values`; also return the matrix of the same products."""
    shifts = [v.node.params[0] if v.node.op == "shl" else 0 for v in values]
    short = [v.on(v.node.args[0]) if shift else v for v, shift in zip(values, shifts, strict=True)]
    live = np.array([not (v.low == v.high == 0) for v in values])
    return short, np.where(live[:, None], matrix << np.array(shifts)[:, None], 0)
