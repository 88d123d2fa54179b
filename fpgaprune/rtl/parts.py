"""Verilog-2001 text of a long module, cut into files that people and tools can read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fpgaprune.rtl.lines import Line

# A file stays below 200 kB, ports and header included.
PART_CHARACTERS = 120_000
_WAIVERS = """\
// Signed sums extend their operands, and rounding cuts bits off: both are meant.
/* verilator lint_off WIDTHEXPAND */
/* verilator lint_off UNUSEDSIGNAL */
"""


@dataclass(frozen=True)
class Body:
    """What a module with ports `in_data` and `out_data` computes.

    Attributes:
        lines: operands first.
        runs: the same lines in the order in which they are divided into files if they do not fit into one.
        control: the port beside the clock; empty if the module has neither.
        gate: the condition under which registers take new values, as text.
        bits_in, bits_out: of its data.
        leaving: names that `ending` reads.
        ending: text that drives the output.
    """

    lines: Sequence[Line]
    runs: Sequence[Line]
    control: str
    gate: str
    bits_in: int
    bits_out: int
    leaving: set[str]
    ending: str

    def ports(self, clocked: bool) -> list[str]:
        """Return the ports other than data, if the module is `clocked`."""
        return ["input wire clk", f"input wire {self.control}"] if clocked else []

    def text(self, lines: Sequence[Line]) -> str:
        """Write `lines` as text of a module."""
        wires, registers = _texts(lines)
        block = f"    always @(posedge clk) {self.gate}begin\n{registers}    end\n" if registers else ""
        return wires + block


def files_of(module: str, body: Body, header: str) -> dict[str, str]:
    """Write the files of `module`: one file, or one for each part of its lines and one that connects the parts."""
    files = {}
    ports = body.ports(bool(body.control))
    ports += [f"input wire [{body.bits_in - 1}:0] in_data", f"output wire [{body.bits_out - 1}:0] out_data"]
    if sum(map(len, _texts(body.lines))) <= PART_CHARACTERS:
        text = body.text(body.lines)
    else:
        text = ""
        parts = _parts(module, body)
        for part in parts:
            files[f"{part.name}.v"] = header + _WAIVERS + part.text()
            text += part.instance()
        for part in parts:
            leaves = part.leaves.items()
            text += "".join(_taken(name, f"{part.name}_data", *at) for name, at in leaves if name in body.leaving)
    files[f"{module}.v"] = header + _WAIVERS + _module(module, ports, text + body.ending)
    return files


def _module(name: str, ports: Sequence[str], body: str) -> str:
    joined = ",\n".join(f"    {port}" for port in ports)
    return f"module {name} (\n{joined}\n);\n{body}endmodule\n"


def _texts(lines: Sequence[Line]) -> tuple[str, str]:
    return "".join(line.wires for line in lines), "".join(f"        {r}\n" for line in lines for r in line.registers)


@dataclass(frozen=True)
class _Part:
    """A part of the lines as a module of its own; the values that leave it lie side by side on one bus.

    Attributes:
        name: of the module.
        body: the body of which it is a part.
        lines: what it computes.
        buses: width of each bus that it reads: `in_data`, or the bus of an earlier part.
        reads: for each name that it reads, its bus, lowest bit and width.
        leaves: for each name that others read, its lowest bit and width.
    """

    name: str
    body: Body
    lines: list[Line]
    buses: dict[str, int]
    reads: dict[str, tuple[str, int, int]]
    leaves: dict[str, tuple[int, int]]

    @property
    def clocked(self) -> bool:
        """Whether it has a clock."""
        return any(line.clocked for line in self.lines)

    @property
    def width(self) -> int:
        """Bits of the bus that leaves."""
        return sum(width for _, width in self.leaves.values())

    def text(self) -> str:
        """Write the Verilog text of the module."""
        ports = self.body.ports(self.clocked)
        ports += [f"input wire [{width - 1}:0] {bus}" for bus, width in self.buses.items()]
        ports.append(f"output wire [{self.width - 1}:0] out_data")
        arriving = "".join(_taken(name, *place) for name, place in self.reads.items())
        names = list(self.leaves)[::-1]
        rows = [", ".join(names[start : start + 12]) for start in range(0, len(names), 12)]
        leaving = "    assign out_data = {\n        " + ",\n        ".join(rows) + "\n    };\n"
        return _module(self.name, ports, arriving + self.body.text(self.lines) + leaving)

    def instance(self) -> str:
        """Write, for the module that connects the parts, the output bus and the instance of this part."""
        control = self.body.control
        ports = [".clk(clk)", f".{control}({control})"] if self.clocked else []
        ports += [f".{bus}({bus})" for bus in self.buses] + [f".out_data({self.name}_data)"]
        return f"    wire [{self.width - 1}:0] {self.name}_data;\n    {self.name} {self.name}_i ({', '.join(ports)});\n"


def _taken(name: str, bus: str, lowest: int, width: int) -> str:
    return (
        f"    wire signed [{width - 1}:0] {name};\n    assign {name} = $signed({bus}[{lowest + width - 1}:{lowest}]);\n"
    )


def _parts(module: str, body: Body) -> list[_Part]:
    """Divide `body.runs` into parts of at most `PART_CHARACTERS` characters."""
    groups: list[list[Line]] = [[]]
    size = 0
    for line in body.runs:
        # Each value that is taken from the bus of another part takes 50 characters more.
        length = len(line.wires) + sum(len(row) + 9 for row in line.registers) + 50 * len(line.uses)
        if size + length > PART_CHARACTERS and groups[-1]:
            groups.append([])
            size = 0
        groups[-1].append(line)
        size += length
    widths = {name: width for line in body.lines for name, width in line.defines.items()}
    home = {name: number for number, group in enumerate(groups) for line in group for name in line.defines}
    used = [{name for line in group for name in line.uses} for group in groups]
    parts: list[_Part] = []
    for number, group in enumerate(groups):
        reads: dict[str, tuple[str, int, int]] = {}
        buses = {"in_data": body.bits_in} if "in_data" in used[number] else {}
        for name in sorted(used[number] - {"in_data"}, key=_order):
            if home[name] != number:
                part = parts[home[name]]
                buses[f"{part.name}_data"] = part.width
                reads[name] = (f"{part.name}_data", *part.leaves[name])
        others = body.leaving.union(*(names for other, names in enumerate(used) if other != number))
        leaves: dict[str, tuple[int, int]] = {}
        lowest = 0
        for name in sorted(others & {name for name, place in home.items() if place == number}, key=_order):
            leaves[name] = (lowest, widths[name])
            lowest += widths[name]
        parts.append(_Part(f"{module}_part{number}", body, group, buses, reads, leaves))
    return parts


def _order(name: str) -> tuple[str, int, int]:
    if name == "in_data":
        return ("", 0, 0)
    place, _, delay = name[1:].partition("_d")
    return name[0], int(place), int(delay or 0)
