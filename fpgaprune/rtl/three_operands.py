"""`with_three_operands`: the sums of a circuit by adders of three operands, where a LUT and its carry chain add three.

A sum of n numbers takes (n - 1) / 2 adders of three operands, and n - 1 of two; each takes one LUT a bit on such FPGAs.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, replace

from fpgaprune.rtl.circuit import COSTS, Circuit
from fpgaprune.rtl.node import Node

_SUMS = frozenset({"add", "sub", "sum"})


def with_three_operands(circuit: Circuit) -> Circuit:
    """Return a circuit with the same outputs whose additions take up to three operands.

    A sum that only another sum reads joins it. What several read is computed once, as before.
    """
    return _Rewritten(circuit).result()


@dataclass(order=True, frozen=True)
class _Operand:
    """`sign * (place << shift)`, which is there after `depth` adder levels."""

    depth: int
    shift: int
    place: int
    sign: int


class _Rewritten:
    """A new circuit, made node by node of an old one."""

    def __init__(self, circuit: Circuit) -> None:
        self.old, self.alive = circuit, circuit.alive()
        self.new = Circuit()
        self.new.tables, self.new.inputs = list(circuit.tables), list(circuit.inputs)
        self.places: dict[int, int] = {}
        self.depth: dict[int, int] = {}
        self.reads: dict[int, int] = dict.fromkeys(self.alive, 0)
        for place in self.alive:
            for arg in circuit.nodes[place].args:
                self.reads[arg] += 1
        for place, _ in circuit.outputs:
            self.reads[place] += 1
        joined: set[int] = set()
        for place in self.alive:
            for arg in circuit.nodes[place].args if circuit.nodes[place].op in ("add", "sub") else ():
                inner, _, passed = self._unshifted(arg)
                if self._joins(inner):
                    joined.update((inner, *passed))
        for place in self.alive:
            if place not in joined:
                self.places[place] = self._made(place)

    def result(self) -> Circuit:
        for place, width in self.old.outputs:
            self.new.output(self.places[place], width)
        return self.new

    def _unshifted(self, place: int) -> tuple[int, int, list[int]]:
        """Return the node behind shifts that nothing else reads, by how much they shift, and the shifts."""
        passed, shift = [], 0
        while self.old.nodes[place].op == "shl" and self.reads[place] == 1:
            passed.append(place)
            shift += self.old.nodes[place].params[0]
            (place,) = self.old.nodes[place].args
        return place, shift, passed

    def _joins(self, place: int) -> bool:
        """Return whether a sum that reads node `place` takes its operands instead."""
        node = self.old.nodes[place]
        return self.reads[place] == 1 and node.op in ("add", "sub")

    def _made(self, place: int) -> int:
        node = self.old.nodes[place]
        if node.op in ("add", "sub"):
            return self._sum(node)
        found = self.new.copied(replace(node, args=tuple(self.places[arg] for arg in node.args)))
        self._note(found)
        return found

    def _note(self, place: int) -> int:
        """Keep the adder levels of a new node."""
        node = self.new.nodes[place]
        if place not in self.depth:
            self.depth[place] = max(map(self._note, node.args), default=0) + COSTS.get(node.op, 0)
        return self.depth[place]

    def _sum(self, root: Node) -> int:
        operands, constant = self._operands(root)
        if constant and len(operands) % 2 == 0:
            operands.append(_Operand(0, 0, self.new.const(constant), 1))
            constant = 0
        heapq.heapify(operands)
        while len(operands) > 1:
            taken = [heapq.heappop(operands) for _ in range(2 + len(operands) % 2)]
            heapq.heappush(operands, self._joined(taken))
        (last,) = operands
        if last.sign < 0:
            found = self.new.sub(self.new.const(constant), last.place, 0, last.shift)
        else:
            found = self.new.add(last.place, self.new.const(constant), last.shift)
        # The old bounds know that operands depend on one another.
        node = self.new.nodes[found]
        if node.op in _SUMS:
            found = self.new.copied(replace(node, low=max(node.low, root.low), high=min(node.high, root.high)))
        self._note(found)
        return found

    def _operands(self, root: Node) -> tuple[list[_Operand], int]:
        """Return what `root` adds up, and the sum of its constants."""
        found: list[_Operand] = []
        constant = 0
        stack = [(root, 0, 1)]
        while stack:
            node, shift, sign = stack.pop()
            for arg, own, turned in zip(node.args, node.params, (1, -1 if node.op == "sub" else 1), strict=True):
                read, by, as_ = self.old.nodes[arg], shift + own, sign * turned
                inner, more, _ = self._unshifted(arg)
                if read.op == "const":
                    constant += as_ * (read.low << by)
                elif self._joins(inner):
                    stack.append((self.old.nodes[inner], by + more, as_))
                else:
                    place = self.places[arg]
                    while self.new.nodes[place].op == "shl":
                        by += self.new.nodes[place].params[0]
                        (place,) = self.new.nodes[place].args
                    found.append(_Operand(self._note(place), by, place, as_))
        return found, constant

    def _joined(self, taken: list[_Operand]) -> _Operand:
        """Add a node of the sum of two or three operands; if all are subtracted, that sum is."""
        low = min(one.shift for one in taken)
        sign = max(one.sign for one in taken)
        # A difference subtracts the shifted operand from the other one, so that its lowest bits are wires.
        taken = sorted(taken, key=lambda one: (-one.sign * sign, one.shift))
        terms = [(one.place, one.shift - low, one.sign * sign) for one in taken]
        place = self.new.sum(terms)
        return _Operand(self._note(place), low, place, sign)
