"""`Bus`: values side by side, with the bounds of each."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from fpgaprune.rtl.node import width_of


@dataclass(frozen=True)
class Lane:
    """One value of every beat: its raw bounds, and how many of its lowest bits are always zero."""

    low: int
    high: int
    zeros: int

    @property
    def signed(self) -> bool:
        """Whether it can be negative."""
        return self.low < 0

    @property
    def width(self) -> int:
        """Bits that its values take on a packed bus; 0 if it is always zero."""
        return width_of(self.low >> self.zeros, self.high >> self.zeros) - (0 if self.signed else 1)


def around(lanes: Sequence[Lane]) -> Lane:
    """Return the bounds of a value that may be any of those of `lanes`."""
    low, high = min(lane.low for lane in lanes), max(lane.high for lane in lanes)
    return Lane(low, high, min(lane.zeros for lane in lanes))


@dataclass(frozen=True)
class Place:
    """Where a value lies on a bus.

    Attributes:
        lowest, bits: its lowest bit, and how many it takes; 0 if it is always zero.
        signed: whether these bits are a signed number.
        zeros: how many zeros end the raw value.
        low, high: bounds of the number before them.
        carried: how many of these zeros are among the bits.
    """

    lowest: int
    bits: int
    signed: bool
    zeros: int
    low: int
    high: int
    carried: int = 0


@dataclass(frozen=True)
class Bus:
    """The values of a beat side by side, the first in the lowest bits.

    Attributes:
        lanes: of each value; they repeat where the bus carries more values.
        width: bits that each value takes; None where each takes those that its bounds need.
        signed: whether values of one width are signed numbers.
    """

    lanes: tuple[Lane, ...]
    width: int | None
    signed: bool

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> Self:
        """Return the bus of a row of JSON."""
        return cls(tuple(Lane(**lane) for lane in row["lanes"]), row["width"], row["signed"])

    def unbounded(self) -> Bus:
        """Return the same bus, whose values may be any that their bits hold."""
        if self.width is not None:
            low = -(1 << self.width - 1) if self.signed else 0
            return Bus((Lane(low, low + (1 << self.width) - 1, 0),), self.width, self.signed)
        lanes = []
        for lane in self.lanes:
            low = -(1 << lane.width - 1) if lane.signed else 0
            lanes.append(Lane(low << lane.zeros, (low + (1 << lane.width) - 1) << lane.zeros, lane.zeros))
        return Bus(tuple(lanes), None, self.signed)

    def any_of(self) -> Bus:
        """Return the same bus, each of whose values may be what any of them may be."""
        return replace(self, lanes=(around(self.lanes),))

    def contains(self, other: Bus) -> bool:
        """Return whether each value of `other`, repeated as this bus repeats its own, is within this bus's bounds."""
        count = math.lcm(len(self.lanes), len(other.lanes))
        pairs = ((self.lanes[n % len(self.lanes)], other.lanes[n % len(other.lanes)]) for n in range(count))
        return all(mine.low <= lane.low and lane.high <= mine.high and mine.zeros <= lane.zeros for mine, lane in pairs)

    def places(self, count: int) -> Iterator[Place]:
        """Yield where each of `count` values lies."""
        lowest = 0
        for number in range(count):
            lane = self.lanes[number % len(self.lanes)]
            if self.width is not None:
                yield Place(lowest, self.width, self.signed, 0, lane.low, lane.high)
                lowest += self.width
            else:
                low, high = lane.low >> lane.zeros, lane.high >> lane.zeros
                yield Place(lowest, lane.width, lane.signed, lane.zeros, low, high)
                lowest += lane.width
