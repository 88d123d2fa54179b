"""`Circuit`: integer arithmetic as a graph; every value has a lower and an upper bound.

The bounds give the widths in the Verilog, so no bit is lost by accident. `Circuit.evaluate` computes the graph in
Python; tests compare its results with those of the emulator.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fpgaprune.rtl.node import Node, computed_node, wrapped
from fpgaprune.rtl.table_index import fitted_table

# Adder levels of each operation; an operation that is not listed is wiring and takes none.
COSTS = {
    "add": 1,
    "sub": 1,
    "sum": 1,
    "max": 1,
    "min": 1,
    "clip": 1,
    "inside": 1,
    "less": 1,
    "select": 1,
    "lut": 1,
    "rom": 2,
    "mul": 3,
}


class Circuit:
    """A graph of `Node`s; operands come before the nodes that read them, and equal nodes are stored once.

    Attributes:
        nodes: in the order in which they were made.
        tables: contents of the read-only memories.
        inputs: width in bits and signedness of each input; the first is in the lowest bits of the input bus.
        outputs: for each output, its node and how many bits of the output bus it takes.
    """

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.tables: list[tuple[int, ...]] = []
        self.inputs: list[tuple[int, bool]] = []
        self.outputs: list[tuple[int, int]] = []
        self._known: dict[Node, int] = {}

    def input(self, width: int, signed: bool, low: int, high: int) -> int:
        """Return a new input: the next `width` bits of the input bus, a number from `low` to `high`."""
        self.inputs.append((width, signed))
        return self._add("input", (), (len(self.inputs) - 1,), low, high)

    def continued(self) -> Circuit:
        """Return a circuit with the same inputs and nodes and without outputs; this one stays as it is."""
        found = Circuit()
        found.nodes, found.tables, found.inputs = list(self.nodes), list(self.tables), list(self.inputs)
        found._known = dict(self._known)
        return found

    def output(self, node: int, width: int) -> None:
        """Put `node` on the next `width` bits of the output bus."""
        self.outputs.append((node, width))

    def const(self, value: int) -> int:
        """Return the constant `value`."""
        return self._add("const", (), (value,), value, value)

    def add(self, a: int, b: int, shift_a: int = 0, shift_b: int = 0) -> int:
        """Add a node of `(a << shift_a) + (b << shift_b)`."""
        x, y = self.nodes[a], self.nodes[b]
        if x.op == "const":
            return self._raised(b, shift_b, x.low << shift_a)
        if y.op == "const":
            return self._raised(a, shift_a, y.low << shift_b)
        low, high = (x.low << shift_a) + (y.low << shift_b), (x.high << shift_a) + (y.high << shift_b)
        return self._add("add", (a, b), (shift_a, shift_b), low, high)

    def sub(self, a: int, b: int, shift_a: int = 0, shift_b: int = 0) -> int:
        """Add a node of `(a << shift_a) - (b << shift_b)`."""
        x, y = self.nodes[a], self.nodes[b]
        if y.op == "const":
            return self._raised(a, shift_a, -(y.low << shift_b))
        if x.op == "const" and x.low == 0 and (negative := self._negative(b)) is not None:
            return self.shl(negative, shift_b)
        low, high = (x.low << shift_a) - (y.high << shift_b), (x.high << shift_a) - (y.low << shift_b)
        return self._add("sub", (a, b), (shift_a, shift_b), low, high)

    def sum(self, terms: Sequence[tuple[int, int, int]]) -> int:
        """Add a node of the sum of two or three terms, each `sign * (place << shift)`; the first one's sign is 1."""
        if len(terms) == 2:
            (a, p, _), (b, q, sign) = terms
            return self.add(a, b, p, q) if sign > 0 else self.sub(a, b, p, q)
        places, shifts, signs = zip(*terms, strict=True)
        ends = [
            sorted(sign * (end << shift) for end in (self.nodes[place].low, self.nodes[place].high))
            for place, shift, sign in terms
        ]
        return self._add("sum", places, (*shifts, *signs), sum(e[0] for e in ends), sum(e[1] for e in ends))

    def copied(self, node: Node) -> int:
        """Add `node`, whose operands are nodes of this circuit; their bounds may be closer than where it was made."""
        operands = [self.nodes[arg] for arg in node.args]
        if operands and all(one.op == "const" for one in operands):
            # A constant is no name in the text, which an address or a range of bits would need.
            values = [np.array([one.params[0]], dtype=object) for one in operands]
            return self.const(int(computed_node(node, values, self.tables)[0]))
        if node.op == "lut":
            return self.lut(node.args, node.params[: len(node.args)], node.params[len(node.args) :])
        if node.op in ("shr", "inside"):
            return (self.shr if node.op == "shr" else self.inside)(*node.args, *node.params)
        return self._add(node.op, node.args, node.params, node.low, node.high)

    def mul(self, a: int, b: int) -> int:
        """Add a node of `a * b`; a constant power of two is wiring."""
        x, y = self.nodes[a], self.nodes[b]
        if x.op == "const":
            (a, x), (b, y) = (b, y), (a, x)
        if y.op == "const":
            if x.op == "const" or y.low == 0:
                return self.const(x.low * y.low)
            if y.low > 0 and y.low & (y.low - 1) == 0:
                return self.shl(a, y.low.bit_length() - 1)
        corners = [p * q for p in (x.low, x.high) for q in (y.low, y.high)]
        return self._add("mul", (a, b), (), min(corners), max(corners))

    def shl(self, a: int, shift: int) -> int:
        """Add a node of `a << shift`."""
        x = self.nodes[a]
        if shift == 0:
            return a
        if x.op == "const":
            return self.const(x.low << shift)
        if x.op == "shl":
            return self.shl(x.args[0], x.params[0] + shift)
        return self._add("shl", (a,), (shift,), x.low << shift, x.high << shift)

    def shr(self, a: int, shift: int) -> int:
        """Add a node of `a >> shift`, rounded towards minus infinity."""
        x = self.nodes[a]
        if shift == 0:
            return a
        if x.op == "shl":
            back = x.params[0] - shift
            return self.shl(x.args[0], back) if back >= 0 else self.shr(x.args[0], -back)
        # All bits above a value's own width equal its sign, so a longer shift gives the same.
        shift = min(shift, x.width - 1)
        low, high = x.low >> shift, x.high >> shift
        if low == high:
            return self.const(low)
        return self._add("shr", (a,), (shift,), low, high)

    def wrap(self, a: int, width: int, signed: bool) -> int:
        """Return the lowest `width` bits of `a`, read as a signed or as an unsigned number."""
        x = self.nodes[a]
        low = -(1 << (width - 1)) if signed else 0
        high = low + (1 << width) - 1
        if low <= x.low and x.high <= high:
            return a
        if x.op == "const":
            return self.const(wrapped(x.low, width, signed))
        return self._add("wrap", (a,), (width, int(signed)), low, high)

    def clip(self, a: int, low: int, high: int) -> int:
        """Add a node of `a` limited to the range from `low` to `high`."""
        x = self.nodes[a]
        bottom, top = min(max(x.low, low), high), max(min(x.high, high), low)
        if low <= x.low and x.high <= high:
            return a
        if bottom == top:
            return self.const(bottom)
        if x.op != "clip":
            return self._add("clip", (a,), (low, high), bottom, top)
        while self.nodes[a].op == "clip":
            (a,) = self.nodes[a].args
        # One bound, a register, then the other: a register is set or reset without LUTs for each of its bits.
        first = self._limited(a, bottom, max(self.nodes[a].high, bottom))
        return self._limited(first, bottom, top)

    def inside(self, a: int, low: int, high: int) -> int:
        """Add a node of `a` if it is from `low` to `high`, else 0."""
        x = self.nodes[a]
        if low <= x.low and x.high <= high:
            return a
        if x.high < low or high < x.low:
            return self.const(0)
        return self._add("inside", (a,), (low, high), min(max(x.low, low), 0), max(min(x.high, high), 0))

    def less(self, a: int, b: int) -> int:
        """Add a node of 1 if `a < b`, else 0."""
        x, y = self.nodes[a], self.nodes[b]
        if x.high < y.low or x.low >= y.high:
            return self.const(int(x.high < y.low))
        return self._add("less", (a, b), (), 0, 1)

    def larger(self, a: int, b: int) -> int:
        """Return the larger of `a` and `b`."""
        x, y = self.nodes[a], self.nodes[b]
        if a == b or x.low >= y.high:
            return a
        if y.low >= x.high:
            return b
        for one, other in ((a, y), (b, x)):
            if other.op == "const":
                return self.clip(one, other.low, self.nodes[one].high)
        return self._add("max", (a, b), (), max(x.low, y.low), max(x.high, y.high))

    def smaller(self, a: int, b: int) -> int:
        """Return the smaller of `a` and `b`."""
        x, y = self.nodes[a], self.nodes[b]
        if a == b or x.high <= y.low:
            return a
        if y.high <= x.low:
            return b
        for one, other in ((a, y), (b, x)):
            if other.op == "const":
                return self.clip(one, self.nodes[one].low, other.low)
        return self._add("min", (a, b), (), min(x.low, y.low), min(x.high, y.high))

    def select(self, condition: int, a: int, b: int) -> int:
        """Add a node of `a` if `condition` (0 or 1) is 1, else `b`."""
        c, x, y = (self.nodes[i] for i in (condition, a, b))
        if c.op == "const":
            return a if c.low else b
        if a == b:
            return a
        return self._add("select", (condition, a, b), (), min(x.low, y.low), max(x.high, y.high))

    def rom(self, address: int, table: Sequence[int]) -> int:
        """Add a node of `table[address]`; the caller makes sure that the address is an index of the table."""
        # A softmax reads one large table for each of its values.
        values = table if isinstance(table, tuple) else tuple(int(v) for v in table)
        x = self.nodes[address]
        reachable = values[max(x.low, 0) : x.high + 1]
        if x.op == "const" or len(set(reachable)) == 1:
            return self.const(reachable[0])
        if values not in self.tables:
            self.tables.append(values)
        return self._add("rom", (address,), (self.tables.index(values),), min(values), max(values))

    def lut(self, args: Sequence[int], bits: Sequence[int], table: Sequence[int]) -> int:
        """Add a node of the entry of `table` that the lowest `bits` of `args` name; they become as few as can be."""
        ends = [(self.nodes[arg].low, self.nodes[arg].high) for arg in args]
        least = [self.nodes[arg].index_bits * (low < high) for arg, (low, high) in zip(args, ends, strict=True)]
        entries = fitted_table(table, bits, least, ends)
        if min(entries) == max(entries):
            return self.const(entries[0])
        kept = tuple(arg for arg, n in zip(args, least, strict=True) if n)
        return self._add("lut", kept, (*filter(None, least), *entries), min(entries), max(entries))

    def alive(self) -> list[int]:
        """Return the indices of the nodes on which an output depends, in ascending order."""
        needed: set[int] = set()
        stack = [node for node, _ in self.outputs]
        while stack:
            place = stack.pop()
            if place not in needed:
                needed.add(place)
                stack.extend(self.nodes[place].args)
        return sorted(needed)

    def evaluate(self, values: Sequence[NDArray[np.int64]]) -> list[NDArray[np.int64]]:
        """Return the exact value of every output; `values` has one array of raw integers for each input."""
        found: dict[int, NDArray[np.object_]] = {}
        for place in self.alive():
            node = self.nodes[place]
            args = [found[arg] for arg in node.args]
            found[place] = computed_node(node, args, self.tables, values)
        return [found[node].astype(np.int64) for node, _ in self.outputs]

    def _limited(self, place: int, low: int, high: int) -> int:
        node = self.nodes[place]
        if low <= node.low and node.high <= high:
            return place
        return self._add("clip", (place,), (low, high), max(node.low, low), min(node.high, high))

    def _raised(self, place: int, shift: int, value: int) -> int:
        """Add a node of `(place << shift) + value`; constants added one after another become one."""
        node = self.nodes[place]
        if node.op == "const":
            return self.const((node.low << shift) + value)
        if value == 0:
            return self.shl(place, shift)
        if node.op == "shl":
            return self._raised(node.args[0], shift + node.params[0], value)
        if node.op in ("add", "sub"):
            (a, b), (p, q) = node.args, node.params
            first, second = self.nodes[a], self.nodes[b]
            if node.op == "sub" and first.op == "const":
                return self.sub(self.const((first.low << p + shift) + value), b, 0, q + shift)
            if node.op == "add" and second.op == "const":
                return self._raised(a, p + shift, (second.low << q + shift) + value)
        low, high = (node.low << shift) + value, (node.high << shift) + value
        return self._add("add", (place, self.const(value)), (shift, 0), low, high)

    def _negative(self, place: int) -> int | None:
        """Negate node `place` without a further adder (b - a for a - b); None if it needs one."""
        node = self.nodes[place]
        match node.op:
            case "shl":
                inner = self._negative(node.args[0])
                return None if inner is None else self.shl(inner, node.params[0])
            case "sub":
                return self.sub(*node.args[::-1], *node.params[::-1])
            case "add":
                for (a, b), (p, q) in ((node.args, node.params), (node.args[::-1], node.params[::-1])):
                    if self.nodes[a].op == "sub":
                        return self.sub(self.sub(*self.nodes[a].args[::-1], *self.nodes[a].params[::-1]), b, p, q)
        return None

    def _add(self, op: str, args: tuple[int, ...], params: tuple[int, ...], low: int, high: int) -> int:
        node = Node(op, args, params, low, high)
        if node not in self._known:
            self._known[node] = len(self.nodes)
            self.nodes.append(node)
        return self._known[node]
