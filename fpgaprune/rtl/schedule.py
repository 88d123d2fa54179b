"""`Schedule`: in which clock cycle of a pipeline each value of a circuit is computed."""

from __future__ import annotations

from dataclasses import dataclass

from fpgaprune.rtl.circuit import COSTS, Circuit


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

    def register_bits(self, circuit: Circuit) -> int:
        """Bits of all registers of `circuit`."""
        return sum(delay * circuit.nodes[place].width for place, delay in self.delays.items())


def schedule(circuit: Circuit, levels: int) -> Schedule:
    """The stages of `circuit` with a register after every `levels` adder levels, each as early as it can be."""
    stage: dict[int, int] = {}
    # From which stage on a value is read, and the levels that it takes of that one.
    ready: dict[int, int] = {}
    used: dict[int, int] = {}
    alive = circuit.alive()
    for place in alive:
        node = circuit.nodes[place]
        first = max((ready[arg] for arg in node.args), default=0)
        before = max((used[arg] for arg in node.args if ready[arg] == first), default=0)
        cost = COSTS.get(node.op, 0)
        if before and before + cost > levels and cost:
            first, before = first + 1, 0
        stage[place], ready[place], used[place] = first, first, before + cost
        if node.op == "rom":
            # A block memory takes the first register in, and its output is late: it gets a second one.
            ready[place], used[place] = first + 2, 0
    computes = any(circuit.nodes[place].op in COSTS for place in alive)
    last = max(stage.values(), default=0)
    depth = last + 1 if computes else 0
    delays: dict[int, int] = {}

    def read(place: int, when: int) -> None:
        if circuit.nodes[place].op != "const":
            delays[place] = max(delays.get(place, 0), when - stage[place])

    for place in alive:
        for arg in circuit.nodes[place].args:
            read(arg, stage[place])
    for place, _ in circuit.outputs:
        read(place, depth)
    return Schedule(stage, depth, delays)
