"""`Schedule`: in which cycle of a pipeline each value of a circuit is computed."""

from __future__ import annotations

from dataclasses import dataclass

from fpgaprune.rtl.circuit import Circuit
from fpgaprune.rtl.retime import Lives, fewest_registers
from fpgaprune.rtl.timing import Timing

# Register bits of a circuit; fewer are not worth a search.
_FEW = 4000


@dataclass(frozen=True)
class Schedule:
    """Pipeline stages of a circuit's values.

    Attributes:
        stage: of each node that is needed; inputs arrive in stage 0.
        depth: registers between input and output; 0 where nothing is computed.
        delays: for each node, after how many registers it is still read.
    """

    stage: dict[int, int]
    depth: int
    delays: dict[int, int]

    @classmethod
    def of(cls, circuit: Circuit, stage: dict[int, int], depth: int) -> Schedule:
        """The schedule with these stages; a constant can be read in any stage."""
        stage = {place: stage.get(place, 0) for place in circuit.alive()}
        delays: dict[int, int] = {}

        def read(place: int, when: int) -> None:
            if circuit.nodes[place].op != "const":
                delays[place] = max(delays.get(place, 0), when - stage[place])

        for place, when in stage.items():
            for arg in circuit.nodes[place].args:
                read(arg, when)
        for place, _ in circuit.outputs:
            read(place, depth)
        return cls(stage, depth, delays)

    def register_bits(self, circuit: Circuit) -> int:
        """Bits of all registers of `circuit`."""
        return sum(delay * circuit.nodes[place].width for place, delay in self.delays.items())


def schedule(circuit: Circuit, levels: int) -> Schedule:
    """The stages of `circuit` with a register after every `levels` adder levels.

    It has the fewest stages, and of all choices with that many stages the fewest register bits.
    """
    timing = Timing.of(circuit, levels)
    if timing.depth == 0:
        return Schedule.of(circuit, dict(timing.first), 0)
    stages = fewest_registers(Lives.of(circuit, timing)).tolist()
    return Schedule.of(circuit, dict(zip(timing.first, stages, strict=True)), timing.depth)


def quick_schedule(circuit: Circuit, levels: int) -> Schedule:
    """The stages of `circuit`, as many as those of `schedule`: as early as can be, if that takes few registers."""
    timing = Timing.of(circuit, levels)
    found = Schedule.of(circuit, dict(timing.first), timing.depth)
    return found if found.register_bits(circuit) <= _FEW else schedule(circuit, levels)
