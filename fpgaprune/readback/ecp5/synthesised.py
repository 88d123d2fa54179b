"""`Ecp5Cells`: what the cells of synthesis for an ECP5 are, as parts of a netlist."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from fpgaprune.errors import ReadbackError
from fpgaprune.readback.cells_file import SynthesisedCell, SynthesisedCells
from fpgaprune.readback.ecp5.blocks import DOUBLE, MODES, PortSettings, memory
from fpgaprune.readback.ecp5.cells import ADDRESS, SUM, carry, small_content
from fpgaprune.readback.ecp5.multipliers import STAGES, multiply
from fpgaprune.readback.netlist import ONE, ZERO, SmallMemory
from fpgaprune.readback.parts import CHOICE, INVERSE, Parts
from fpgaprune.readback.synthesised import SynthesisReader


class Ecp5Cells(SynthesisReader[Parts]):
    """Makes parts of the cells of synthesis."""

    def __init__(self, cells: SynthesisedCells) -> None:
        super().__init__(cells, Parts())
        wires = ((name, bits) for name, cell in cells.cells.items() for bits in cell.connections.values())
        self._uses: dict[int | str, list[str]] = {}
        for name, bits in (*wires, *cells.ports.items()):
            for bit in bits:
                self._uses.setdefault(bit, []).append(name)
        # Registers that are now behind the product of a multiplier.
        self._taken: set[str] = set()
        for cell in cells.cells.values():
            if "OUTPUT" in _stages(cell):
                self._taken.update(
                    one for at in range(36) for one in self._registers(self.wire_of(cell, f"P{at}"), "DI")
                )

    def made_of(self, name: str, cell: SynthesisedCell) -> Iterator[str]:
        """Make the parts of a cell; errors are those of the class above."""
        parts, place = self.parts, cell.bel

        def nets(*ports: str) -> list[int]:
            return [self.bit(cell, port) for port in ports]

        if cell.type == "LUT4":
            parts.table(cell.number("INIT"), nets(*"ABCD"), place, *nets("Z"))
        elif cell.type in ("PFUMX", "L6MUX21"):
            place += "/mux"
            ports = ("BLUT", "ALUT", "C0") if cell.type == "PFUMX" else ("D0", "D1", "SD")
            parts.table(CHOICE, nets(*ports), place, *nets("Z"))
        elif cell.type == "CCU2C":
            yield from self._carry(name, cell)
        elif cell.type == "TRELLIS_FF":
            if name not in self._taken:
                self._register(name, cell)
        elif cell.type == "TRELLIS_DPR16X4":
            yield from self._small(name, cell)
        elif cell.type == "DP16KD":
            self._memory(name, cell)
        elif cell.type == "MULT18X18D":
            self._product(name, cell)
        elif cell.type == "EHXPLLL":
            # The netlists are compared from when the PLL is locked.
            parts.table(0xFFFF, (), f"{name}/lock", *nets("LOCK"))
            ratio = Fraction(cell.number("CLKFB_DIV", 1), cell.number("CLKI_DIV", 1))
            self.faster(cell.connections["CLKOP"][0], cell.connections["CLKI"][0], ratio)
        else:
            raise self.unknown(name, cell)
        yield place

    def _product(self, name: str, cell: SynthesisedCell) -> None:
        """Make a multiplier; its registers are those of synthesis before its factors and behind its product."""
        stages = _stages(cell)
        if "PIPELINE" in stages:
            raise ReadbackError(f"cell {name!r} has registers within its product; fpgaprune does not compare those")

        def wire(port: str, at: int) -> int:
            if port not in ("A", "B"):
                return self.bit(cell, port)
            bit = self.wire_of(cell, f"{port}{at}")
            if f"INPUT{port}" not in stages or self.is_constant(bit):
                return self.net(bit)
            return self.bit(self._plain(next(iter(self._registers(bit, "Q")), ""), name), "DI")

        made = multiply(self.parts, stages, wire, cell.bel)
        for at, net in enumerate(made):
            bit = self.wire_of(cell, f"P{at}")
            if "OUTPUT" in stages and not self.is_constant(bit):
                behind = self._registers(bit, "DI")
                if len(self._uses.get(bit, ())) != 1 + len(behind):
                    raise ReadbackError(
                        f"a product of {name!r} is read before its register; fpgaprune does not compare that"
                    )
                for one in behind:
                    self.same(self._plain(one, name).connections["Q"], [net], f"{cell.bel}/{at}")
            else:
                self.same([bit], [net], f"{cell.bel}/{at}")

    def _registers(self, bit: int | str, port: str) -> list[str]:
        """Return the registers that have a wire at a port; a constant is none."""
        if not isinstance(bit, int):
            return []
        found = ((name, self._given.cells.get(name)) for name in self._uses.get(bit, ()))
        return [name for name, one in found if one and one.type == "TRELLIS_FF" and one.connections.get(port) == [bit]]

    def _plain(self, register: str, multiplier: str) -> SynthesisedCell:
        """Return a register that a multiplier may hold: always enabled, never reset, 0 at the beginning."""
        cell = self._given.cells.get(register)
        wanted = {"CEMUX": "1", "REGSET": "RESET", "CLKMUX": "CLK"}
        if cell is None or any(_text(cell, name, "") != value for name, value in wanted.items()):
            raise ReadbackError(f"{multiplier!r} holds a register that synthesis does not have before or behind it")
        if self.bit(cell, "LSR") != ZERO:
            raise ReadbackError(f"{multiplier!r} holds the register {register!r}, which is reset")
        self.clocked(cell, "CLK")
        return cell

    def _carry(self, name: str, cell: SynthesisedCell) -> Iterator[str]:
        """Yield both halves; the lower half's carry is no wire of synthesis."""
        slice_, into = cell.bel[:-1], self.bit(cell, "CIN")
        for half in range(2):
            bits, injects = cell.number(f"INIT{half}"), _text(cell, f"INJECT1_{half}", "YES") == "YES"
            inputs = [self.bit(cell, f"{letter}{half}") for letter in "ABCD"]
            place = f"{slice_}{half}"
            own = self.parts.table(bits, inputs, f"{name}/own{half}")
            if cell.connections.get(f"S{half}"):
                self.parts.table(SUM, (own, ZERO if injects else into), f"{place}/sum", self.bit(cell, f"S{half}"))
            table, out = carry(bits, injects=injects), (own, into, *inputs[:2])
            shown = self.bit(cell, "COUT") if half and not self.is_constant(self.wire_of(cell, "COUT")) else None
            into = self.parts.table(table, out, f"{place}/carry", shown)
            yield from (f"{place}/sum", f"{place}/carry")

    def _register(self, name: str, cell: SynthesisedCell) -> None:
        start = int(_text(cell, "REGSET", "RESET") == "SET")
        reset, enable = ZERO, _text(cell, "CEMUX", "CE")
        if "LSR" in cell.connections:
            reset = self.bit(cell, "LSR")
            if _text(cell, "LSRMUX", "LSR") == "INV":
                reset = self.parts.table(INVERSE, (reset,), f"{name}/reset")
        settings = {"SRMODE": "LSR_OVER_CE", "CLKMUX": "CLK", "LSRMODE": "LSR"}
        for setting, wanted in settings.items():
            if _text(cell, setting, wanted) != wanted and (setting == "CLKMUX" or reset != ZERO):
                raise ReadbackError(
                    f"cell {name!r} has {setting} {_text(cell, setting, wanted)}; fpgaprune compares {wanted}"
                )
        given = self.bit(cell, "CE", 0, ONE)
        if enable == "INV":
            given = self.parts.table(INVERSE, (given,), f"{name}/enable")
        given = int(enable) if enable in ("0", "1") else given
        data = self.bit(cell, "DI" if "DI" in cell.connections else "M")
        self.parts.register(data, given, reset, start, cell.bel, self.bit(cell, "Q"))
        self.clocked(cell, "CLK")

    def _small(self, name: str, cell: SynthesisedCell) -> Iterator[str]:
        if _text(cell, "WCKMUX", "WCK") != "WCK":
            raise ReadbackError(f"cell {name!r} is written at the falling edge; fpgaprune does not compare that")
        enable = self.bit(cell, "WRE")
        if _text(cell, "WREMUX", "WRE") == "INV":
            enable = self.parts.table(INVERSE, (enable,), f"{name}/enable")
        words = int(cell.parameters.get("INITVAL", "0").replace("x", "0"), 2)

        def four(port: str) -> tuple[int, int, int, int]:
            nets = dict(zip(ADDRESS, (self.bit(cell, port, at) for at in range(4)), strict=True))
            return nets[0], nets[1], nets[2], nets[3]

        for at in range(4):
            place = f"{cell.bel.rpartition('/')[0]}/RAM{at}"
            data, output = self.bit(cell, "DI", at), self.bit(cell, "DO", at)
            one = small_content(words, at), four("RAD"), four("WAD"), enable, data, output, place
            self.parts.netlist.small.append(SmallMemory(*one))
            yield place
        self.clocked(cell, "WCK")

    def _memory(self, name: str, cell: SynthesisedCell) -> None:
        def wire(port: str, at: int) -> int:
            numbered = f"{port}{at}" if port[:2] in ("AD", "DI", "CS") else port
            net = self.bit(cell, numbered)
            if _text(cell, f"{numbered}MUX", numbered) == "INV":
                return self.parts.table(INVERSE, (net,), f"{cell.bel}/{numbered}")
            return net

        ports = {}
        for letter in "AB":
            if self.is_constant(self.wire_of(cell, f"CLK{letter}")):
                continue
            if _text(cell, f"CLK{letter}MUX", "CLK") == "INV" or _text(cell, f"REGMODE_{letter}", "NOREG") != "NOREG":
                raise ReadbackError(
                    f"cell {name!r} has output registers or the falling edge; fpgaprune compares neither"
                )
            width = cell.number(f"DATA_WIDTH_{letter}", 18)
            mode = MODES[_text(cell, f"WRITEMODE_{letter}", "NORMAL")]
            selected = int(_text(cell, f"CSDECODE_{letter}", "0b000").removeprefix("0b"), 2)
            ports[letter] = PortSettings(width, mode, selected)
            if width == DOUBLE and letter == "A" and self.bit(cell, "WEA") != ONE:
                raise ReadbackError(f"cell {name!r} has a write enable beside those of bytes; fpgaprune compares none")
            self.clocked(cell, f"CLK{letter}")
        shown = memory(self.parts, _content(cell), ports, wire, cell.bel)
        self.same([self.wire_of(cell, f"DO{letter}{at}") for letter in "AB" for at in range(18)], shown, cell.bel)


def _stages(cell: SynthesisedCell) -> set[str]:
    """Return where a multiplier holds registers."""
    return {stage for stage in STAGES if _text(cell, f"REG_{stage}_CLK", "NONE") != "NONE"}


def _text(cell: SynthesisedCell, name: str, default: str) -> str:
    """Return a parameter that is text; in JSON, yosys puts a space behind text that could be a number."""
    return cell.parameters.get(name, default).strip()


def _content(cell: SynthesisedCell) -> bytes:
    """Return the bits of a memory after configuration, word by word of 18; of each twenty bits two are none."""
    found = bytearray()
    for row in range(64):
        text = cell.parameters.get(f"INITVAL_{row:02X}", "").removeprefix("0x")
        whole = int(text.replace("x", "0") or "0", 2 if len(text) > 90 else 16)
        for word in range(16):
            found += bytes(whole >> (20 * word + bit) & 1 for bit in range(18))
    return bytes(found)
