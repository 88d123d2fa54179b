"""Verilog-2001 text of one value of a circuit: a wire with its expression, and registers that delay it."""

from __future__ import annotations

from dataclasses import dataclass, field

from fpgaprune.rtl.circuit import Circuit
from fpgaprune.rtl.node import Node
from fpgaprune.rtl.pipelining import Schedule


@dataclass
class Line:
    """The Verilog of one node.

    Attributes:
        wires: text outside the clocked block.
        registers: assignments inside the clocked block.
        defines: width of each name that the text declares.
        uses: names that the text reads.
        instance: whether `wires` contains a module with a clock.
    """

    wires: str
    registers: list[str] = field(default_factory=list)
    defines: dict[str, int] = field(default_factory=dict)
    uses: set[str] = field(default_factory=set)
    instance: bool = False

    @property
    def clocked(self) -> bool:
        """Whether the text needs the clock."""
        return self.instance or bool(self.registers)


def value_name(place: int, delay: int = 0) -> str:
    """Return the Verilog name of the value of node `place`, delayed by `delay` registers."""
    return f"v{place}_d{delay}" if delay else f"v{place}"


def line_of(module: str, circuit: Circuit, plan: Schedule, place: int) -> Line:
    """Return the Verilog of node `place`, which is not a constant."""
    node = circuit.nodes[place]
    line = Line("")
    width = node.width
    target, table = value_name(place), ""

    def read(arg: int) -> str:
        source = circuit.nodes[arg]
        if source.op == "const":
            return literal(source.low)
        name = value_name(arg, plan.lag(arg, plan.stage[place]))
        line.uses.add(name)
        return name

    args = [read(arg) for arg in node.args]
    if node.op in ("add", "sub", "sum", "mul"):
        # The lowest `width` bits of the result depend only on the lowest `width` bits of the operands.
        args = [_modulo(text, circuit.nodes[arg], width) for text, arg in zip(args, node.args, strict=True)]
    match node.op:
        case "input":
            expression = _sliced_input(circuit, node.params[0], width)
            line.uses.add("in_data")
        case "add" | "sub":
            a, b = (_shifted(text, shift) for text, shift in zip(args, node.params, strict=True))
            expression = f"{a} {'+' if node.op == 'add' else '-'} {b}"
        case "sum":
            first, *rest = (_shifted(text, shift) for text, shift in zip(args, node.params[:3], strict=True))
            signs = ["+" if sign > 0 else "-" for sign in node.params[4:]]
            expression = " ".join([first, *(f"{sign} {text}" for sign, text in zip(signs, rest, strict=True))])
        case "mul":
            expression = f"{args[0]} * {args[1]}"
        case "shl":
            expression = _shifted(args[0], node.params[0])
        case "shr":
            expression = f"$signed({args[0]}[{circuit.nodes[node.args[0]].width - 1}:{node.params[0]}])"
        case "wrap":
            expression = _wrap(args[0], circuit.nodes[node.args[0]].width, *node.params)
        case "clip":
            expression = _clip(args[0], circuit.nodes[node.args[0]], width, *node.params)
        case "inside":
            expression = _inside(args[0], circuit.nodes[node.args[0]], width, *node.params)
        case "less":
            expression = f"{{1'b0, {args[0]} < {args[1]}}}"
        case "max" | "min":
            fitted = [_modulo(text, circuit.nodes[arg], width) for text, arg in zip(args, node.args, strict=True)]
            smaller, larger = fitted if node.op == "min" else fitted[::-1]
            expression = f"({args[0]} < {args[1]}) ? {smaller} : {larger}"
        case "select":
            expression = f"{args[0]}[0] ? {args[1]} : {args[2]}"
        case "lut":
            table, expression = _lut(target, args, node)
        case _:
            return _rom_line(line, module, circuit, plan, place)
    line.wires = f"{table}    wire signed [{width - 1}:0] {target} = {expression};\n"
    return _with_delays(line, plan, place, width)


def _with_delays(line: Line, plan: Schedule, place: int, width: int) -> Line:
    line.defines[value_name(place)] = width
    for delay in range(1, plan.delays.get(place, 0) + 1):
        name = value_name(place, delay)
        line.wires += f"    reg signed [{width - 1}:0] {name};\n"
        line.registers.append(f"{name} <= {value_name(place, delay - 1)};")
        line.defines[name] = width
    return line


def _rom_line(line: Line, module: str, circuit: Circuit, plan: Schedule, place: int) -> Line:
    node = circuit.nodes[place]
    source = circuit.nodes[node.args[0]]
    address = value_name(node.args[0], plan.lag(node.args[0], plan.stage[place]))
    rom, width = f"{module}_rom{node.params[0]}", node.width
    bits = _address_bits(circuit, node.params[0])
    have = max(1, source.width - 1)
    padded = f"{{{bits - have}'d0, {address}[{have - 1}:0]}}" if bits > have else f"{address}[{bits - 1}:0]"
    line.wires = (
        f"    wire signed [{width - 1}:0] {value_name(place)};\n"
        f"    {rom} lookup{place} (.address({padded}), .data({value_name(place)}));\n"
    )
    return _with_delays(line, plan, place, width)


def _address_bits(circuit: Circuit, table: int) -> int:
    return max(1, (len(circuit.tables[table]) - 1).bit_length())


def rom_text(name: str, circuit: Circuit, table: int, header: str) -> str:
    """Return the text of module `name`, which holds table number `table` of the circuit."""
    bits = _address_bits(circuit, table)
    width = next(n.width for n in circuit.nodes if n.op == "rom" and n.params == (table,))
    entries = "".join(
        f"            {bits}'d{place}: data = {sized(value, width)};\n"
        for place, value in enumerate(circuit.tables[table])
    )
    return (
        f"{header}module {name} (\n    input wire [{bits - 1}:0] address,\n    output reg signed [{width - 1}:0] data\n"
        f");\n    always @* begin\n        case (address)\n{entries}"
        f"            default: data = {width}'d0;\n        endcase\n    end\nendmodule\n"
    )


def literal(value: int) -> str:
    """Write `value` as a signed constant of as many bits as it needs."""
    width = max(value.bit_length(), (-value).bit_length()) + 1
    return f"-{width}'sd{-value}" if value < 0 else f"{width}'sd{value}"


def sized(value: int, width: int) -> str:
    """Write `value` as an unsigned constant of `width` bits; a negative value as its two's complement."""
    return f"{width}'h{value & ((1 << width) - 1):x}"


def _shifted(text: str, shift: int) -> str:
    return f"({text} <<< {shift})" if shift else text


def _sliced_input(circuit: Circuit, number: int, width: int) -> str:
    start = sum(bits for bits, _ in circuit.inputs[:number])
    bits, signed = circuit.inputs[number]
    # An unsigned input gets a sign bit of 0; bits that its bounds do not need are not read.
    if not signed or width > bits:
        taken = min(bits, width - 1)
        return f"{{1'b0, in_data[{start + taken - 1}:{start}]}}" if taken else "1'b0"
    return f"$signed(in_data[{start + width - 1}:{start}])"


def _wrap(text: str, have: int, width: int, signed: int) -> str:
    if signed:
        return f"$signed({text}[{width - 1}:0])"
    if have >= width:
        return f"{{1'b0, {text}[{width - 1}:0]}}"
    return f"{{1'b0, {{{width - have}{{{text}[{have - 1}]}}}}, {text}}}"


def _clip(text: str, source: Node, width: int, low: int, high: int) -> str:
    have_low, have_high, have = source.low, source.high, source.width
    inner = f"$signed({text}[{width - 1}:0])" if have > width else text
    if have_high > high:
        inner = f"({text} > {literal(high)}) ? {_signed(high, width)} : {inner}"
    if have_low < low:
        inner = f"({text} < {literal(low)}) ? {_signed(low, width)} : {inner}"
    return inner


def _inside(text: str, source: Node, width: int, low: int, high: int) -> str:
    have_low, have_high, have = source.low, source.high, source.width
    inner = f"$signed({text}[{width - 1}:0])" if have > width else text
    tests = [f"{text} > {literal(high)}"] if have_high > high else []
    tests += [f"{text} < {literal(low)}"] if have_low < low else []
    return f"({' || '.join(tests)}) ? {_signed(0, width)} : {inner}"


def _lut(target: str, args: list[str], node: Node) -> tuple[str, str]:
    """Write the table of `node`, and what is read of it; each entry takes whole digits of the constant."""
    places = max(2, (node.width - 1).bit_length())
    entries = [value & ((1 << node.width) - 1) for value in reversed(node.params[len(args) :])]
    bits = len(entries) << places
    digits = "".join(f"{entry:0{1 << places - 2}x}" for entry in entries)
    parts = [f"{arg}[{count - 1}:0]" for arg, count in zip(args, node.params, strict=False)]
    index = ", ".join(reversed(parts))
    return (
        f"    localparam [{bits - 1}:0] {target}_table = {bits}'h{digits};\n",
        f"$signed({target}_table[{{{index}, {places}'d0}} +: {node.width}])",
    )


def _modulo(text: str, node: Node, width: int) -> str:
    if node.op == "const":
        # `literal` negates a positive constant: for the smallest number of `width` bits it needs one bit more.
        return text if node.width < width else _signed(node.low, width)
    return text if node.width <= width else f"$signed({text}[{width - 1}:0])"


def _signed(value: int, width: int) -> str:
    return f"$signed({sized(value, width)})"
