"""`Schedule`: in which cycle of a pipeline each value of a circuit is computed, with the fewest register bits.

A value lives from its own stage to that of its last reader and takes its width in registers for each stage. The sum of
these bits is an L-natural-convex function of the stages: unless it is at its minimum, some set of values lowers it by
moving one stage later together (K. Murota, Discrete Convex Analysis, 2003, chapter 10). A minimum cut finds the best
such set. The smallest of the best is unique, so equal circuits get equal stages. A register with several readers counts
once (C. Leiserson and J. Saxe, Retiming Synchronous Circuitry, 1991).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from fpgaprune.rtl.circuit import COSTS, Circuit

_MOST_BITS = 2**31 - 1
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
        """Return the timing of `circuit` with a register after every `levels` adder levels."""
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


Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Lives:
    """How long the values of a pipeline are kept, as arrays with an entry for each value.

    Attributes:
        first, last: the earliest and the latest stage of each value.
        width: of each value, in bits.
        leaves: whether it is read at the end of the pipeline.
        depth: the stage of that end.
        gaps: three rows: an earlier value, a later value, the fewest stages between them.
        reads: three rows: a value, its reader, how many stages after the reader's own stage it is read.
    """

    first: Ints
    last: Ints
    width: Ints
    leaves: NDArray[np.bool_]
    depth: int
    gaps: Ints
    reads: Ints

    @classmethod
    def of(cls, circuit: Circuit, timing: Timing) -> Lives:
        """Return the lives of a circuit's values, in the order of the timing."""
        number = {place: n for n, place in enumerate(timing.first)}
        leaving = {place for place, _ in circuit.outputs}
        pairs = {(number[arg], number[p]) for p in number for arg in circuit.nodes[p].args if arg in number}
        gaps = [(number[a], number[b], gap) for (a, b), gap in timing.gaps.items()]
        return cls(
            np.array(list(timing.first.values()), np.int64),
            np.array([timing.last[place] for place in number], np.int64),
            np.array([circuit.nodes[place].width for place in number], np.int64),
            np.array([place in leaving for place in number], np.bool_),
            timing.depth,
            np.array(gaps, np.int64).reshape(-1, 3).T,
            np.array([(*pair, 0) for pair in sorted(pairs)], np.int64).reshape(-1, 3).T,
        )

    def read_at(self, stage: Ints) -> Ints:
        """Return the stage of each of `reads`."""
        _, reader, after = self.reads
        found: Ints = stage[reader] + after
        return found

    def ends(self, stage: Ints) -> Ints:
        """Return the stage in which each value is read last."""
        found = np.where(self.leaves, self.depth, stage)
        np.maximum.at(found, self.reads[0], self.read_at(stage))
        return found

    def best_to_move(self, stage: Ints) -> NDArray[np.bool_]:
        """Return the smallest set of values that saves the most bits by moving one stage later; none where none does.

        Values on the source's side of the cut move, and so do the ends of lives on that side. A value that stays costs
        its width, and so does an end that moves; values that must move together are tied by more than all widths.
        """
        # Importing scipy takes longer than scheduling most circuits.
        from scipy.sparse import csr_matrix
        from scipy.sparse.csgraph import breadth_first_order, maximum_flow

        count = len(stage)
        value, end, source, sink = np.arange(count), np.arange(count, 2 * count), 2 * count, 2 * count + 1
        behind, ahead, gap = self.gaps
        tight = stage[ahead] - stage[behind] == gap
        read, reader, _ = self.reads[:, self.read_at(stage) == self.ends(stage)[self.reads[0]]]
        reader = reader[~self.leaves[read]]
        read = read[~self.leaves[read]]
        stuck = np.flatnonzero(stage == self.last)
        starts = np.concatenate([np.full(count, source), end, behind[tight], reader, stuck])
        stops = np.concatenate([value, np.full(count, sink), ahead[tight], end[read], np.full(len(stuck), sink)])
        # scipy cuts in whole numbers of 32 bits; joined buses of a large layer have more bits than these count.
        width = self.width
        while width.sum() >= _MOST_BITS:
            width = np.maximum(width // 2, 1)
        tied = np.full(len(starts) - 2 * count, width.sum() + 1)
        bits = np.concatenate([width, width, tied]).astype(np.int32)
        network = csr_matrix((bits, (starts, stops)), shape=(2 * count + 2, 2 * count + 2))
        room = network - maximum_flow(network, source, sink).flow
        room.eliminate_zeros()
        reached = breadth_first_order(room, source, return_predecessors=False)
        moved = np.zeros(2 * count + 2, np.bool_)
        moved[reached] = True
        return moved[:count]

    def stages_alike(self, stage: Ints, later: NDArray[np.bool_]) -> int:
        """Return how many stages the values `later` can move at once, if each stage saves as many bits as the first."""
        behind, ahead, gap = self.gaps
        apart = (stage[ahead] - stage[behind] - gap)[later[behind] & ~later[ahead]]
        read, reader, _ = self.reads
        left = self.ends(stage)[read] - self.read_at(stage)
        moving = np.zeros(len(stage), np.bool_)
        moving[read[later[reader] & (left == 0)]] = True
        until_last = left[later[reader] & ~moving[read]]
        return int(min(part.min(initial=self.depth) for part in (self.last[later] - stage[later], apart, until_last)))


def fewest_registers(lives: Lives) -> Ints:
    """Return a stage for each value, from the earliest on; no other choice takes fewer register bits."""
    stage = lives.first.copy()
    while (later := lives.best_to_move(stage)).any():
        stage[later] += lives.stages_alike(stage, later)
    return stage


# Registers in a row that are a shift register.
_ROW = 3
# Register bits of a circuit; fewer are not worth a search.
_FEW = 4000


@dataclass(frozen=True)
class Schedule:
    """Pipeline stages of a circuit's values.

    Attributes:
        stage: of each node that is needed; inputs arrive in stage 0.
        depth: registers between input and output; 0 where nothing is computed.
        delays: for each node, after how many registers it is still read.
        settles: clocks after which the outputs stand still, if the inputs do; 0 where another input may follow each.
    """

    stage: dict[int, int]
    depth: int
    delays: dict[int, int]
    settles: int = 0

    @classmethod
    def of(cls, circuit: Circuit, stage: dict[int, int], depth: int) -> Schedule:
        """Return the schedule with these stages; a constant can be read in any stage."""
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

    def lag(self, place: int, when: int) -> int:
        """Count the registers behind which the value of `place` is read in stage `when`."""
        return min(when - self.stage[place], self.delays.get(place, 0))

    def settled(self, circuit: Circuit) -> Schedule:
        """Return the same stages for an input that stands still: a value needs one register however long it is read."""
        most = {"input": 0, "rom": _MEMORY_STAGES}
        delays = {place: min(delay, most.get(circuit.nodes[place].op, 1)) for place, delay in self.delays.items()}
        plan = replace(self, delays=delays)
        clocks: dict[int, int] = {}
        for place, stage in self.stage.items():
            clocks[place] = max((clocks[arg] + plan.lag(arg, stage) for arg in circuit.nodes[place].args), default=0)
        settles = max((clocks[place] + plan.lag(place, self.depth) for place, _ in circuit.outputs), default=0)
        return replace(plan, settles=settles)

    def shift_luts(self, circuit: Circuit) -> int:
        """Count the bits of registers in a row that no one reads between: AMD's devices keep each row in a LUT."""
        # The first register behind a comparison is set or reset by it, which no shift register can be.
        read = {place: {int(circuit.nodes[place].op in ("clip", "inside"))} for place in self.delays}
        reads = [(arg, when) for place, when in self.stage.items() for arg in circuit.nodes[place].args]
        for place, when in (*reads, *((place, self.depth) for place, _ in circuit.outputs)):
            if place in read:
                read[place].add(self.lag(place, when))
        rows = {place: sum(two - one >= _ROW for one, two in pairwise(sorted(taps))) for place, taps in read.items()}
        return sum(circuit.nodes[place].index_bits * count for place, count in rows.items())

    def register_bits(self, circuit: Circuit) -> int:
        """Count the bits of all registers of `circuit`."""
        return sum(delay * circuit.nodes[place].width for place, delay in self.delays.items())


def schedule(circuit: Circuit, levels: int) -> Schedule:
    """Return the stages of `circuit` with a register after every `levels` adder levels.

    It has the fewest stages, and of all choices with that many stages the fewest register bits.
    """
    timing = Timing.of(circuit, levels)
    if timing.depth == 0:
        return Schedule.of(circuit, dict(timing.first), 0)
    stages = fewest_registers(Lives.of(circuit, timing)).tolist()
    return Schedule.of(circuit, dict(zip(timing.first, stages, strict=True)), timing.depth)


def quick_schedule(circuit: Circuit, levels: int) -> Schedule:
    """Schedule `circuit` in as many stages as `schedule` does: as early as can be, if that takes few registers."""
    timing = Timing.of(circuit, levels)
    found = Schedule.of(circuit, dict(timing.first), timing.depth)
    return found if found.register_bits(circuit) <= _FEW else schedule(circuit, levels)
