"""`Run`: saturating additions one after another, as a single one.

An addition adds a number and brings the total between two bounds. A run of additions equals one addition of the sum of
all addends with two other bounds: the totals that the run makes of the lowest and of the highest total. So runs join in
any grouping, and a tree of them takes as many steps as it has levels. Source: K. Papadantonakis,
N. Kapre, S. Chan and A. DeHon, Pipelining Saturated Accumulation, IEEE Transactions on Computers, 2009.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fpgaprune.rtl.number import Number, in_pairs
from fpgaprune.values import FixedType

# For each sum that reads the same inputs, so many additions follow one another in a row; a tree joins the rest. An
# addition in the row takes an adder and two comparisons; in the tree it takes three adders and four comparisons, about
# 60 bits of LUTs and registers more. But each addition in the row delays all inputs by two cycles: 16 bits for each.
_IN_A_ROW = 8
# Longer rows let the text and simulators grow by more than they save.
_LONGEST_ROW = 128


@dataclass(frozen=True)
class Run:
    """What additions do to a total: `addend` is added, and the sum brought between `low` and `high`."""

    addend: Number
    low: Number
    high: Number

    def after(self, total: Number) -> Number:
        """`total` after the additions."""
        return (total + self.addend).between(self.low, self.high)

    def then(self, later: Run) -> Run:
        """These additions and then those of `later`."""
        return Run(self.addend + later.addend, later.after(self.low), later.after(self.high))


def saturated(start: Number, addends: Sequence[Number], accum: FixedType, sums: int) -> Number:
    """`start` plus `addends` one after another, each sum saturated to `accum`, which has all of their fraction bits.

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
