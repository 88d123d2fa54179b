"""`Synthesised`: the netlist that synthesis made for an iCE40, of the same parts as one that was read back."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from fpgaprune.errors import ReadbackError
from fpgaprune.readback.cells_file import SynthesisedCell, SynthesisedCells
from fpgaprune.readback.comparison import CellComparison, compare_netlists
from fpgaprune.readback.ice40.cells import CARRY, Cells
from fpgaprune.readback.ice40.multipliers import multiply
from fpgaprune.readback.netlist import ONE, ZERO, Netlist

_REGISTER = re.compile(r"SB_DFF(N?)E?(SS|SR|S|R)?")
# Rows of a memory's content in the parameters of its cell.
_ROWS, _ROW_BITS = 16, 256


@dataclass(frozen=True)
class Synthesised:
    """A synthesised netlist.

    Attributes:
        netlist: its cells as parts, in the places that place and route gave them.
        names: place of a part -> the name of its cell.
    """

    netlist: Netlist
    names: Mapping[str, str]

    @classmethod
    def of(cls, cells: SynthesisedCells) -> Synthesised:
        """The netlist of these cells, from the port `serial_in` to `serial_out`.

        Raises:
            ReadbackError: a cell is of a type that is not compared.
        """
        return _Reading(cells).read()

    def compared(self, netlist: Netlist) -> CellComparison:
        """Compare a netlist that was read back; errors are those of `compare_netlists`."""
        return compare_netlists(netlist, self.netlist, self.names)


class _Reading:
    def __init__(self, synthesised: SynthesisedCells) -> None:
        self._synthesised, self._cells = synthesised, Cells()
        self._nets: dict[int, int] = {}
        self._names: dict[str, str] = {}
        self._clocks: set[int | str] = set()

    def read(self) -> Synthesised:
        ports, netlist = self._synthesised.ports, self._cells.netlist
        netlist.pins = {"serial_in": self._net(ports["serial_in"][0])}
        netlist.output = self._net(ports["serial_out"][0])
        clocks: set[int | str] = {*ports["clk"]}
        for name, cell in self._synthesised.cells.items():
            self._read(name, cell)
            if cell.type == "SB_PLL40_PAD":
                clocks = {*cell.connections["PLLOUTGLOBAL"]}
                ratio = Fraction(cell.number("DIVF") + 1, cell.number("DIVR") + 1)
                netlist.factor = ratio / (1 << cell.number("DIVQ"))
        if self._clocks != clocks:
            raise ReadbackError("synthesis has another clock than that of the pin; fpgaprune does not compare that")
        return Synthesised(netlist, self._names)

    def _net(self, bit: int | str) -> int:
        """The net of a bit; one that is undefined is 0, as place and route leaves it."""
        if isinstance(bit, str):
            return ONE if bit == "1" else ZERO
        if bit not in self._nets:
            self._nets[bit] = self._cells.net()
        return self._nets[bit]

    def _read(self, name: str, cell: SynthesisedCell) -> None:
        cells, wires = self._cells, cell.connections

        def net(port: str, at: int = 0, default: int = ZERO) -> int:
            return self._net(wires[port][at]) if len(wires.get(port, ())) > at else default

        register = _REGISTER.fullmatch(cell.type)
        if cell.type == "SB_LUT4":
            place = f"{cell.bel}/table"
            cells.table(cell.number("LUT_INIT"), [net(f"I{at}") for at in range(4)], place, net("O"))
        elif cell.type == "SB_CARRY":
            place = f"{name}/carry"
            cells.table(CARRY, (net("I0"), net("I1"), net("CI")), place, net("CO"))
        elif register is not None and not register[1] and register[2] not in ("S", "R"):
            place = cell.bel
            reset = net("S" if register[2] == "SS" else "R")
            cells.register(net("D"), net("E", 0, ONE), reset, int(register[2] == "SS"), place, net("Q"))
            self._clocks.update(wires["C"])
        elif cell.type == "SB_RAM40_4K":
            place = cell.bel
            modes = cell.number("READ_MODE"), cell.number("WRITE_MODE")
            self._made(wires["RDATA"], cells.memory(_content(cell), modes, net, place), place)
            self._clocks.update(bit for port in ("RCLK", "WCLK") for bit in wires[port] if isinstance(bit, int))
        elif cell.type == "SB_MAC16" and not cell.number("NEG_TRIGGER"):
            place = cell.bel
            settings = {parameter: cell.number(parameter) for parameter in cell.parameters}

            def asked(port: str, at: int) -> int:
                if port == "CE":  # Registers alone ask for it.
                    self._clocks.update(wires["CLK"])
                return net(port, at)

            self._made(wires["O"], multiply(cells, settings, asked, place), place)
        elif cell.type == "SB_PLL40_PAD":
            place = cell.bel
            # The netlists are compared from when the PLL is locked.
            cells.table(0xFFFF, (), f"{name}/lock", net("LOCK"))
        else:
            raise ReadbackError(f"cell {name!r} of synthesis is a {cell.type}; fpgaprune does not compare those")
        self._names[place] = name

    def _made(self, bits: list[int | str], nets: list[int], place: str) -> None:
        for at, (bit, net) in enumerate(zip(bits, nets, strict=True)):
            self._cells.table(0b10, (net,), f"{place}/shown{at}", self._net(bit))


def _content(cell: SynthesisedCell) -> bytes:
    """The bits of a memory after configuration, word by word; place and route makes a 0 of one that is undefined."""
    rows = (cell.parameters.get(f"INIT_{row:X}", "").rjust(_ROW_BITS, "0") for row in range(_ROWS))
    return bytes(int(bit == "1") for row in rows for bit in reversed(row))
