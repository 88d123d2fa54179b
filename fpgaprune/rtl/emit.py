"""Verilog-2001 text of a circuit: one module, or several in files below a size that people and tools can read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from fpgaprune.rtl.circuit import Circuit, Node
from fpgaprune.rtl.schedule import Schedule

# A file stays below 200 kB; ports and headers take their share.
_PART_CHARACTERS = 120_000
_WAIVERS = """\
// Signed sums extend their operands, and rounding cuts bits off: both are meant.
/* verilator lint_off WIDTHEXPAND */
/* verilator lint_off UNUSEDSIGNAL */
"""


@dataclass
class _Line:
    """What one node becomes: `wires` outside and `registers` inside the clocked block."""

    wires: str
    registers: list[str] = field(default_factory=list)
    defines: dict[str, int] = field(default_factory=dict)
    uses: set[str] = field(default_factory=set)


def datapath(module: str, circuit: Circuit, plan: Schedule, header: str) -> dict[str, str]:
    """The files, by name, of a pipeline `module` with ports `clk`, `ce`, `in_data` and `out_data`.

    Every register moves while `ce` is 1. Inputs and outputs lie on their buses in order, the first in the lowest
    bits. Without registers, `clk` and `ce` are missing.
    """
    lines = [_line(module, circuit, plan, place) for place in circuit.alive() if circuit.nodes[place].op != "const"]
    wires, registers = _texts(lines)
    files = {
        f"{module}_rom{number}.v": _rom(f"{module}_rom{number}", circuit, number, header)
        for number in range(len(circuit.tables))
    }
    clocked = plan.depth > 0
    ports = ["input wire clk", "input wire ce"] if clocked else []
    width_in = max(1, sum(width for width, _ in circuit.inputs))
    width_out = max(1, sum(width for _, width in circuit.outputs))
    ports += [f"input wire [{width_in - 1}:0] in_data", f"output wire [{width_out - 1}:0] out_data"]
    if len(wires) + len(registers) <= _PART_CHARACTERS:
        body = wires + _clocked(registers)
    else:
        body = ""
        parts = _parts(module, lines, circuit, plan, width_in)
        for part in parts:
            files[f"{part.name}.v"] = header + _WAIVERS + part.text()
            body += part.instance()
        made = {_name(place, plan.depth - plan.stage[place]) for place, _ in circuit.outputs}
        for part in parts:
            body += "".join(
                _taken(name, f"{part.name}_data", *place) for name, place in part.leaves.items() if name in made
            )
    body += _outputs(circuit, plan)
    files[f"{module}.v"] = header + _WAIVERS + _module(module, ports, body)
    return dict(sorted(files.items()))


def _module(name: str, ports: Sequence[str], body: str) -> str:
    joined = ",\n".join(f"    {port}" for port in ports)
    return f"module {name} (\n{joined}\n);\n{body}endmodule\n"


def _clocked(registers: str) -> str:
    return f"    always @(posedge clk) if (ce) begin\n{registers}    end\n" if registers else ""


def _texts(lines: Sequence[_Line]) -> tuple[str, str]:
    return "".join(line.wires for line in lines), "".join(f"        {r}\n" for line in lines for r in line.registers)


def _name(place: int, delay: int = 0) -> str:
    return f"v{place}_d{delay}" if delay else f"v{place}"


def _line(module: str, circuit: Circuit, plan: Schedule, place: int) -> _Line:
    node = circuit.nodes[place]
    line = _Line("")
    width = node.width
    target = _name(place)

    def read(arg: int) -> str:
        source = circuit.nodes[arg]
        if source.op == "const":
            return literal(source.low)
        name = _name(arg, plan.stage[place] - plan.stage[arg])
        line.uses.add(name)
        return name

    args = [read(arg) for arg in node.args]
    if node.op in ("add", "sub", "mul"):
        # Arithmetic modulo the result's width needs no more of the operands.
        args = [_modulo(text, circuit.nodes[arg], width) for text, arg in zip(args, node.args, strict=True)]
    match node.op:
        case "input":
            expression = _sliced_input(circuit, node.params[0], width)
            line.uses.add("in_data")
        case "add" | "sub":
            a, b = (_shifted(text, shift) for text, shift in zip(args, node.params, strict=True))
            expression = f"{a} {'+' if node.op == 'add' else '-'} {b}"
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
        case "max":
            expression = f"({args[0]} < {args[1]}) ? {_fitted(args[1], circuit, node.args[1], width)} : "
            expression += _fitted(args[0], circuit, node.args[0], width)
        case "select":
            expression = f"{args[0]}[0] ? {args[1]} : {args[2]}"
        case _:
            return _rom_line(line, module, circuit, plan, place)
    line.wires = f"    wire signed [{width - 1}:0] {target} = {expression};\n"
    return _with_delays(line, plan, place, width)


def _with_delays(line: _Line, plan: Schedule, place: int, width: int) -> _Line:
    line.defines[_name(place)] = width
    for delay in range(1, plan.delays.get(place, 0) + 1):
        name = _name(place, delay)
        line.wires += f"    reg signed [{width - 1}:0] {name};\n"
        line.registers.append(f"{name} <= {_name(place, delay - 1)};")
        line.defines[name] = width
    return line


def _rom_line(line: _Line, module: str, circuit: Circuit, plan: Schedule, place: int) -> _Line:
    node = circuit.nodes[place]
    source = circuit.nodes[node.args[0]]
    address = _name(node.args[0], plan.stage[place] - plan.stage[node.args[0]])
    rom, width = f"{module}_rom{node.params[0]}", node.width
    bits = _address_bits(circuit, node.params[0])
    have = max(1, source.width - 1)
    padded = f"{{{bits - have}'d0, {address}[{have - 1}:0]}}" if bits > have else f"{address}[{bits - 1}:0]"
    line.wires = (
        f"    wire signed [{width - 1}:0] {_name(place)};\n"
        f"    {rom} lookup{place} (.address({padded}), .data({_name(place)}));\n"
    )
    return _with_delays(line, plan, place, width)


def _address_bits(circuit: Circuit, table: int) -> int:
    return max(1, (len(circuit.tables[table]) - 1).bit_length())


def _rom(name: str, circuit: Circuit, table: int, header: str) -> str:
    bits = _address_bits(circuit, table)
    width = next(n.width for n in circuit.nodes if n.op == "rom" and n.params == (table,))
    entries = "".join(
        f"            {bits}'d{place}: data = {_sized(value, width)};\n"
        for place, value in enumerate(circuit.tables[table])
    )
    return (
        f"{header}module {name} (\n    input wire [{bits - 1}:0] address,\n    output reg signed [{width - 1}:0] data\n"
        f");\n    always @* begin\n        case (address)\n{entries}"
        f"            default: data = {width}'d0;\n        endcase\n    end\nendmodule\n"
    )


def literal(value: int) -> str:
    """A signed constant of just enough bits."""
    width = max(value.bit_length(), (-value).bit_length()) + 1
    return f"-{width}'sd{-value}" if value < 0 else f"{width}'sd{value}"


def _sized(value: int, width: int) -> str:
    return f"{width}'h{value & ((1 << width) - 1):x}"


def _shifted(text: str, shift: int) -> str:
    return f"({text} <<< {shift})" if shift else text


def _sliced_input(circuit: Circuit, number: int, width: int) -> str:
    start = sum(bits for bits, _ in circuit.inputs[:number])
    bits, signed = circuit.inputs[number]
    # Bounds below the type's own need fewer bits; the sign is then a bit that is 0.
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


def _fitted(text: str, circuit: Circuit, place: int, width: int) -> str:
    node = circuit.nodes[place]
    if node.op == "const" or node.width <= width:
        return text
    return f"$signed({text}[{width - 1}:0])"


def _modulo(text: str, node: Node, width: int) -> str:
    if node.op == "const":
        # A literal's minus sign needs one bit more than the smallest number of a width has.
        return text if node.width < width else _signed(node.low, width)
    return text if node.width <= width else f"$signed({text}[{width - 1}:0])"


def _signed(value: int, width: int) -> str:
    return f"$signed({_sized(value, width)})"


def _outputs(circuit: Circuit, plan: Schedule) -> str:
    wires, names = "", []
    for number, (place, width) in enumerate(circuit.outputs):
        node = circuit.nodes[place]
        if node.op == "const":
            wires += f"    wire [{width - 1}:0] y{number} = {_sized(node.low, width)};\n"
        else:
            source = _name(place, plan.depth - plan.stage[place] if plan.depth else 0)
            if node.width > width:
                source = f"{source}[{width - 1}:0]"
            wires += f"    wire signed [{width - 1}:0] y{number} = {source};\n"
        names.append(f"y{number}")
    rows = [", ".join(names[::-1][start : start + 12]) for start in range(0, len(names), 12)]
    joined = ",\n        ".join(rows)
    return f"{wires}    assign out_data = {{\n        {joined}\n    }};\n"


@dataclass(frozen=True)
class _Part:
    """A run of lines as a module of its own; what leaves it lies side by side on one bus.

    Attributes:
        name: of the module. lines: what it computes.
        buses: width of each bus that it reads: `in_data`, or the bus of an earlier part.
        reads: for each name that it reads, its bus, lowest bit and width.
        leaves: for each name that others read, its lowest bit and width.
    """

    name: str
    lines: list[_Line]
    buses: dict[str, int]
    reads: dict[str, tuple[str, int, int]]
    leaves: dict[str, tuple[int, int]]

    @property
    def width(self) -> int:
        """Bits of the bus that leaves."""
        return sum(width for _, width in self.leaves.values())

    def text(self) -> str:
        """The module."""
        wires, registers = _texts(self.lines)
        ports = ["input wire clk", "input wire ce"] if registers else []
        ports += [f"input wire [{width - 1}:0] {bus}" for bus, width in self.buses.items()]
        ports.append(f"output wire [{self.width - 1}:0] out_data")
        arriving = "".join(_taken(name, *place) for name, place in self.reads.items())
        names = list(self.leaves)[::-1]
        rows = [", ".join(names[start : start + 12]) for start in range(0, len(names), 12)]
        leaving = "    assign out_data = {\n        " + ",\n        ".join(rows) + "\n    };\n"
        return _module(self.name, ports, arriving + wires + _clocked(registers) + leaving)

    def instance(self) -> str:
        """Its bus and its place in the module around it."""
        ports = [".clk(clk)", ".ce(ce)"] if _texts(self.lines)[1] else []
        ports += [f".{bus}({bus})" for bus in self.buses] + [f".out_data({self.name}_data)"]
        return f"    wire [{self.width - 1}:0] {self.name}_data;\n    {self.name} {self.name}_i ({', '.join(ports)});\n"


def _taken(name: str, bus: str, lowest: int, width: int) -> str:
    return (
        f"    wire signed [{width - 1}:0] {name};\n    assign {name} = $signed({bus}[{lowest + width - 1}:{lowest}]);\n"
    )


def _parts(module: str, lines: Sequence[_Line], circuit: Circuit, plan: Schedule, width_in: int) -> list[_Part]:
    """Runs of lines, earlier stages first."""
    alive = [place for place in circuit.alive() if circuit.nodes[place].op != "const"]
    by_stage = sorted(zip(alive, lines, strict=True), key=lambda row: (plan.stage[row[0]], row[0]))
    groups: list[list[_Line]] = [[]]
    size = 0
    for _, line in by_stage:
        # What another part makes is taken from its bus first.
        length = len(line.wires) + sum(len(row) + 9 for row in line.registers) + 50 * len(line.uses)
        if size + length > _PART_CHARACTERS and groups[-1]:
            groups.append([])
            size = 0
        groups[-1].append(line)
        size += length
    widths = {name: width for line in lines for name, width in line.defines.items()}
    home = {name: number for number, group in enumerate(groups) for line in group for name in line.defines}
    used = [{name for line in group for name in line.uses} for group in groups]
    leaving = {_name(place, plan.depth - plan.stage[place]) for place, _ in circuit.outputs}
    parts: list[_Part] = []
    for number, group in enumerate(groups):
        reads: dict[str, tuple[str, int, int]] = {}
        buses = {"in_data": width_in} if "in_data" in used[number] else {}
        for name in sorted(used[number] - {"in_data"}, key=_order):
            if home[name] != number:
                part = parts[home[name]]
                buses[f"{part.name}_data"] = part.width
                reads[name] = (f"{part.name}_data", *part.leaves[name])
        others = leaving.union(*(names for other, names in enumerate(used) if other != number))
        leaves: dict[str, tuple[int, int]] = {}
        lowest = 0
        for name in sorted(others & {name for name, place in home.items() if place == number}, key=_order):
            leaves[name] = (lowest, widths[name])
            lowest += widths[name]
        parts.append(_Part(f"{module}_part{number}", group, buses, reads, leaves))
    return parts


def _order(name: str) -> tuple[int, int]:
    if name == "in_data":
        return (-1, 0)
    place, _, delay = name[1:].partition("_d")
    return int(place), int(delay or 0)
