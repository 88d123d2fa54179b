"""`Number`: a fixed-point value in a circuit, with the arithmetic of `ap_fixed`.

It mirrors `fpgaprune.emulate.exact.Exact`, value by value: sums and products are exact, and only `into` rounds and
overflows (AMD UG1399, "Arbitrary Precision Fixed-Point Data Types").
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from fpgaprune.rtl.circuit import Circuit
from fpgaprune.rtl.node import Node
from fpgaprune.values import FixedType

Item = TypeVar("Item")

# Modes that round towards one side: adding a whole number before or after rounding gives the same, and so does
# limiting a number.
TOWARDS_A_SIDE = ("TRN", "RND", "RND_MIN_INF")


@dataclass(frozen=True)
class Number:
    """The value `raw * 2 ** -fraction`, where `raw` is a node of a circuit."""

    circuit: Circuit
    place: int
    fraction: int

    @classmethod
    def constant(cls, circuit: Circuit, raw: int, fraction: int) -> Number:
        """Return the constant `raw * 2 ** -fraction`."""
        return cls(circuit, circuit.const(int(raw)), fraction)

    @property
    def node(self) -> Node:
        """The node of the raw value."""
        return self.circuit.nodes[self.place]

    @property
    def low(self) -> int:
        """Smallest raw value."""
        return self.node.low

    @property
    def high(self) -> int:
        """Largest raw value."""
        return self.node.high

    def __add__(self, other: Number) -> Number:
        fraction, a, b = self._aligned(other)
        return Number(self.circuit, self.circuit.add(self.place, other.place, a, b), fraction)

    def __sub__(self, other: Number) -> Number:
        fraction, a, b = self._aligned(other)
        return Number(self.circuit, self.circuit.sub(self.place, other.place, a, b), fraction)

    def __mul__(self, other: Number) -> Number:
        return Number(self.circuit, self.circuit.mul(self.place, other.place), self.fraction + other.fraction)

    def less(self, other: Number) -> int:
        """Return the node that is 1 if this number is less than `other`, else 0."""
        fraction = max(self.fraction, other.fraction)
        return self.circuit.less(self.at_fraction(fraction).place, other.at_fraction(fraction).place)

    def larger(self, other: Number) -> Number:
        """Return the larger of this number and `other`, which has the same fraction."""
        return self.on(self.circuit.larger(self.place, other.place))

    def negative(self) -> int:
        """Return the node that is 1 if this number is negative, else 0."""
        return self.circuit.less(self.place, self.circuit.const(0))

    def chosen(self, condition: int, other: Number) -> Number:
        """Return this number if `condition` is 1, else `other`, which has the same fraction."""
        return self.on(self.circuit.select(condition, self.place, other.place))

    def on(self, place: int) -> Number:
        """Return the number whose raw value is node `place`, with the fraction of this number."""
        return Number(self.circuit, place, self.fraction)

    def at_fraction(self, fraction: int) -> Number:
        """Return the same number with `fraction` fraction bits, which must not be fewer than it has."""
        return Number(self.circuit, self.circuit.shl(self.place, fraction - self.fraction), fraction)

    def short(self) -> Number:
        """Return the same number without lowest bits that are always zero."""
        node = self.node
        return Number(self.circuit, node.args[0], self.fraction - node.params[0]) if node.op == "shl" else self

    def scaled(self, exponent: int) -> Number:
        """Multiply by `2 ** exponent`; only the fraction of this number changes, so no bit is lost."""
        return Number(self.circuit, self.place, self.fraction - exponent)

    def shifted(self, exponent: int) -> Number:
        """Multiply by `2 ** exponent`, with the same fraction; bits below the fraction are dropped."""
        c = self.circuit
        return self.on(c.shl(self.place, exponent) if exponent >= 0 else c.shr(self.place, -exponent))

    def clipped(self, low: int, high: int) -> Number:
        """Return this number with its raw value limited to the range from `low` to `high`."""
        return self.on(self.circuit.clip(self.place, low, high))

    def between(self, low: Number, high: Number) -> Number:
        """Limit this number to the range from `low` to `high`; all three have one fraction, and `low` <= `high`."""
        if low.low == low.high and high.low == high.high:
            return self.clipped(low.low, high.low)
        return self.on(self.circuit.smaller(self.circuit.larger(self.place, low.place), high.place))

    def looked_up(self, table: Sequence[int], fraction: int) -> Number:
        """Return the raw entry of `table`, with `fraction` fraction bits, at the index that is this raw value."""
        return Number(self.circuit, self.circuit.rom(self.place, table), fraction)

    def part(self, lowest: int, bits: int) -> Number:
        """Return bits `lowest` to `lowest + bits - 1` of the raw value, read as a signed number."""
        c = self.circuit
        return self.on(c.wrap(c.shr(self.place, lowest), bits, signed=True))

    def quotient(self, divisor: int) -> Number:
        """Divide this number by a positive integer; the raw quotient is rounded towards zero."""
        c = self.circuit
        if divisor == 1:
            return self
        shift = divisor.bit_length() - 1
        if divisor == 1 << shift:
            # A shift rounds down; a negative number to which `divisor - 1` is added first is rounded towards zero.
            lift = c.select(self.negative(), c.const(divisor - 1), c.const(0))
            return self.on(c.shr(c.add(self.place, lift), shift))
        sign = self.negative()
        size = c.larger(self.place, c.sub(c.const(0), self.place))
        # Bits below the power of two in the divisor change no quotient, and narrow the multiplier.
        twos = (divisor & -divisor).bit_length() - 1
        multiplier, bits = reciprocal(divisor >> twos, max(-self.low, self.high) >> twos)
        positive = c.shr(c.mul(c.shr(size, twos), c.const(multiplier)), bits)
        return self.on(c.select(sign, c.sub(c.const(0), positive), positive))

    def into(self, kind: FixedType) -> Number:
        """Return what a variable of type `kind` holds if it is assigned this: rounded, then wrapped or saturated."""
        return self.rounded(kind)._overflowed(kind)

    def rounded(self, kind: FixedType) -> Number:
        """Round this number to the fraction of `kind` in its mode; the result may exceed the range of `kind`."""
        drop = self.fraction - kind.fraction
        if drop <= 0:
            return self.at_fraction(kind.fraction)
        if self.node.op == "clip" and kind.rounding in TOWARDS_A_SIDE:
            # Rounding keeps the order of numbers, so the bounds can follow it: comparisons of fewer bits, and an
            # addition before the bounds takes what rounding adds.
            more = {"TRN": 0, "RND": 1 << drop - 1, "RND_MIN_INF": (1 << drop - 1) - 1}[kind.rounding]
            low, high = (bound + more >> drop for bound in self.node.params)
            return self.on(self.node.args[0]).rounded(kind).clipped(low, high)
        # All numbers below a quarter of the last place round alike, so more bits than that need not be dropped.
        drop = min(drop, max(-self.low, self.high).bit_length() + 2)
        c, half = self.circuit, 1 << (drop - 1)
        place = self.place
        if kind.rounding == "RND":
            place = c.add(place, c.const(half))
        elif kind.rounding == "RND_MIN_INF":
            place = c.add(place, c.const(half - 1))
        elif kind.rounding == "RND_INF":
            place = c.add(place, c.sub(c.const(half), self.negative()))
        elif kind.rounding == "RND_ZERO":
            positive = c.less(c.const(0), place)
            place = c.add(place, c.sub(c.const(half), positive))
        elif kind.rounding == "TRN_ZERO":
            place = c.add(place, c.select(self.negative(), c.const(2 * half - 1), c.const(0)))
        elif kind.rounding == "RND_CONV":
            odd = c.wrap(c.shr(place, drop), 1, signed=False)
            place = c.add(place, c.add(c.const(half - 1), odd))
        return Number(c, c.shr(place, drop), kind.fraction)

    def _aligned(self, other: Number) -> tuple[int, int, int]:
        fraction = max(self.fraction, other.fraction)
        return fraction, fraction - self.fraction, fraction - other.fraction

    def _overflowed(self, kind: FixedType) -> Number:
        c, low, high = self.circuit, kind.raw_min, kind.raw_max
        if low <= self.low and self.high <= high:
            return self
        if kind.overflow == "WRAP":
            return self.on(c.wrap(self.place, kind.width, kind.signed))
        if kind.overflow == "SAT_ZERO":
            return self.on(c.inside(self.place, low, high))
        return self.clipped(low, high)


def in_pairs(items: Iterable[Item], joined: Callable[[Item, Item], Item]) -> Item:
    """Join `items`, at least one, by a tree of the fewest levels: neighbours first, their order kept."""
    row = list(items)
    while len(row) > 1:
        row = [joined(a, b) for a, b in zip(row[::2], row[1::2], strict=False)] + row[len(row) // 2 * 2 :]
    return row[0]


def reciprocal(divisor: int, largest: int) -> tuple[int, int]:
    """Return `(m, b)` with `x // divisor == x * m >> b` for every x from 0 to `largest`, with the smallest such m.

    The product is x / divisor + x * error / divisor / 2**b, and the second part may not reach 1 / divisor, by which x
    may be below the next quotient. Source: Granlund and Montgomery, "Division by Invariant Integers using
    Multiplication" (1994), theorem 4.2.
    """
    # The largest number just below a multiple of the divisor; where there is none, every quotient is 0.
    worst = largest - (largest + 1) % divisor
    bits = 0
    while ((-1 << bits) % divisor) * max(worst, largest if worst < 0 else 0) >= 1 << bits:
        bits += 1
    return -(-(1 << bits) // divisor), bits
