"""What a datapath is made of: bits of adders, choices and comparisons that synthesis keeps, tables, and registers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from fpgaprune.rtl import Circuit, Node, Pipeline, Trees, table_luts


class Counts(dict[str, float]):
    """Quantities by name; one that is not there is 0."""

    def __missing__(self, name: str) -> float:
        return 0.0

    def more(self, other: Mapping[str, float], times: float = 1) -> None:
        """Add `other`, multiplied by `times`."""
        for name, count in other.items():
            self[name] += count * times


# Registers in a row that no one reads between: AMD's devices keep so many, or more, in a look-up table.
_SHORTEST_SHIFT = 3
_PER_SHIFT = 32
_WITHIN = {"rom": "table_delay", "mul": "factor_register"}


def count_datapath(path: Pipeline, needed: Needed, before: Pipeline | None = None) -> Counts:
    """Count the quantities of hardware of `path`, by name.

    Args:
        path: a datapath.
        needed: its bits that are read.
        before: the datapath that it reads, if there is one: a copy that reads a constant takes nothing.
    """
    found = Counts()
    if path.trees is not None:
        found["adder"] += path.trees.adders
        found["chain_bit"] += path.trees.chain_bits
        found["pair_bit"] += path.trees.pair_bits
        found["lone_bit"] += path.trees.lone_bits
        found["difference"] += path.trees.differences
        found["tree_register"] += path.trees.register_bits - _waiting_narrower(path.circuit, path.trees)
    for place in path.plan.stage:
        if needed.top[place] > 0:
            _count_node(path.circuit, path.circuit.nodes[place], needed.top[place], needed.floor[place], found)
    _count_registers(path, needed, found)
    copies = path.copies
    if before is not None and copies > 1 and before.copies == 1 and len(before.circuit.outputs) == copies:
        copies = sum(before.circuit.nodes[place].op != "const" for place, _ in before.circuit.outputs)
    return Counts({name: count * copies for name, count in found.items()})


@dataclass(frozen=True)
class Needed:
    """Which bits of each value are read: synthesis removes what computes the others.

    Attributes:
        top: how many of its lowest bits hold all that are read; 0 where none is.
        floor: how many of those, from the lowest on, are not read.
    """

    top: Mapping[int, int]
    floor: Mapping[int, int]

    @classmethod
    def of(cls, path: Pipeline, behind: Sequence[tuple[int, int]] = ()) -> Needed:
        """Find the bits of `path` that are read; `behind` are the `ends` of what reads its outputs, if known."""
        circuit = path.circuit
        top: dict[int, int] = defaultdict(int)
        floor: dict[int, int] = {}

        def read(place: int, bits: int, lowest: int) -> None:
            top[place] = max(top[place], min(bits, circuit.nodes[place].width))
            floor[place] = min(floor.get(place, lowest), lowest)

        known = len(behind) == path.copies * len(circuit.outputs)
        for number, (place, width) in enumerate(circuit.outputs):
            bits, lowest = behind[number] if known else (width, 0)
            read(place, min(bits, width), lowest)
        for place in reversed(circuit.alive()):
            bits = top[place]
            if bits > 0:
                node = circuit.nodes[place]
                for number, arg in enumerate(node.args):
                    read(arg, *_bits_read(circuit, node, number, bits, floor[place]))
        return cls(top, floor)

    def ends(self, path: Pipeline) -> list[tuple[int, int]]:
        """Return the bits that `path` reads of each operand, and how many of its lowest bits it does not read."""
        if path.trees is not None:
            return [(path.trees.before, 0) if used else (0, 0) for used in path.trees.used]
        found = [(0, 0)] * len(path.circuit.inputs)
        for place in path.plan.stage:
            node = path.circuit.nodes[place]
            if node.op == "input":
                found[node.params[0]] = self.top[place], self.floor.get(place, 0)
        return found * path.copies


def _bits_read(circuit: Circuit, node: Node, number: int, bits: int, floor: int) -> tuple[int, int]:
    """Return the bits of operand `number` that the value needs: its `bits` bits without the lowest `floor`."""
    whole = circuit.nodes[node.args[number]].width
    match node.op:
        case "add" | "sub" | "sum":
            shift = node.params[number]
            return bits - shift, max(min(floor, free_bits(node, circuit)) - shift, 0)
        case "shl":
            return bits - node.params[0], max(floor - node.params[0], 0)
        case "shr":
            return bits + node.params[0], floor + node.params[0]
        case "wrap":
            return min(node.params[0], bits), floor
        case "select" if number:
            return bits, floor
        case "max" | "min":
            constant = any(circuit.nodes[arg].op == "const" and circuit.nodes[arg].low == 0 for arg in node.args)
            return whole, floor if constant else 0
        case "clip" | "inside":
            low, high = node.params
            even = all(bound % (1 << floor) == 0 for bound in (low, high + 1))
            return whole, floor if even else 0
        case "mul":
            return bits, 0
    return whole, 0


def free_bits(node: Node, circuit: Circuit) -> int:
    """Count the lowest bits of a sum that are plain wires: the unshifted operand's, unless it is subtracted."""
    starts = [shift + zeros_of(circuit.nodes[arg]) for arg, shift in zip(node.args, node.params, strict=False)]
    if node.op == "sum":
        # Where one operand begins it is a wire, unless it is subtracted; where a second one does, adders begin.
        subtracted = [start for start, sign in zip(starts, node.params[3:], strict=True) if sign < 0]
        return min([sorted(starts)[1], *subtracted])
    low, high = starts
    return max(low, high) if node.op == "add" else high


def _count_node(circuit: Circuit, node: Node, top: int, floor: int, found: Counts) -> None:
    bits = top - floor
    args = [circuit.nodes[arg] for arg in node.args]
    constant = any(arg.op == "const" for arg in args)
    match node.op:
        case "add" | "sub":
            _count_sum(node, args, top, free_bits(node, circuit), found)
        case "sum":
            # Every bit is a LUT, also where an operand has none; a family with small LUTs adds two and then the third.
            chain = max(top - free_bits(node, circuit), 0)
            found.more({"adder": 1, "pair_bit": chain, "chain_bit": 2 * chain})
        case "mul":
            _count_product(args, top, found)
        case "clip" | "inside":
            found["clip_bit"] += bits
            found["limit_bit"] += args[0].width - bits + 1
        case "max" | "min":
            if constant:
                found["mask_bit"] += bits
            else:
                found["choice_bit"] += bits
                found["comparison_bit"] += max(arg.width for arg in args)
        case "less":
            if not any(arg.op == "const" and arg.low == 0 for arg in args):
                found["comparison_bit"] += max(arg.width for arg in args)
        case "select":
            found["mask_bit" if any(arg.op == "const" for arg in args[1:]) else "choice_bit"] += bits
        case "lut":
            found["function_bit"] += table_luts(args, node.params[len(args) :], top, floor)
        case "rom":
            _count_table(circuit, node, top, found)


def _count_sum(node: Node, args: list[Node], bits: int, free: int, found: Counts) -> None:
    (a, b), (p, q) = args, node.params
    low, high = [shift + zeros_of(arg) for arg, shift in ((a, p), (b, q))]
    tops = [
        0 if arg.op == "const" else bits if arg.low < 0 else arg.width - 1 + shift for arg, shift in ((a, p), (b, q))
    ]
    chain, pair = max(bits - free, 0), max(min(bits, *tops) - max(low, high), 0)
    found["adder"] += 1
    found["chain_bit"] += chain
    found["pair_bit"] += pair
    fixed = next(((arg.low << shift) >> free for arg, shift in ((a, p), (b, q)) if arg.op == "const"), None)
    if fixed is not None:
        # A bit of one operand alone is a wire, unless it is turned round: where the constant has a 1.
        found["lone_bit"] += (fixed & ((1 << chain) - 1)).bit_count()
    elif node.op == "sub":
        found["difference"] += 1
        found["lone_bit"] += chain - pair


def zeros_of(node: Node) -> int:
    """Count the lowest bits of a value that are always zero, for a constant or a shifted value."""
    if node.op == "const":
        return (node.low & -node.low).bit_length() - 1 if node.low else node.width
    return node.params[0] if node.op == "shl" else 0


def _waiting_narrower(circuit: Circuit, trees: Trees) -> float:
    """Register bits that sums save which are done early: what is narrowest behind each of them waits for the others."""
    # For each value that depends on one sum: the number of the sum, and the fewest bits on the way.
    least: dict[int, tuple[int, int]] = {}
    for place in circuit.alive():
        node = circuit.nodes[place]
        before = [least[arg] for arg in node.args if arg in least]
        bits = node.width - int(node.low >= 0)
        if node.op == "input":
            least[place] = node.params[0], bits
        elif len(before) == 1:
            least[place] = before[0][0], min(before[0][1], bits)
    ends = dict(least[place] for place, _ in circuit.outputs if place in least)
    sums = [leaving for leaving in trees.exits if leaving is not None]
    saved = (sums[number].waits * (circuit.inputs[number][0] - bits) for number, bits in ends.items())
    return sum(bits for bits in saved if bits > 0)


def _count_product(args: list[Node], top: int, found: Counts) -> None:
    a, b = sorted((arg.width for arg in args), reverse=True)
    found[f"product_{a}_{b}_{top}"] += 1


def _count_table(circuit: Circuit, node: Node, bits: int, found: Counts) -> None:
    # The sign of what is never negative is no bit of the memory.
    bits -= int(node.low >= 0 and bits == node.width)
    found[f"table_{len(circuit.tables[node.params[0]])}_{bits}"] += 1


def _count_registers(path: Pipeline, needed: Needed, found: Counts) -> None:
    circuit, plan = path.circuit, path.plan
    own = plan.depth - (path.trees.depth if path.trees else 0)
    read: dict[int, set[int]] = defaultdict(set)
    for place in plan.stage:
        node = circuit.nodes[place]
        for arg in node.args:
            if needed.top[place] > 0:
                read[arg].add(plan.lag(arg, plan.stage[place]))
    for place, _ in circuit.outputs:
        read[place].add(plan.lag(place, own))
    for place, delay in plan.delays.items():
        node = circuit.nodes[place]
        # What is never negative has a sign that is 0.
        sign = int(node.low >= 0 and node.op != "mul" and needed.top[place] == node.width)
        bits = needed.top[place] - max(needed.floor.get(place, 0), zeros_of(node)) - sign
        if delay <= 0 or bits <= 0:
            continue
        # The first register of a table or of a product can be in the block memory or in the multiplier.
        within = int(node.op in _WITHIN)
        if within:
            found[_WITHIN[node.op]] += bits
        found["register"] += bits * (delay - within)
        taps = sorted({tap for tap in read[place] if within < tap <= delay} | {within})
        for one, two in pairwise(taps):
            count_shift(found, bits, two - one)


def count_shift(found: Counts, bits: int, length: int) -> None:
    """Count the `bits` rows of registers, read at their ends alone, that can be look-up tables."""
    if length >= _SHORTEST_SHIFT:
        found["shift"] += bits * -(-length // _PER_SHIFT)
        found["shifted"] += bits * length
