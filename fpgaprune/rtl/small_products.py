"""`multiplied`: the product of two values, of LUTs where one of them has few bits."""

from __future__ import annotations

from fpgaprune.rtl.number import Number
from fpgaprune.rtl.sums import balanced

# A factor of so few bits, and about so many LUTs, one for each pair of bits: a DSP block stands beside hundreds of LUTs
# of an FPGA (242 on the xc7z020).
BITS, LUTS = 4, 40


def multiplied(first: Number, second: Number) -> Number:
    """Return the exact product; where it takes few LUTs, as a sum of one factor for each bit of the other.

    Synthesis makes a `*` of nearly any width of a DSP block.
    """
    narrow, wide = sorted((first, second), key=lambda factor: factor.node.index_bits)
    circuit, bits = narrow.circuit, narrow.node.index_bits
    if not 0 < bits <= BITS or bits * wide.node.index_bits > LUTS:
        return first * second
    if "const" in (narrow.node.op, wide.node.op) or _hides_its_sign(narrow):
        return first * second
    zero = circuit.const(0)
    rows = []
    for bit in range(bits):
        is_one = circuit.wrap(circuit.shr(narrow.place, bit), 1, signed=False)
        row = circuit.select(is_one, circuit.shl(wide.place, bit), zero)
        rows.append(Number(circuit, row, first.fraction + second.fraction))
    if narrow.node.low >= 0:
        return balanced(rows)
    # The highest bit of two's complement counts negative.
    *others, highest = rows
    return (balanced(others) if others else Number(circuit, zero, highest.fraction)) - highest


def _hides_its_sign(value: Number) -> bool:
    """Tell whether an input has a sign that its bounds rule out: the text would not say that it is never negative."""
    node = value.node
    return node.op == "input" and node.low >= 0 and value.circuit.inputs[node.params[0]][1]
