"""`PlainTrees`: the adder trees of a matrix in which nothing is shared: their adders, bits and registers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fpgaprune.estimate.verilog.signed_pairs import SignedDigits

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class PlainTrees:
    """What the trees of `fpgaprune.rtl` take for a matrix if no pair of digits is added once for several sums.

    Attributes:
        adders: how many.
        differences: those that subtract.
        chain_bits, pair_bits, lone_bits, register_bits: as in `fpgaprune.rtl.Trees`.
        width_bits: bits of all results.
        depth: adders that the longest sum passes.
        low, high: bounds of each sum.
        exponent: of the power of two by which each sum can be divided.
        early: how many adders sooner than the longest each sum is done.
    """

    adders: int
    differences: int
    chain_bits: int
    pair_bits: int
    lone_bits: int
    register_bits: int
    width_bits: int
    depth: int
    low: Ints
    high: Ints
    exponent: Ints
    early: Ints

    @classmethod
    def of(cls, digits: SignedDigits, low: Ints, high: Ints) -> PlainTrees:
        """Return the trees of `digits` for inputs between `low` and `high`, one of each for each input."""
        counts = digits.by_column
        depth = max(int(counts.max(initial=0)) - 1, 0).bit_length()
        level = _Level.of(digits, low, high)
        total = np.zeros(7, np.int64)
        for stage in range(depth):
            level = level.next(total, stage)
        ends = [np.zeros(digits.outputs, np.int64) for _ in range(4)]
        for end, values in zip(ends, (*level.ends(), depth - level.born), strict=True):
            end[level.column] = values
        # A sum has a register behind it, and waits for the longest one.
        waits = _held(level.low, level.high) * (depth - level.born + (level.born > 0))
        total[5] += int(waits[counts[level.column] > 1].sum())
        adders, differences, chain, pair, lone, registers, width = total.tolist()
        return cls(adders, differences, chain, pair, lone, registers, width, depth, *ends)


@dataclass
class _Level:
    """Summands left to add, column by column; the earliest first, then the least shifted."""

    column: Ints
    shift: Ints
    low: Ints
    high: Ints
    sign: Ints
    born: Ints

    @classmethod
    def of(cls, digits: SignedDigits, low: Ints, high: Ints) -> _Level:
        order = np.lexsort((digits.row, digits.shift, digits.column))
        row = digits.row[order]
        zero = np.zeros(row.size, np.int64)
        return cls(digits.column[order], digits.shift[order], low[row], high[row], digits.sign[order], zero)

    def ends(self) -> tuple[Ints, Ints, Ints]:
        """Return the bounds and exponents of what is left, one for each column that has digits."""
        negative = self.sign < 0
        low, high = np.where(negative, -self.high, self.low), np.where(negative, -self.low, self.high)
        return low, high, self.shift

    def next(self, total: Ints, stage: int) -> _Level:
        """Add neighbours; add the adders, bits of two kinds and register bits that this takes to `total`."""
        starts = np.flatnonzero(np.diff(self.column, prepend=-1))
        sizes = np.diff(starts, append=self.column.size)
        place = np.arange(self.column.size) - np.repeat(starts, sizes)
        alone = (place == np.repeat(sizes, sizes) - 1) & (place % 2 == 0)
        one = np.flatnonzero(~alone & (place % 2 == 0))
        two = one + 1
        last = np.repeat(sizes, sizes)[one] == 2
        added, bits = self._added(one, two, last, stage)
        total[[0, 1, 2, 3, 4, 6]] += bits
        total[5] += int(self._waits(np.concatenate((one, two)), stage))
        left = np.flatnonzero(alone)
        parts = [
            np.concatenate((mine, new))
            for mine, new in zip((getattr(self, name)[left] for name in _NAMES), added, strict=True)
        ]
        # What waits has fewer adders behind it, so that it comes first.
        order = np.lexsort((parts[1], parts[5], parts[0]))
        return _Level(*(part[order] for part in parts))

    def _waits(self, places: Ints, stage: int) -> int:
        """Register bits of the values that are read now; an input needs none before it is read."""
        life = np.where(self.born[places] > 0, stage + 1 - self.born[places], stage)
        return int((life * _held(self.low[places], self.high[places])).sum())

    def _added(self, one: Ints, two: Ints, last: NDArray[np.bool_], stage: int) -> tuple[list[Ints], Ints]:
        differ = self.sign[one] != self.sign[two]
        same_shift = self.shift[one] == self.shift[two]
        swap = differ & np.where(last | same_shift, self.sign[one] < 0, self.shift[one] > self.shift[two])
        a, b = np.where(swap, two, one), np.where(swap, one, two)
        base = np.minimum(self.shift[a], self.shift[b])
        p, q = self.shift[a] - base, self.shift[b] - base
        low_b = np.where(differ, -self.high[b], self.low[b])
        high_b = np.where(differ, -self.low[b], self.high[b])
        low, high = (self.low[a] << p) + (low_b << q), (self.high[a] << p) + (high_b << q)
        width = widths(low, high)
        free = np.where(differ, q, np.maximum(p, q))
        tops = [
            np.where(self.low[x] < 0, width, widths(self.low[x], self.high[x]) - 1 + s) for x, s in ((a, p), (b, q))
        ]
        pair = np.minimum(np.minimum(*tops), width) - np.maximum(p, q)
        pair = np.maximum(pair, 0)
        chain = width - free
        lone = np.where(differ, chain - pair, 0)
        bits = np.array([one.size, differ.sum(), *(part.sum() for part in (chain, pair, lone, width))])
        return [self.column[a], base, low, high, self.sign[a], np.full(one.size, stage + 1)], bits


_NAMES = ("column", "shift", "low", "high", "sign", "born")


def widths(low: Ints, high: Ints) -> Ints:
    """Count the bits of two's complement that hold every number between two bounds."""
    largest = np.maximum(np.where(low < 0, -low - 1, 0), np.maximum(high, 0))
    return np.frexp(largest.astype(np.float64))[1].astype(np.int64) + 1


def _held(low: Ints, high: Ints) -> Ints:
    """Count the bits of a register; what is never negative needs none for its sign."""
    found: Ints = widths(low, high) - (low >= 0)
    return found
