"""`Ice40Cells`: what the cells of synthesis for an iCE40 are, as parts of a netlist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction

from fpgaprune.readback.cells_file import SynthesisedCell, SynthesisedCells
from fpgaprune.readback.ice40.cells import Cells
from fpgaprune.readback.ice40.multipliers import multiply
from fpgaprune.readback.netlist import ONE
from fpgaprune.readback.parts import CARRY
from fpgaprune.readback.synthesised import SynthesisReader

_REGISTER = re.compile(r"SB_DFF(N?)E?(SS|SR|S|R)?")
# Rows of a memory's content in the parameters of its cell.
_ROWS, _ROW_BITS = 16, 256


class Ice40Cells(SynthesisReader[Cells]):
    """Makes parts of the cells of synthesis."""

    def __init__(self, cells: SynthesisedCells) -> None:
        super().__init__(cells, Cells())

    def made_of(self, name: str, cell: SynthesisedCell) -> Iterator[str]:
        """Make the parts of a cell; errors are those of the class above."""
        parts, wires, place = self.parts, cell.connections, cell.bel

        def net(port: str, at: int = 0) -> int:
            return self.bit(cell, port, at)

        register = _REGISTER.fullmatch(cell.type)
        if cell.type == "SB_LUT4":
            place = f"{cell.bel}/table"
            parts.table(cell.number("LUT_INIT"), [net(f"I{at}") for at in range(4)], place, net("O"))
        elif cell.type == "SB_CARRY":
            place = f"{name}/carry"
            parts.table(CARRY, (net("I0"), net("I1"), net("CI")), place, net("CO"))
        elif register is not None and not register[1] and register[2] not in ("S", "R"):
            reset = net("S" if register[2] == "SS" else "R")
            enable = self.bit(cell, "E", 0, ONE)
            parts.register(net("D"), enable, reset, int(register[2] == "SS"), place, net("Q"))
            self.clocked(cell, "C")
        elif cell.type == "SB_RAM40_4K":
            modes = cell.number("READ_MODE"), cell.number("WRITE_MODE")
            self.same(wires["RDATA"], parts.memory(_content(cell), modes, net, place), place)
            self.clocked(cell, "RCLK", "WCLK")
        elif cell.type == "SB_MAC16" and not cell.number("NEG_TRIGGER"):
            settings = {parameter: cell.number(parameter) for parameter in cell.parameters}

            def asked(port: str, at: int) -> int:
                if port == "CE":  # Registers alone ask for it.
                    self.clocked(cell, "CLK")
                return net(port, at)

            self.same(wires["O"], multiply(parts, settings, asked, place), place)
        elif cell.type == "SB_PLL40_PAD":
            # The netlists are compared from when the PLL is locked.
            parts.table(0xFFFF, (), f"{name}/lock", net("LOCK"))
            ratio = Fraction(cell.number("DIVF") + 1, cell.number("DIVR") + 1) / (1 << cell.number("DIVQ"))
            self.faster(wires["PLLOUTGLOBAL"][0], wires["PACKAGEPIN"][0], ratio)
        else:
            raise self.unknown(name, cell)
        yield place


def _content(cell: SynthesisedCell) -> bytes:
    """Return a memory's bits after configuration, word by word; place and route makes a 0 of an undefined bit."""
    rows = (cell.parameters.get(f"INIT_{row:X}", "").rjust(_ROW_BITS, "0") for row in range(_ROWS))
    return bytes(int(bit == "1") for row in rows for bit in reversed(row))
