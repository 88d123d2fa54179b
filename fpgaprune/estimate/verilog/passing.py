"""`Passing`: one part of the hardware as a rule for the cycles in which it offers and takes beats."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
# Cycles in which the beats of a stream are offered, and in which they are taken.
Cycles = tuple[Ints, Ints]
# A cycle before all others.
NEVER = -(1 << 40)


@dataclass(frozen=True)
class Passing:
    """One part as a rule for cycles.

    Attributes:
        beats: of a sample, in each stream that leaves.
        offers: from the cycles of the streams that it reads, when it offers each beat of the streams that leave.
        takes: from those, and the cycles in which what leaves is taken, from when on it takes each beat that it reads.
    """

    beats: tuple[int, ...]
    offers: Callable[[list[Cycles], list[Cycles]], list[Ints]]
    takes: Callable[[list[Cycles], list[Cycles]], list[Ints]]


class Ticks:
    """The cycles in which registers move that all stop while the beat that leaves them is not taken.

    Attributes:
        offered: in which cycle each beat is offered to the reader.
        stops: in which tick each beat is offered.
        lost: for each count of beats, how many cycles were lost by then.
    """

    def __init__(self, leaves: Cycles) -> None:
        self.offered, taken = leaves
        self.lost = np.concatenate(([0], np.cumsum(taken - self.offered)))
        self.stops = self.offered - self.lost[:-1]

    def before(self, cycles: Ints) -> Ints:
        """How many ticks lie before each of `cycles`."""
        if not self.lost[-1]:
            return cycles
        count = np.searchsorted(self.offered, cycles, "right")
        since = cycles - self.offered[np.maximum(count, 1) - 1]
        lost = np.minimum(self.lost[count], self.lost[np.maximum(count, 1) - 1] + since)
        found: Ints = cycles - np.where(count > 0, lost, 0)
        return found

    def cycles(self, ticks: Ints) -> Ints:
        """In which cycle each of `ticks` is."""
        if not self.lost[-1]:
            return ticks
        found: Ints = ticks + self.lost[np.searchsorted(self.stops, ticks, "right")]
        return found


def one_by_one(cycles: Ints) -> Ints:
    """The first cycles not before `cycles` of which no two are the same, in order."""
    place = np.arange(cycles.size)
    found: Ints = np.maximum.accumulate(cycles - place) + place
    return found


def later(cycles: Ints, count: int) -> Ints:
    """`cycles` of the beat that lies `count` beats before; NEVER where there is none."""
    if count <= 0:
        return cycles
    return np.concatenate((np.full(min(count, cycles.size), NEVER), cycles[: max(cycles.size - count, 0)]))


def by_sample(cycles: Ints, beats: int) -> Ints:
    """`cycles` as rows, one for each sample of so many beats."""
    return cycles.reshape(-1, beats)
