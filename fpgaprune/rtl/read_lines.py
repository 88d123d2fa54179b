"""`DatapathText`: every line of a datapath's Verilog, or an error: what is claimed of it rests on all of its text."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from fpgaprune.errors import CertificateError
from fpgaprune.rtl.project import RtlLayer, VerilogProject
from fpgaprune.rtl.read_expression import Tree, UndecidedError, parse_expression, to_signed

# The input bus of a datapath.
BUS = "in_data"


@dataclass
class DatapathText:
    """The lines of a datapath.

    Attributes:
        bits_in, bits_out: of its buses.
        wires: name -> width and expression, operands first.
        registers: name -> width and the name that it takes.
        outputs: width and expression of each output, the one in the lowest bits first.
        tables: the entries of each memory.
        settles: cycles for which its input stands still; None if another one may come in every cycle.
    """

    bits_in: int
    bits_out: int
    wires: dict[str, tuple[int, Tree]] = field(default_factory=dict)
    registers: dict[str, tuple[int, str]] = field(default_factory=dict)
    outputs: list[tuple[int, Tree]] = field(default_factory=list)
    tables: dict[str, list[int]] = field(default_factory=dict)
    settles: int | None = None

    @classmethod
    def read(cls, project: VerilogProject, row: RtlLayer, role: str) -> DatapathText:
        """Return the datapath `role` of a layer.

        Raises:
            CertificateError: a line is in no form that `to_verilog` writes.
        """
        module = f"{row.module}_{role}"
        files = {name.rsplit("/", 1)[-1]: name for name in row.files}

        def text_of(name: str) -> str:
            try:
                return (project.path / files[f"{name}.v"]).read_text()
            except (KeyError, FileNotFoundError):
                raise CertificateError(f"{project.path}: module {name} is gone; write the Verilog again") from None

        control = re.search(rf"fp_settle #\(\.DEPTH\((\d+)\)\) settle_{role} ", text_of(row.module))
        return replace(_Reader(module, text_of).read(), settles=int(control[1]) if control else None)


_HEADER = re.compile(
    r"module (\w+) \(\n(?:    input wire clk,\n    input wire ce,\n)?((?:    input wire \[\d+:0\] \w+,\n)+)"
    r"    output wire \[(\d+):0\] out_data\n\);\n(.*)endmodule\n$",
    re.S,
)
_BUS = re.compile(r"    input wire \[(\d+):0\] (\w+),\n")
_BLOCK = re.compile(r"    always @\(posedge clk\) if \(ce\) begin\n((?:        \w+ <= \w+;\n)+)    end\n")
_JOINED = re.compile(r"    assign out_data = \{\n([^}]*)\n    \};\n")
_LINES = {
    "small_table": re.compile(r"    localparam \[\d+:0\] (v\d+_table) = (\d+)'h([0-9a-f]+);"),
    "looked_up": re.compile(
        r"    wire signed \[(\d+):0\] (v\d+) = "
        r"\$signed\((v\d+_table)\[\{((?:v\d+(?:_d\d+)?\[\d+:0\], )+)(\d+)'d0\} \+: (\d+)\]\);"
    ),
    "wire": re.compile(r"    wire (?:signed )?\[(\d+):0\] ([vy]\d+) = (.*);"),
    "register": re.compile(r"    reg signed \[(\d+):0\] (v\d+_d\d+);"),
    "declared": re.compile(r"    wire signed \[(\d+):0\] (v\d+(?:_d\d+)?);"),
    "lookup": re.compile(r"    (\w+_rom\d+) lookup\d+ \(\.address\((.*)\), \.data\((v\d+)\)\);"),
    "taken": re.compile(r"    assign (v\d+(?:_d\d+)?) = \$signed\((\w+)\[(\d+):(\d+)\]\);"),
    "bus": re.compile(r"    wire \[(\d+):0\] (\w+_part\d+)_data;"),
    "part": re.compile(r"    (\w+_part\d+) \w+ \((.*)\);"),
}
_PORT = re.compile(r"\.(\w+)\((\w+)\)")
_PADDED = re.compile(r"\{\d+'d0, (v\d+(?:_d\d+)?\[\d+:0\])\}")
_INDEX = re.compile(r"(\w+)\[(\d+):0\]")
_TABLE = re.compile(r"^            (\d+)'d(\d+): data = (\d+)'h([0-9a-f]+);$", re.M)


class _Reader:
    def __init__(self, module: str, text_of: Callable[[str], str]) -> None:
        self._module, self._text_of = module, text_of
        self._widths: dict[str, int] = {}
        self._constants: dict[str, tuple[int, int]] = {}
        self._readers: Mapping[str, Callable[[re.Match[str]], None]] = {
            "small_table": self._small_table,
            "looked_up": self._looked_up,
            "wire": self._wire,
            "register": self._register,
            "declared": self._declared,
            "lookup": self._lookup,
            "taken": self._taken,
            "bus": lambda _: None,  # only the instance of a part drives it
            "part": self._part,
        }
        self._leaving: dict[str, dict[str, tuple[int, int]]] = {}
        self._whole = DatapathText(0, 0)

    def read(self) -> DatapathText:
        buses, bits_out, rest, leaving = self._body(self._module)
        if list(buses) != [BUS]:
            raise self._problem(f"it has the inputs {', '.join(buses)}")
        self._whole.bits_in, self._whole.bits_out = buses[BUS], bits_out
        self._lines(rest)
        outputs = {f"y{at}" for at in range(len(leaving))}
        if leaving[::-1] != [f"y{at}" for at in range(len(leaving))] or not outputs <= self._whole.wires.keys():
            raise self._problem("its outputs do not lie side by side")
        self._whole.outputs = [self._whole.wires.pop(f"y{at}") for at in range(len(leaving))]
        if sum(width for width, _ in self._whole.outputs) != bits_out:
            raise self._problem("its outputs do not fill its bus")
        known = {**self._whole.wires, **self._whole.registers}
        for name in self._widths.keys() - known.keys():
            raise self._problem(f"nothing drives {name}")
        if not all(width for width, _ in known.values()):
            raise self._problem("a register has no width")
        return self._whole

    def _problem(self, text: str) -> CertificateError:
        return UndecidedError(f"module {self._module} is in another form than to_verilog writes: {text}")

    def _body(self, module: str) -> tuple[dict[str, int], int, str, list[str]]:
        """Read the width of each input bus, the output's bits, the lines, and the output's names, highest first."""
        found = _HEADER.search(self._text_of(module))
        if found is None or found[1] != module:
            raise self._problem(f"{module} has other ports")
        rest = found[4]
        joined = _JOINED.search(rest)
        if joined is None:
            raise self._problem(f"{module} drives its output otherwise")
        names = re.split(r",\s+", joined[1].strip())
        rest = rest.replace(joined[0], "")
        for block in _BLOCK.findall(rest):
            for line in block.splitlines():
                name, source = line.strip(" ;").split(" <= ")
                if name in self._whole.registers:
                    raise self._problem(f"register {name} takes two values")
                self._whole.registers[name] = (0, source)
        rest = _BLOCK.sub("", rest)
        return {name: int(high) + 1 for high, name in _BUS.findall(found[2])}, int(found[3]) + 1, rest, names

    def _lines(self, rest: str) -> None:
        for line in rest.splitlines():
            for kind, form in _LINES.items():
                found = form.fullmatch(line)
                if found is not None:
                    self._readers[kind](found)
                    break
            else:
                raise self._problem(f"{line.strip()!r}")

    def _new(self, name: str, width: int, tree: Tree) -> None:
        if name in self._whole.wires:
            raise self._problem(f"{name} is driven twice")
        self._whole.wires[name] = (width, tree)

    def _small_table(self, found: re.Match[str]) -> None:
        name, bits, digits = found.groups()
        if name in self._constants:
            raise self._problem(f"{name} has two values")
        self._constants[name] = int(bits), int(digits, 16)

    def _looked_up(self, found: re.Match[str]) -> None:
        """Read a value that is an entry of a constant."""
        width, name, table = int(found[1]) + 1, found[2], found[3]
        index = [(one, int(high) + 1) for one, high in _INDEX.findall(found[4])][::-1]
        count, places, bits = sum(own for _, own in index), int(found[5]), int(found[6])
        size, whole = self._constants.get(table, (0, 0))
        if table != f"{name}_table" or size != 1 << count + places or not bits == width <= 1 << places:
            raise self._problem(f"{name} takes no entry of a table of its own")
        entries = [to_signed(whole >> (at << places), width) for at in range(1 << count)]
        self._new(name, width, ("table", entries, *(("bits", one, own - 1, 0, False) for one, own in index)))

    def _wire(self, found: re.Match[str]) -> None:
        self._new(found[2], int(found[1]) + 1, parse_expression(found[3]))

    def _register(self, found: re.Match[str]) -> None:
        name = found[2]
        if name not in self._whole.registers:
            raise self._problem(f"register {name} takes no value")
        self._whole.registers[name] = (int(found[1]) + 1, self._whole.registers[name][1])

    def _declared(self, found: re.Match[str]) -> None:
        """Read a name that a memory or another part drives."""
        name, width = found[2], int(found[1]) + 1
        known = self._widths.setdefault(name, width)
        if known != width:
            raise self._problem(f"{name} has {known} bits here and {width} there")

    def _lookup(self, found: re.Match[str]) -> None:
        rom, address, name = found.groups()
        width = self._widths.get(name, 0)
        entries = _TABLE.findall(self._text_of(rom))
        if [int(place) for _, place, _, _ in entries] != list(range(len(entries))):
            raise self._problem(f"the entries of {rom} are not in order")
        size = int(entries[0][0])
        values = [to_signed(int(word, 16), int(bits)) for _, _, bits, word in entries]
        self._whole.tables[rom] = values + [0] * ((1 << size) - len(entries))
        # Zeros before an address change nothing.
        padded = _PADDED.fullmatch(address)
        self._new(name, width, ("rom", rom, parse_expression(padded[1] if padded else address)))

    def _taken(self, found: re.Match[str]) -> None:
        """Check that a value that comes from another part lies there under its own name."""
        name, bus, high, low = found[1], found[2], int(found[3]), int(found[4])
        place = low, self._widths.get(name)
        if self._leaving.get(bus.removesuffix("_data"), {}).get(name) != place or high != low + (place[1] or 0) - 1:
            raise self._problem(f"{name} is not what lies at {bus}[{high}:{low}]")

    def _part(self, found: re.Match[str]) -> None:
        part, ports = found[1], dict(_PORT.findall(found[2]))
        wanted = {name: name for name in ports} | {"out_data": f"{part}_data"}
        own, bits, rest, leaving = self._body(part)
        if ports != wanted or not own.keys() <= ports.keys():
            raise self._problem(f"part {part} is connected otherwise")
        self._lines(rest)
        at, places = 0, {}
        for name in leaving[::-1]:
            width = self._width(name)
            places[name] = (at, width)
            at += width
        if at != bits:
            raise self._problem(f"the values of {part} do not fill its bus")
        self._leaving[part] = places

    def _width(self, name: str) -> int:
        found = self._whole.wires.get(name) or self._whole.registers.get(name)
        if found is None:
            raise self._problem(f"nothing drives {name}")
        return found[0]
