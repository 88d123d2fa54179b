"""When `fp_scheduled` takes and offers beats."""

from __future__ import annotations

import numpy as np

from fpgaprune.estimate.verilog.passing import NEVER, Cycles, Ints, Passing, by_sample
from fpgaprune.rtl import Instance

# Cycles from the start of a place's steps, beside them, until its beats' memory is free and until its first sum leaves;
# and those between its last sum and the start of the place that takes its memory of sums.
_FREE, _LEAVES, _AGAIN = 3, 11, 2


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

    def starts(taken: Ints, left: Ints | None) -> Ints:
        first = by_sample(taken, places * channels)[:, last_in].reshape(-1) + 1
        if left is not None:
            gone = by_sample(left, places * outputs)[:, last_out].reshape(-1) - _AGAIN
            first[i["BUFFERS"] :] = np.maximum(first[i["BUFFERS"] :], gone[: -i["BUFFERS"]])
        return _apart(first, steps)

    def offers(ins: list[Cycles]) -> list[Ints]:
        begin = starts(ins[0][1], None) + steps + i["LEVELS"] + together + _LEAVES
        rows = _apart(begin, turns * together).reshape(-1, groups)
        return [(rows[:, group_of] + turn_of).reshape(-1)]

    def takes(ins: list[Cycles], outs: list[Ints]) -> list[Ints]:
        begin = starts(ins[0][1], outs[0])
        room = np.full(begin.size, NEVER)
        room[i["SIDES"] :] = begin[: -i["SIDES"]] + steps + _FREE
        of_beat = np.arange(places * channels) // (together * channels)
        return [room.reshape(-1, groups)[:, of_beat].reshape(-1)]

    return Passing((places * outputs,), offers, takes)


def _apart(cycles: Ints, count: int) -> Ints:
    """The first cycles not before `cycles` of which two are at least `count` apart, in order."""
    base = np.arange(cycles.size) * count
    found: Ints = np.maximum.accumulate(cycles - base) + base
    return found
