"""`Synthesised`: the cells that synthesis made of the Verilog, with the places that place and route gave them."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

from fpgaprune.errors import ReadbackError
from fpgaprune.readback.cells_file import SynthesisedCell, read_cells
from fpgaprune.readback.functions import ONE, ZERO, Functions

_BEL = re.compile(r"X(\d+)Y(\d+)/([A-Z]+(?:\d+X\d+|16SDP4)?)(\d*)")
# How a cell's place is called in a netlist that was read back.
_PLACES = {"DFF": "Q", "LUT": "table", "MUX": "mux", "ALU": "sum"}
_LUT = re.compile(r"LUT([1-4])")
_MUX = re.compile(r"MUX2_LUT[5-8]")
REGISTER = re.compile(r"DFF(N?)([SRPC]?)(E?)")
# For each mode of an ALU, whether its table is 1, and the carry where it is 0, of I0, I1 and I3: bit by bit.
_SUBTRACT, _FIRST = 0b10011001, 0b10101010
_ALUS: Mapping[int, tuple[int, int]] = {
    0: (0b01100110, _FIRST),
    1: (_SUBTRACT, _FIRST),
    2: (0b01101001, _FIRST),
    3: (_SUBTRACT, 0xFF),
    4: (_SUBTRACT, _FIRST),
    5: (_SUBTRACT, 0b11001100),
    9: (0b01111000, 0b10001000),
}


@dataclass(frozen=True)
class Synthesised:
    """A synthesised netlist.

    Attributes:
        ports: name of a port of the whole -> its nets.
        cells: by name.
        made_by: net -> the name of the cell that drives it, the port, and the bit of the port.
        at: place, as in a netlist that was read back -> the name of the cell there.
    """

    ports: Mapping[str, list[int]]
    cells: Mapping[str, SynthesisedCell]
    made_by: Mapping[int, tuple[str, str, int]]
    at: Mapping[str, str]

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Synthesised:
        """The netlist that `make_bitstream` wrote beside a bitstream.

        Raises:
            ReadbackError: the file is gone, or is none.
        """
        found = read_cells(path)
        return cls.of(found.ports, found.cells)

    @classmethod
    def of(cls, ports: Mapping[str, list[int]], cells: Mapping[str, SynthesisedCell]) -> Synthesised:
        """The netlist of these ports and cells."""
        made_by = {
            bit: (name, port, at)
            for name, cell in cells.items()
            for port in _outputs(cell.type)
            for at, bit in enumerate(cell.connections.get(port, ()))
            if isinstance(bit, int)
        }
        at = {
            place: name for name, cell in cells.items() for bel in (cell.bel, *cell.copies) if (place := place_of(bel))
        }
        return cls(ports, cells, made_by, at)

    def buffered(self, port: str) -> int | str:
        """The net behind the buffer of an input, or before that of an output.

        Raises:
            ReadbackError: there is no such buffer.
        """
        for cell in self.cells.values():
            for kind, outside, inside in (("IBUF", "I", "O"), ("OBUF", "O", "I")):
                if cell.type == kind and cell.connections[outside] == self.ports.get(port):
                    return cell.connections[inside][0]
        raise ReadbackError(f"the synthesised netlist has no buffer at its port {port!r}; export the run again")

    def type_before(self, bit: int | str) -> str:
        """The type of the cell that drives a net; empty for a constant."""
        made = self.made_by.get(bit) if isinstance(bit, int) else None
        return "" if made is None else self.cells[made[0]].type

    def kinds(self, kind: str) -> list[SynthesisedCell]:
        """All cells of a type."""
        return [cell for cell in self.cells.values() if cell.type == kind]


def place_of(bel: str) -> str:
    """A place of place and route as a netlist that was read back calls it: `X5Y14/DFF2` is `R15C6_Q2`."""
    found = _BEL.fullmatch(bel)
    if found is None:
        return ""
    col, row, kind, number = found.groups()
    return f"R{int(row) + 1}C{int(col) + 1}_{_PLACES.get(kind, kind)}{number}"


def _outputs(kind: str) -> tuple[str, ...]:
    if REGISTER.fullmatch(kind):
        return ("Q",)
    return {
        "ALU": ("SUM", "COUT"),
        "GND": ("G",),
        "VCC": ("V",),
        "IBUF": ("O",),
        "INV": ("O",),
        "rPLL": ("CLKOUT", "LOCK"),
        "MULT9X9": ("DOUT",),
        "MULT18X18": ("DOUT",),
    }.get(kind, ("DO", "DOA", "DOB", "F", "O"))


class SynthesisedFunctions:
    """What each net of a synthesised netlist computes, of the bits of registers, memories and pins."""

    def __init__(self, netlist: Synthesised, functions: Functions) -> None:
        self._netlist, self._functions = netlist, functions
        self._known: dict[int, int] = {}

    def of(self, bit: int | str) -> int:
        """The function of a net, or of a constant.

        Raises:
            ReadbackError: a cell is of a type that is not compared, or nothing drives the net.
        """
        if isinstance(bit, str):
            return ONE if bit == "1" else ZERO
        stack = [bit]
        while stack:
            top = stack[-1]
            if top in self._known:
                stack.pop()
                continue
            waiting = [net for net in self._reads(top) if isinstance(net, int) and net not in self._known]
            if waiting:
                stack += waiting
                continue
            self._known[top] = self._made(top)
        return self._known[bit]

    def known(self, bit: int | str) -> int | None:
        """The function of a net, if it was set or asked for before."""
        return self._known.get(bit) if isinstance(bit, int) else None

    def set(self, bit: int | str, function: int) -> None:
        """The net `bit` is `function`: it belongs to a cell that was found in both netlists."""
        if isinstance(bit, int):
            self._known[bit] = function

    def _cell(self, bit: int) -> tuple[str, SynthesisedCell, str]:
        if bit not in self._netlist.made_by:
            raise ReadbackError(f"nothing drives net {bit} of the synthesised netlist; export the run again")
        name, port, _ = self._netlist.made_by[bit]
        return name, self._netlist.cells[name], port

    def _reads(self, bit: int) -> list[int | str]:
        _, cell, port = self._cell(bit)
        wires = cell.connections
        if cell.type == "ALU":
            return [*wires["I0"], *wires["I1"], *wires["I3"], *wires["CIN"]]
        if _LUT.fullmatch(cell.type) or _MUX.fullmatch(cell.type) or cell.type == "INV":
            return [net for name, bits in wires.items() if name != port for net in bits]
        return []

    def _made(self, bit: int) -> int:
        name, cell, port = self._cell(bit)
        wires, make = cell.connections, self._functions.made
        table = _LUT.fullmatch(cell.type)

        def read(*ports: str) -> list[int]:
            return [self._value(wires[port][0]) for port in ports]

        if table is not None:
            return make(cell.number("INIT"), read(*(f"I{at}" for at in range(int(table[1])))))
        if _MUX.fullmatch(cell.type):
            return make(0b11001010, read("I0", "I1", "S0"))
        if cell.type == "INV":
            return make(0b01, read("I"))
        if cell.type in ("GND", "VCC"):
            return int(cell.type == "VCC")
        if cell.type == "ALU":
            mode = cell.number("ALU_MODE")
            if mode not in _ALUS:
                raise ReadbackError(f"cell {name!r} is an ALU of mode {mode}; fpgaprune does not compare those")
            own, carry = (make(rows, read("I0", "I1", "I3")) for rows in _ALUS[mode])
            into = self._value(wires["CIN"][0])
            return make(0b0110, [own, into]) if port == "SUM" else make(0b11001010, [carry, into, own])
        # A register or a memory on which the bitstream does not depend.
        return self._functions.free()

    def _value(self, bit: int | str) -> int:
        return self._known[bit] if isinstance(bit, int) else int(bit == "1")
