"""Verilog-2001 text of a circuit: one module, or several in files below a size that people and tools can read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fpgaprune.rtl.circuit import Circuit
from fpgaprune.rtl.lines import Line, line_of, rom_text, sized, value_name
from fpgaprune.rtl.schedule import Schedule

# A file stays below 200 kB; ports and headers take their share.
_PART_CHARACTERS = 120_000
_WAIVERS = """\
// Signed sums extend their operands, and rounding cuts bits off: both are meant.
/* verilator lint_off WIDTHEXPAND */
/* verilator lint_off UNUSEDSIGNAL */
"""


def datapath(module: str, circuit: Circuit, plan: Schedule, header: str) -> dict[str, str]:
    """The files, by name, of a pipeline `module` with ports `clk`, `ce`, `in_data` and `out_data`.

    Every register moves while `ce` is 1. Inputs and outputs lie on their buses in order, the first in the lowest
    bits. Without registers, `clk` and `ce` are missing.
    """
    lines = [line_of(module, circuit, plan, place) for place in circuit.alive() if circuit.nodes[place].op != "const"]
    wires, registers = _texts(lines)
    files = {
        f"{module}_rom{number}.v": rom_text(f"{module}_rom{number}", circuit, number, header)
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
        made = {value_name(place, plan.depth - plan.stage[place]) for place, _ in circuit.outputs}
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


def _texts(lines: Sequence[Line]) -> tuple[str, str]:
    return "".join(line.wires for line in lines), "".join(f"        {r}\n" for line in lines for r in line.registers)


def _outputs(circuit: Circuit, plan: Schedule) -> str:
    wires, names = "", []
    for number, (place, width) in enumerate(circuit.outputs):
        node = circuit.nodes[place]
        if node.op == "const":
            wires += f"    wire [{width - 1}:0] y{number} = {sized(node.low, width)};\n"
        else:
            source = value_name(place, plan.depth - plan.stage[place] if plan.depth else 0)
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
    lines: list[Line]
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


def _parts(module: str, lines: Sequence[Line], circuit: Circuit, plan: Schedule, width_in: int) -> list[_Part]:
    """Runs of lines, earlier stages first."""
    alive = [place for place in circuit.alive() if circuit.nodes[place].op != "const"]
    by_stage = sorted(zip(alive, lines, strict=True), key=lambda row: (plan.stage[row[0]], row[0]))
    groups: list[list[Line]] = [[]]
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
    leaving = {value_name(place, plan.depth - plan.stage[place]) for place, _ in circuit.outputs}
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
