"""When `fp_scheduled` takes and offers beats."""

from __future__ import annotations

import numpy as np

from fpgaprune.estimate.verilog.passing import NEVER, Cycles, Ints, Passing, Ticks, by_sample
from fpgaprune.rtl import BEATS_FREE, LEAVES, SUMS_FREE, TURNING, Instance


def scheduled(i: Instance) -> Passing:
    """Places, one or two together, start when their beats have come, the steps before are done, and there is room."""
    places, together, channels = i["PLACES"], i["TOGETHER"], i["CHANNELS"]
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
        return _apart(first, np.full(first.size, steps))

    def offers(ins: list[Cycles], outs: list[Cycles]) -> list[Ints]:
        ticks = Ticks(outs[0])
        begin = ticks.before(starts(ins[0][1], ticks) + steps + i["LEVELS"] + together + LEAVES - TURNING) + TURNING
        rows = _apart(begin, np.tile(lasts, begin.size // groups)).reshape(-1, groups)
        return [ticks.cycles((rows[:, group_of] + turn_of).reshape(-1) - 1) + 1]

    def takes(ins: list[Cycles], outs: list[Cycles]) -> list[Ints]:
        begin = starts(ins[0][1], Ticks(outs[0]))
        room = np.full(begin.size, NEVER)
        room[i["SIDES"] :] = begin[: -i["SIDES"]] + steps + BEATS_FREE
        of_beat = np.arange(places * channels) // (together * channels)
        return [room.reshape(-1, groups)[:, of_beat].reshape(-1)]

    return Passing((places * outputs,), offers, takes)


def _apart(cycles: Ints, lengths: Ints) -> Ints:
    """The first cycles not before `cycles`, in order, of which each is at least its length before the next."""
    base = np.cumsum(lengths) - lengths
    found: Ints = np.maximum.accumulate(cycles - base) + base
    return found
