"""`looped`: the cycles in which a recurrent layer takes its inputs and offers its outputs, step by step."""

from __future__ import annotations

import numpy as np

from fpgaprune.estimate.verilog.passing import NEVER, Cycles, Ints, Passing, by_sample
from fpgaprune.rtl import Instance

# From when an output leaves the state's pipeline until it stands before the sums again.
_BACK = 2


def looped(i: Instance, delays: Ints, busy: int) -> Passing:
    """Model a loop: a step's inputs come while the one before is under way; its outputs come back one by one.

    Args:
        i: the module that leads data through the loop.
        delays: from the last value that goes to the sums of a step until each output of that step is offered.
        busy: cycles between two steps of which the later one need not wait for the earlier one's outputs.
    """
    inputs, units, steps = i["INPUTS"], i["UNITS"], i["STEPS"]
    leaving = np.arange(steps) if i["SEQUENCES"] else np.array([steps - 1])
    # What comes back, and what comes in, goes on in order, one in a cycle.
    behind, rest = np.arange(units)[::-1], np.arange(inputs)[::-1]
    back = int((delays + behind).max()) + _BACK

    def begins(ins: list[Cycles], outs: list[Cycles]) -> tuple[Ints, Ints]:
        """Return for each step the cycle of its last value, and the cycle in which the sums begin with that value."""
        arrived = (by_sample(ins[0][1], inputs) + rest).max(axis=1)
        read = np.full(arrived.size, NEVER)
        of_step = (by_sample(outs[0][1], units) + behind).max(axis=1) + _BACK
        read.reshape(-1, steps)[:, leaving] = of_step.reshape(-1, leaving.size)
        ends, starts = np.empty_like(arrived), np.empty_like(arrived)
        end = start = -busy
        for number, come in enumerate(arrived.tolist()):
            end = max(end + inputs, come) + units
            if number % steps:
                end = max(end, start + back, int(read[number - 1]))
            start = max(end, start + busy)
            ends[number], starts[number] = end, start
        return ends, starts

    def offers(ins: list[Cycles], outs: list[Cycles]) -> list[Ints]:
        _, starts = begins(ins, outs)
        return [(starts.reshape(-1, steps)[:, leaving].reshape(-1, 1) + delays).reshape(-1)]

    def takes(ins: list[Cycles], outs: list[Cycles]) -> list[Ints]:
        ends, _ = begins(ins, outs)
        return [np.repeat(np.concatenate(([NEVER], ends[:-1] + 1)), inputs)]

    return Passing((leaving.size * units,), offers, takes)
