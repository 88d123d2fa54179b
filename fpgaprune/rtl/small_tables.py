"""`with_small_tables`: what is made of values of few bits becomes a table, which is one LUT for each bit that it gives.

The bias, the rounding, the activation and the limits behind a sum of six bits are a function of that sum. As adders and
comparisons they take LUTs and registers for each step; as a function, each of its bits is one LUT of six inputs. A sum
of three values of two bits is part of that function. What is tried for a value is known from mapping to LUTs: sets of
values before it of which it is a function (J. Cong and Y. Ding, FlowMap, IEEE Transactions on CAD, 1994).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from fpgaprune.rtl.circuit import COSTS, Circuit
from fpgaprune.rtl.node import Node, computed_node
from fpgaprune.rtl.table_index import index_of, reached

# What is made of one value by these alone is a weighted sum still, as which the Verilog is read back.
_LINEAR = frozenset({"add", "sub", "sum", "shl", "mul"})


def with_small_tables(
    circuit: Circuit, bits: int, operands: int = 2, judge: Callable[[Circuit], int] = lambda _: 0
) -> Circuit:
    """Return a circuit with the same outputs, in which functions of values of `bits` bits together are tables.

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


# For each value, so many sets of sources are tried.
_SETS = 8


class _Cones:
    """A circuit, and the tables that take the place of parts of it.

    Attributes:
        circuit: the old one.
        sources: for each value, sets of values of few bits together of which it is a function.
        linear: values that have no sources, or are weighted sums of them.
        reads: how often each value is read in the new circuit.
        reader: one that reads each value.
        tables: those that become tables, with their sources.
        least: LUTs that each of them saves at least; with 0, the same LUTs in fewer stages will do.
        saved: LUTs that all of them save.
    """

    def __init__(self, circuit: Circuit, bits: int, operands: int, least: int) -> None:
        self.circuit, self.bits, self.operands, self.least, self.saved = circuit, bits, operands, least, 0
        alive, nodes = circuit.alive(), circuit.nodes
        self.linear = set(alive)
        self.sources: dict[int, list[tuple[int, ...]]] = {}
        for place in alive:
            args = [arg for arg in nodes[place].args if nodes[arg].op != "const"]
            # A memory stays one: it has registers of its own, and the proof reads its entries.
            self.sources[place] = self._sets(args) if args and nodes[place].op != "rom" else []
            if self.sources[place] and (nodes[place].op not in _LINEAR or not self.linear.issuperset(args)):
                self.linear.discard(place)
        self.reads = dict.fromkeys(alive, 0)
        self.reader: dict[int, int] = {}
        for place in alive:
            for arg in nodes[place].args:
                self.reads[arg] += 1
                self.reader[arg] = place
        for place, _ in circuit.outputs:
            self.reads[place] += 1
        self.tables: dict[int, tuple[int, ...]] = {}
        for place in reversed(alive):
            if self.reads[place] and place not in self.linear and not (operands == 3 and self._joins(place)):
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
                sources = self.tables[place]
                bits = [old.nodes[source].index_bits for source in sources]
                places[place] = new.lut([places[one] for one in sources], bits, self._table(place, sources))
            elif reads:
                node = old.nodes[place]
                places[place] = new.copied(replace(node, args=tuple(places[arg] for arg in node.args)))
        for place, width in old.outputs:
            new.output(places[place], width)
        return new, self.saved

    def _sets(self, args: Sequence[int]) -> list[tuple[int, ...]]:
        """Return the sets of values of few bits of which what reads `args` is a function, the first ones first."""
        found: set[tuple[int, ...]] = {()}
        for arg in dict.fromkeys(args):
            own = [*self.sources[arg], (arg,)]
            found = {tuple(sorted({*one, *other})) for one in found for other in own}
            found = {one for one in found if self._bits(one) <= self.bits}
        return sorted(found)[:_SETS]

    def _bits(self, sources: Sequence[int]) -> int:
        return sum(self.circuit.nodes[source].index_bits for source in sources)

    def _decide(self, place: int) -> None:
        """Make a table of `place` where that takes fewer LUTs than what is needed for it alone."""
        best: tuple[int, int] | None = None
        for sources in self.sources[place]:
            left = self._left(place, sources)
            cone = [place, *(inner for inner, reads in left.items() if not reads)]
            nodes = self.circuit.nodes
            table = self._table(place, sources)
            then = table_luts([nodes[source] for source in sources], table, nodes[place].width)
            gain = self._cone_luts(cone) - then
            levels = sum(COSTS.get(nodes[inner].op, 0) for inner in cone)
            if gain >= max(self.least, int(levels < 2)) and (best is None or (gain, levels) > best):
                best, chosen, after = (gain, levels), sources, left
        if best is not None:
            self.tables[place] = chosen
            self.saved += best[0]
            self.reads.update(after)

    def _joins(self, place: int) -> bool:
        """Return whether a sum that reads `place` alone takes the operands of `place` too, as one of three."""
        nodes = self.circuit.nodes
        if nodes[place].op not in ("add", "sub"):
            return False
        while self.reads[place] == 1 and place in self.reader:
            place = self.reader[place]
            if nodes[place].op != "shl":
                return nodes[place].op in ("add", "sub")
        return False

    def _left(self, place: int, sources: Sequence[int]) -> dict[int, int]:
        """Return how often each value that `place` is made of is still read, if `place` becomes a table."""
        left = {source: self.reads[source] + 1 for source in sources}
        stack = [place]
        while stack:
            for arg in self.circuit.nodes[stack.pop()].args:
                left[arg] = left.get(arg, self.reads[arg]) - 1
                if not left[arg]:
                    stack.append(arg)
        return left

    def _table(self, place: int, sources: Sequence[int]) -> list[int]:
        """Return the table of `place` by the lowest bits of its sources."""
        nodes = [self.circuit.nodes[source] for source in sources]
        rows = reached([(node.low, node.high) for node in nodes])
        known = dict(zip(sources, np.array(rows, dtype=object).T, strict=True))
        for inner in self._between(place, sources):
            node = self.circuit.nodes[inner]
            operands = [known[arg] for arg in node.args]
            known[inner] = computed_node(node, operands, self.circuit.tables, known[sources[0]][None])
        bits = [node.index_bits for node in nodes]
        found = [0] * (1 << sum(bits))
        for row, entry in zip(rows, known[place], strict=True):
            found[index_of(row, bits)] = int(entry)
        return found

    def _between(self, place: int, sources: Sequence[int]) -> list[int]:
        """Return `place` and what it is made of down to its sources, operands first."""
        found, stack = set(), [place]
        while stack:
            inner = stack.pop()
            if inner not in found and inner not in sources:
                found.add(inner)
                stack.extend(self.circuit.nodes[inner].args)
        return sorted(found)

    def _cone_luts(self, cone: Sequence[int]) -> int:
        """Count the LUTs that synthesis makes of some values at least."""
        nodes = self.circuit.nodes
        sums = [place for place in cone if len(self._added(place)) == 2]
        bits = sorted(_overlap(nodes[place], self._added(place)) for place in sums)
        # Adders of three operands are half as many.
        return sum(bits[len(bits) // 2 if self.operands == 3 else 0 :]) + sum(
            self._luts(place) for place in cone if place not in sums
        )

    def _added(self, place: int) -> list[Node]:
        """Return the operands of a sum that are no constants."""
        node = self.circuit.nodes[place]
        args = [self.circuit.nodes[arg] for arg in node.args] if node.op in ("add", "sub") else []
        return [arg for arg in args if arg.op != "const"]

    def _luts(self, place: int) -> int:
        """Count the LUTs that synthesis makes of a value at least, by itself.

        A bit of a carry chain that adds a constant is a wire unless it is turned round, on AMD's devices. What a
        comparison limits is set or reset in its register.
        """
        node = self.circuit.nodes[place]
        args = [self.circuit.nodes[arg] for arg in node.args]
        match node.op:
            case "add" | "sub":
                return self._bias_luts(node, [arg.op for arg in args].index("const"))
            case "clip":
                return int(args[0].low < node.low) + int(args[0].high > node.high)
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


def table_luts(sources: Sequence[Node], table: Sequence[int], top: int, floor: int = 0) -> int:
    """Count the LUTs of a table: bits from `floor` up to `top` that are no constant, no bit of the index and no other.

    Args:
        sources: what makes the index.
        table: by the lowest bits of the sources.
        top: bits that are read, from the lowest on.
        floor: how many of those are not read.
    """
    bits = [source.index_bits for source in sources]
    places = [index_of(row, bits) for row in reached([(source.low, source.high) for source in sources])]

    def columns(values: Sequence[int], bits: range) -> set[tuple[int, ...]]:
        return {tuple(value >> bit & 1 for value in values) for bit in bits}

    made = columns([table[place] for place in places], range(floor, top)) - columns(places, range(sum(bits)))
    return len({column for column in made if 0 < sum(column) < len(places)})


def _overlap(node: Node, args: Sequence[Node]) -> int:
    """Count the bits of a sum to which both operands have one."""
    starts = [shift + (arg.params[0] if arg.op == "shl" else 0) for arg, shift in zip(args, node.params, strict=True)]
    tops = [node.width if arg.low < 0 else arg.width - 1 + shift for arg, shift in zip(args, node.params, strict=True)]
    return max(min(node.width, *tops) - max(starts), 0)
