"""`GateMateCells`: what the cells of synthesis for a GateMate are, as parts of a netlist."""

from __future__ import annotations

from collections.abc import Iterator

from fpgaprune.errors import ReadbackError
from fpgaprune.readback.cells_file import SynthesisedCell, SynthesisedCells
from fpgaprune.readback.gatemate.blocks import MODES, PortSettings, memory, ram_place
from fpgaprune.readback.gatemate.cells import XOR3, tree
from fpgaprune.readback.gatemate.database import Database
from fpgaprune.readback.gatemate.multipliers import multiply
from fpgaprune.readback.netlist import ONE, OPEN, ZERO
from fpgaprune.readback.parts import CARRY, CHOICE, COPY, INVERSE, Parts
from fpgaprune.readback.synthesised import SynthesisReader

_MODES = {"NO_CHANGE": MODES[0], "WRITE_THROUGH": MODES[1]}


class GateMateCells(SynthesisReader[Parts]):
    """Makes parts of the cells of synthesis.

    Args:
        cells: as they stand beside the bitstream.
        db: what nextpnr knows of the device.
    """

    def __init__(self, cells: SynthesisedCells, db: Database) -> None:
        super().__init__(cells, Parts())
        self._db = db

    def made_of(self, name: str, cell: SynthesisedCell) -> Iterator[str]:
        """Make the parts of a cell; errors are those of the class above."""
        parts, place, number = self.parts, cell.bel, cell.number

        def net(port: str, at: int = 0) -> int:
            return self.bit(cell, port, at)

        def nets(*ports: str) -> list[int]:
            return [net(port) for port in ports]

        if cell.type in ("CC_LUT1", "CC_LUT2"):
            parts.table(number("INIT"), nets("I0", "I1")[: int(cell.type[-1])], place, net("O"))
        elif cell.type == "CC_L2T4":
            table = tree(number("INIT_L00"), number("INIT_L01"), number("INIT_L10"))
            parts.table(table, nets("I0", "I1", "I2", "I3"), place, net("O"))
        elif cell.type == "CC_L2T5":
            table = tree(number("INIT_L02"), number("INIT_L03"), number("INIT_L11"))
            lower = parts.table(table, nets("I0", "I1", "I2", "I3"), f"{name}/lower")
            parts.table(number("INIT_L20"), (net("I4"), lower), place, net("O"))
        elif cell.type == "CC_MX2":
            parts.table(CHOICE, nets("D0", "D1", "S0"), place, net("Y"))
        elif cell.type == "CC_MX4":
            low = parts.table(CHOICE, nets("D0", "D1", "S0"), f"{name}/low")
            high = parts.table(CHOICE, nets("D2", "D3", "S0"), f"{name}/high")
            parts.table(CHOICE, (low, high, net("S1")), place, net("Y"))
        elif cell.type == "CC_ADDF":
            for table, port in ((XOR3, "S"), (CARRY, "CO")):
                if cell.connections.get(port):
                    parts.table(table, nets("A", "B", "CI"), f"{name}/{port}", net(port))
        elif cell.type == "CC_DFF":
            self._register(name, cell)
        elif cell.type == "CC_MULT":
            a, b = ([self.net(bit) for bit in cell.connections[letter]] for letter in "AB")
            self.same(cell.connections["P"], multiply(parts, a, b, len(cell.connections["P"]), name), name)
        elif cell.type in ("CC_BRAM_20K", "CC_BRAM_40K"):
            place = self._memory(name, cell)
        elif cell.type in ("CC_IBUF", "CC_OBUF", "CC_BUFG"):
            taken, given = ("A", "O") if cell.type == "CC_OBUF" else ("I", "O" if cell.type == "CC_BUFG" else "Y")
            parts.table(COPY, nets(taken), place, net(given))
            self.faster(self.wire_of(cell, given), self.wire_of(cell, taken))
        else:
            raise self.unknown(name, cell)
        yield place

    def _register(self, name: str, cell: SynthesisedCell) -> None:
        if self.bit(cell, "SR") != int(cell.number("SR_INV")) or cell.number("CLK_INV"):
            raise ReadbackError(
                f"cell {name!r} is reset without the clock, or works at the falling edge; fpgaprune compares neither"
            )
        enable = self.bit(cell, "EN", 0, ONE)
        if cell.number("EN_INV"):
            enable = self.parts.table(INVERSE, (enable,), f"{name}/enable")
        start = {"0": 0, "1": 1}.get(cell.parameters.get("INIT", "x"), OPEN)
        self.parts.register(self.bit(cell, "D"), enable, ZERO, start, cell.bel, self.bit(cell, "Q"))
        self.clocked(cell, "CLK")

    def _memory(self, name: str, cell: SynthesisedCell) -> str:
        """Make the parts of a memory; return its place."""
        halves = 1 if cell.type == "CC_BRAM_20K" else 2
        text, number = cell.parameters, cell.number
        inverted = [key for key, value in text.items() if key.endswith(("_INV", "DO_REG", "ECC_EN")) and "1" in value]
        if inverted or text.get("CAS", "NONE").strip() != "NONE":
            strange = inverted[0] if inverted else "CAS"
            raise ReadbackError(f"cell {name!r} has {strange}; fpgaprune does not compare that")

        def wire(port: str, at: int) -> int:
            return self.bit(cell, f"{port[-1]}_{port[:-1]}", at)

        ports = {}
        for letter in "AB":
            if not self.is_constant(self.wire_of(cell, f"{letter}_CLK")):
                writes, reads = number(f"{letter}_WR_WIDTH"), number(f"{letter}_RD_WIDTH")
                mode = _MODES[text.get(f"{letter}_WR_MODE", "NO_CHANGE").strip()]
                ports[letter] = PortSettings(writes, reads, mode)
                self.clocked(cell, f"{letter}_CLK")
        content = bytearray()
        for row in range(64 * halves):
            bits = text.get(f"INIT_{row:02X}", "").rjust(320, "0")
            content += bytes(int(bit == "1") for bit in reversed(bits))
        place = ram_place(self._db, cell.bel, halves)
        made = memory(self.parts, bytes(content), ports, wire, place, halves=halves)
        for output, choice in made.items():
            port, _, at = output.rstrip("]").partition("[")
            self.same([cell.connections[f"{port[2]}_DO"][int(at)]], [choice.made(self.parts)], f"{name}/{output}")
        return place
