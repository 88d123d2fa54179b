"""`Timing`: the earliest stage of each value of a circuit, and the limits of every other choice of stages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fpgaprune.rtl.circuit import COSTS, Circuit

# The first register is part of the block memory; its output comes late in the cycle, so a second register follows.
_MEMORY_STAGES = 2


@dataclass(frozen=True)
class Timing:
    """Which stages the values of a circuit can be computed in; constants have none.

    Every choice of stages within `first`, `last` and `gaps` has at most as many adder levels between two registers as
    the earliest stages: an operation that finds no room in its operand's earliest stage stays a stage behind it.

    Attributes:
        first: the earliest stage of each value that is needed, operands before users; inputs arrive in stage 0.
        last: the latest stage of each value with which the outputs still leave after `depth` registers.
        depth: registers between input and output; 0 where nothing is computed.
        gaps: for an earlier and a later value, the fewest stages between them.
    """

    first: Mapping[int, int]
    last: Mapping[int, int]
    depth: int
    gaps: Mapping[tuple[int, int], int]

    @classmethod
    def of(cls, circuit: Circuit, levels: int) -> Timing:
        """The timing of `circuit` with a register after every `levels` adder levels."""
        nodes = circuit.nodes
        places = [place for place in circuit.alive() if nodes[place].op != "const"]
        first: dict[int, int] = {}
        # Adder levels that a value and its operands use up in its stage; 0 for a memory: its readers have later stages.
        used: dict[int, int] = {}
        # The value from which wiring alone leads to this one: wiring takes no levels.
        origin: dict[int, int] = {}
        gaps: dict[tuple[int, int], int] = {}
        for place in places:
            node = nodes[place]
            args = [arg for arg in node.args if nodes[arg].op != "const"]
            ready = {arg: first[arg] + (_MEMORY_STAGES if nodes[arg].op == "rom" else 0) for arg in args}
            first[place] = max(ready.values(), default=0)
            before = max((used[arg] for arg in args if ready[arg] == first[place]), default=0)
            cost = COSTS.get(node.op, 0)
            if cost and before and before + cost > levels:
                first[place] += 1
                before = 0
            used[place] = 0 if node.op == "rom" else before + cost
            origin[place] = origin[args[0]] if args and not cost else place
            for arg in args:
                gaps[arg, place] = ready[arg] - first[arg]
            for source in {origin[arg] for arg in args if cost}:
                if used[source] and used[source] + cost > before + cost:
                    gaps[source, place] = max(1, gaps.get((source, place), 0))
        computes = any(nodes[place].op in COSTS for place in places)
        depth = max(first.values(), default=0) + 1 if computes else 0
        leaving = {place for place, _ in circuit.outputs}
        last = {}
        for place in places:
            op = nodes[place].op
            last[place] = 0 if op == "input" else depth - 1 if op in COSTS else depth
            if op == "rom" and place in leaving:
                last[place] = max(first[place], depth - _MEMORY_STAGES)
        return cls(first, last, depth, gaps)
