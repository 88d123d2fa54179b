"""`with_small_tables`: what follows a value of few bits becomes a table, which is one LUT for each bit that it gives.

The bias, the rounding, the activation and the limits behind a sum of six bits are a function of that sum. As adders and
comparisons they take LUTs and registers for each step; as a function, each of its bits is one LUT of six inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from fpgaprune.rtl.circuit import COSTS, Circuit, Node

Values = NDArray[np.object_]

# What is made of one value by these alone is a weighted sum still, as which the Verilog is read back.
_LINEAR = frozenset({"add", "sub", "sum", "shl", "mul"})


def with_small_tables(
    circuit: Circuit, bits: int, operands: int = 2, judge: Callable[[Circuit], int] = lambda _: 0
) -> Circuit:
    """Return a circuit with the same outputs, in which functions of one value of at most `bits` bits are tables.

    A table takes the place of what is needed for it alone, where that takes more LUTs. Wiring stays wiring. Where both
    take as many, the table saves registers, unless its bits wait in shift registers for values that are done later.

    Args:
        circuit: before its sums take three operands.
        bits: of the index of a table, at most.
        operands: of an adder, at most: with three, a bias may take none of its own.
        judge: returns the LUTs that a circuit takes for values that wait.
    """
    if not bits:
        return circuit
    choices = [_Cones(circuit, bits, operands, least).result() for least in (0, 1)]
    if all(one is circuit for one, _ in choices):
        return circuit
    return min([*choices, (circuit, 0)], key=lambda choice: judge(choice[0]) - choice[1])[0]


class _Cones:
    """A circuit, and the tables that take the place of parts of it.

    Attributes:
        circuit: the old one.
        source: for each value, the earliest one of few bits of which it is a function.
        linear: values that have no source, or are weighted sums of it.
        values: those of each value of `source`, for each value that the source can have.
        reads: how often each value is read in the new circuit.
        tables: those that become tables.
        least: LUTs that each of them saves at least; with 0, the same LUTs in fewer stages will do.
        saved: LUTs that all of them save.
    """

    def __init__(self, circuit: Circuit, bits: int, operands: int, least: int) -> None:
        self.circuit, self.operands, alive = circuit, operands, circuit.alive()
        self.least, self.saved = least, 0
        nodes = circuit.nodes
        self.linear = set(alive)
        self.source: dict[int, int] = {}
        self.values: dict[int, Values] = {}
        for place in alive:
            args = [arg for arg in nodes[place].args if nodes[arg].op != "const"]
            sources = {self.source.get(arg, arg) for arg in args}
            if len(sources) == 1 and nodes[min(sources)].index_bits <= bits:
                (self.source[place],) = sources
                self.values[place] = circuit.computed(nodes[place], [self._of(arg) for arg in nodes[place].args])
                if nodes[place].op not in _LINEAR or not self.linear.issuperset(args):
                    self.linear.discard(place)
        self.reads = dict.fromkeys(alive, 0)
        for place in alive:
            for arg in nodes[place].args:
                self.reads[arg] += 1
        for place, _ in circuit.outputs:
            self.reads[place] += 1
        self.tables: set[int] = set()
        for place in reversed(alive):
            if self.reads[place] and place not in self.linear:
                self._decide(place)

    def result(self) -> tuple[Circuit, int]:
        """Return the new circuit, or the old one if nothing becomes a table, and how many LUTs that saves."""
        if not self.tables:
            return self.circuit, 0
        old, new = self.circuit, Circuit()
        new.tables, new.inputs = list(old.tables), list(old.inputs)
        places: dict[int, int] = {}
        for place, reads in self.reads.items():
            if place in self.tables:
                places[place] = new.lut(places[self.source[place]], self._table(place))
            elif reads:
                node = old.nodes[place]
                places[place] = new.copied(replace(node, args=tuple(places[arg] for arg in node.args)))
        for place, width in old.outputs:
            new.output(places[place], width)
        return new, self.saved

    def _of(self, place: int) -> Values:
        """Return what a value is for each value of its source; a source is its own."""
        node = self.circuit.nodes[place]
        if node.op == "const":
            return np.array([node.low], dtype=object)
        return self.values.get(place, np.arange(node.low, node.high + 1).astype(object))

    def _decide(self, place: int) -> None:
        """Make a table of `place` where that takes fewer LUTs than what is needed for it alone."""
        left = self._left(place)
        cone = [place, *(inner for inner, reads in left.items() if not reads)]
        nodes, source = self.circuit.nodes, self.circuit.nodes[self.source[place]]
        now, then = sum(map(self._luts, cone)), table_luts(source, self._table(place), nodes[place].width)
        levels = sum(COSTS.get(nodes[inner].op, 0) for inner in cone)
        if now - then >= max(self.least, int(levels < 2)):
            self.tables.add(place)
            self.saved += now - then
            self.reads.update(left)

    def _left(self, place: int) -> dict[int, int]:
        """Return how often each value that `place` is made of is still read, if `place` becomes a table."""
        left: dict[int, int] = {}
        stack = [place]
        while stack:
            for arg in self.circuit.nodes[stack.pop()].args:
                if arg in self.source:
                    left[arg] = left.get(arg, self.reads[arg]) - 1
                    if not left[arg]:
                        stack.append(arg)
        return left

    def _table(self, place: int) -> list[int]:
        """Return the table of `place`, in the order of the lowest bits of its source."""
        source = self.circuit.nodes[self.source[place]]
        found = [int(self.values[place].flat[0])] * (1 << source.index_bits)
        for value, entry in zip(range(source.low, source.high + 1), self.values[place], strict=True):
            found[value & (len(found) - 1)] = int(entry)
        return found

    def _luts(self, place: int) -> int:
        """Count the LUTs that synthesis makes of a value at least, by itself.

        A bit of a carry chain that adds a constant is a wire unless it is turned round, on AMD's devices. What a
        comparison limits is set or reset in its register.
        """
        node = self.circuit.nodes[place]
        args = [self.circuit.nodes[arg] for arg in node.args]
        match node.op:
            case "add" | "sub":
                fixed = next((number for number, arg in enumerate(args) if arg.op == "const"), None)
                return node.width if fixed is None else self._bias_luts(node, fixed)
            case "clip":
                return int(args[0].low < node.low) + int(args[0].high > node.high)
            case "rom":
                return node.width * max(len(self.circuit.tables[node.params[0]]) >> 6, 1)
            case "mul":
                return node.width
        return COSTS.get(node.op, 0)

    def _bias_luts(self, node: Node, fixed: int) -> int:
        """Count the LUTs of a sum with a constant, its operand number `fixed`."""
        constant, value = (self.circuit.nodes[node.args[place]] for place in (fixed, 1 - fixed))
        own, shift = node.params[fixed], node.params[1 - fixed]
        if self.reads[node.args[1 - fixed]] > 1:
            # Others turn the same bits round.
            return 0
        if self.operands == 3 and self._terms(node.args[1 - fixed]) % 2 == 0:
            return max(node.width - shift - value.width, 0)
        # The lowest bits, to which only the constant has one, are constants.
        shift += value.params[0] if value.op == "shl" else 0
        bits = max(node.width - shift, 0)
        ones = ((constant.low << own >> shift) & ((1 << bits) - 1)).bit_count()
        return bits - ones if node.op == "sub" and fixed == 0 else ones

    def _terms(self, place: int) -> int:
        """Count the operands of a sum that takes another one: one if `place` is no sum that only it reads."""
        node = self.circuit.nodes[place]
        if self.reads[place] > 1 or node.op not in ("add", "sub", "shl"):
            return 1
        return sum(self._terms(arg) for arg in node.args if self.circuit.nodes[arg].op != "const")


def table_luts(source: Node, table: Sequence[int], top: int, floor: int = 0) -> int:
    """Count the LUTs of a table: bits from `floor` up to `top` that are no constant, no bit of the index and no other.

    Args:
        source: what is the index.
        table: by the lowest bits of the index.
        top: bits that are read, from the lowest on.
        floor: how many of those are not read.
    """
    places = [value & (len(table) - 1) for value in range(source.low, source.high + 1)]

    def columns(values: Sequence[int], bits: range) -> set[tuple[int, ...]]:
        return {tuple(value >> bit & 1 for value in values) for bit in bits}

    wires = columns(places, range(source.index_bits))
    made = columns([table[place] for place in places], range(floor, top)) - wires
    return len({column for column in made if 0 < sum(column) < len(places)})
