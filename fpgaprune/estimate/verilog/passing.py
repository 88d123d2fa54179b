"""`Passing`: the cycles in which one part of the hardware, `fp_scheduled` too, offers and takes beats."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fpgaprune.rtl import BEATS_FREE, LEAVES, SUMS_FREE, TURNING, Instance, product_cycles

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
    """Cycles in which registers move, if all of them stop while the beat at their end is not taken.

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
        """Return how many ticks lie before each of `cycles`."""
        if not self.lost[-1]:
            return cycles
        count = np.searchsorted(self.offered, cycles, "right")
        since = cycles - self.offered[np.maximum(count, 1) - 1]
        lost = np.minimum(self.lost[count], self.lost[np.maximum(count, 1) - 1] + since)
        found: Ints = cycles - np.where(count > 0, lost, 0)
        return found

    def cycles(self, ticks: Ints) -> Ints:
        """Return in which cycle each of `ticks` is."""
        if not self.lost[-1]:
            return ticks
        found: Ints = ticks + self.lost[np.searchsorted(self.stops, ticks, "right")]
        return found


def one_by_one(cycles: Ints) -> Ints:
    """Return the first cycles not before `cycles` of which no two are the same, in order."""
    place = np.arange(cycles.size)
    found: Ints = np.maximum.accumulate(cycles - place) + place
    return found


def later(cycles: Ints, count: int) -> Ints:
    """Return `cycles` of the beat that lies `count` beats before; NEVER where there is none."""
    if count <= 0:
        return cycles
    return np.concatenate((np.full(min(count, cycles.size), NEVER), cycles[: max(cycles.size - count, 0)]))


def by_sample(cycles: Ints, beats: int) -> Ints:
    """Return `cycles` as rows, one for each sample of so many beats."""
    return cycles.reshape(-1, beats)


def scheduled(i: Instance) -> Passing:
    """Model places, one or two at once, that start when their beats are in, earlier steps done, and room is there."""
    places, together, channels = i["PLACES"], i["TOGETHER"], i["CHANNELS"]
    product = product_cycles(i["TOGETHER"], bool(i["IN_LUTS"]))
    outputs, steps, turns = i["OUTPUTS"], i["STEPS"], i["TURNS"]
    groups = -(-places // together)
    ends = np.minimum(np.arange(1, groups + 1) * together, places)
    last_in, last_out = ends * channels - 1, ends * outputs - 1
    # Output by output, the turn with its last sum; places that are together leave one after the other.
    turn = (np.arange(1, outputs + 1) * turns) // outputs - 1
    within = np.arange(places) % together
    turn_of = (within[:, None] * turns + turn).reshape(-1)
    group_of = np.repeat(np.arange(places) // together, outputs)

    # Of an odd number of places the last one is alone.
    lasts = np.minimum(together, places - np.arange(groups) * together) * turns

    def starts(taken: Ints, ticks: Ticks) -> Ints:
        first = by_sample(taken, places * channels)[:, last_in].reshape(-1) + 1
        left = ticks.before(by_sample(ticks.offered, places * outputs)[:, last_out].reshape(-1))
        free = ticks.cycles(left - SUMS_FREE) + 1
        first[i["BUFFERS"] :] = np.maximum(first[i["BUFFERS"] :], free[: -i["BUFFERS"]])
        return apart(first, np.full(first.size, steps))

    def offers(ins: list[Cycles], outs: list[Cycles]) -> list[Ints]:
        ticks = Ticks(outs[0])
        begin = ticks.before(starts(ins[0][1], ticks) + steps + i["LEVELS"] + product + LEAVES - TURNING) + TURNING
        rows = apart(begin, np.tile(lasts, begin.size // groups)).reshape(-1, groups)
        return [ticks.cycles((rows[:, group_of] + turn_of).reshape(-1) - 1) + 1]

    def takes(ins: list[Cycles], outs: list[Cycles]) -> list[Ints]:
        begin = starts(ins[0][1], Ticks(outs[0]))
        room = np.full(begin.size, NEVER)
        room[i["SIDES"] :] = begin[: -i["SIDES"]] + steps + BEATS_FREE
        of_beat = np.arange(places * channels) // (together * channels)
        return [room.reshape(-1, groups)[:, of_beat].reshape(-1)]

    return Passing((places * outputs,), offers, takes)


def apart(cycles: Ints, lengths: Ints) -> Ints:
    """Return the first cycles not before `cycles`, in order, of which each is at least its length before the next."""
    base = np.cumsum(lengths) - lengths
    found: Ints = np.maximum.accumulate(cycles - base) + base
    return found
