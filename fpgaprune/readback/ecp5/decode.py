"""`read_netlist`: the cells that a bitstream makes of an ECP5, found from its output pin backwards."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from fractions import Fraction

from fpgaprune.errors import ReadbackError
from fpgaprune.readback.ecp5.blocks import Blocks
from fpgaprune.readback.ecp5.cells import SUM, carry
from fpgaprune.readback.ecp5.chip import Ecp5
from fpgaprune.readback.ecp5.database import Tile, Wire
from fpgaprune.readback.ecp5.multipliers import Multipliers
from fpgaprune.readback.ecp5.pins import Pins
from fpgaprune.readback.ecp5.plls import Plls
from fpgaprune.readback.functions import depends
from fpgaprune.readback.netlist import ONE, OPEN, ZERO, Netlist, SmallMemory
from fpgaprune.readback.parts import CHOICE, COPY, INVERSE, Parts, reduced

# A cell's output: kind, row, column, number within the tile.
Cell = tuple[str, int, int, int]
_LOGIC, _INPUTS, _SLICES = "PLC2", "ABCD", "ABCD"
# The outputs of a slice, and those of other cells: name, number or letter, and the cell.
_OF_SLICE = re.compile(r"(F|Q|F5|FX|FCO)([0-7A-D]?)_SLICE")
_OF_CELL = re.compile(r"J?([A-Z]+)(\d*)_(EBR|MULT18|PLL)|.*_[A-Z]+[0-9]*")
_GATED = re.compile(r"G_CLKO_([LRTB])DCC(\d+)")
_GLOBAL_RESET = "GSR.GSRMODE"
# The inputs of the second table of a slice that take the data of small memories, bits 0 to 3.
_WRITTEN = "CADB"


def read_netlist(chip: Ecp5, package: str, inputs: Iterable[str], output: str, oscillator_mhz: float) -> Netlist:
    """Return what drives the pin `output`, back to registers, memories and the pins `inputs`.

    Cells on which the output does not depend are left out, whatever their bits are. A PLL is locked from the first
    cycle on; `oscillator_mhz` goes into it.

    Raises:
        ReadbackError: a cell that the output depends on is set in a way that fpgaprune does not decode; the message
            names the cell.
    """
    return _Walk(chip, Pins(chip, package, inputs), Plls(chip, oscillator_mhz)).walk(output)


class _Walk:
    """The nets that are known, and the cells that wait to be decoded."""

    def __init__(self, chip: Ecp5, pins: Pins, plls: Plls) -> None:
        self._chip, self._db, self._pins, self._wiring = chip, chip.db, pins, chip.wiring()
        self._parts = Parts()
        self._blocks, self._multipliers, self._plls = Blocks(chip), Multipliers(chip), plls
        self._net: dict[Cell, int] = {}
        self._origins: dict[Wire, Cell | int] = {}
        self._waiting: list[Cell] = []
        self._outputs: dict[tuple[str, int, int], list[int]] = {}
        self._clock: Cell | None = None
        self._decoders: dict[str, Callable[[Cell], None]] = {
            "table": self._table,
            "sum": self._sum,
            "carry": self._carry,
            "mux": self._mux,
            "register": self._register,
            "small": self._small,
            "pin": self._pin,
            "block": self._block,
            "product": self._product,
            "lock": self._lock,
        }

    def walk(self, output: str) -> Netlist:
        if self._chip.values(self._db.with_setting(_GLOBAL_RESET), _GLOBAL_RESET) != {"NONE"}:
            raise ReadbackError("the bitstream has a wire that resets all registers; fpgaprune does not decode that")
        shown, off = self._pins.driven_by(output)
        if self._value(off) != ZERO:
            raise ReadbackError(f"pin {output} does not always drive; fpgaprune does not decode that")
        self._parts.netlist.output = self._value(shown)
        while self._waiting:
            cell = self._waiting.pop()
            self._decoders[cell[0]](cell)
        return self._parts.netlist

    # Nets.

    def _value(self, wire: Wire) -> int:
        """Return the net at the beginning of a wire."""
        return self._of(self._origin(wire))

    def _of(self, origin: Cell | int) -> int:
        """Return the net of a cell, which will be decoded; a number stands for itself."""
        if isinstance(origin, int):
            return origin
        if origin[0] not in self._decoders:
            raise ReadbackError(f"the output depends on the {origin[0]} at {_place(origin)}; wanted a clock to do so")
        if origin not in self._net:
            self._net[origin] = self._parts.net()
            self._waiting.append(origin)
        return self._net[origin]

    def _origin(self, wire: Wire) -> Cell | int:
        """Return the cell that drives a wire, or the net of a constant, or `OPEN`."""
        if wire not in self._origins:
            self._origins[wire] = self._found(wire)
        return self._origins[wire]

    def _found(self, wire: Wire) -> Cell | int:
        seen: set[Wire] = set()
        while True:
            if wire in seen:
                raise ReadbackError(f"the switches at {wire.place} lead in a circle; nothing drives that wire")
            seen.add(wire)
            found = self._cell_at(wire)
            if found is not None:
                return found
            before = self._gated(wire) or self._wiring.before(wire)
            if before is None:
                if _OF_CELL.fullmatch(wire.name):
                    raise ReadbackError(f"the output depends on {wire.place}; fpgaprune does not decode that cell")
                return OPEN
            wire = before

    def _gated(self, wire: Wire) -> Wire | None:
        """Return the wire before the buffer of a global net; None for other wires."""
        found = _GATED.fullmatch(wire.name)
        if found is None:
            return None
        name = f"DCC_{found[1]}{found[2]}.MODE"
        if self._chip.values(self._db.with_setting(name), name) != {"NONE"}:
            raise ReadbackError(f"the clock is gated by {name.split('.')[0]}; fpgaprune does not decode that")
        return Wire(0, 0, wire.name.replace("CLKO", "CLKI"))

    def _cell_at(self, wire: Wire) -> Cell | int | None:
        row, col, name = wire
        tile = self._chip.tile_of(row, col, _LOGIC)
        if tile is not None:
            return self._logic_at(tile, name)
        if self._pins.is_input(wire):
            return "pin", row, col, ord(name[6])
        constant = self._constant(wire)
        if constant is not None:
            return constant
        found = _OF_CELL.fullmatch(name)
        if found is None or found[3] is None:
            return None
        kind, port, number = found[3], found[1], int(found[2] or 0)
        if kind == "EBR" and port in ("DOA", "DOB"):
            return "block", row, col, 18 * (port == "DOB") + number
        if kind == "MULT18" and port == "P":
            return "product", row, col, number
        if kind == "PLL" and port in ("LOCK", "CLKOP"):
            return ("lock" if port == "LOCK" else "PLL"), row, col, 0
        return None

    def _constant(self, wire: Wire) -> int | None:
        """Return what a wire to a cell beyond the logic is tied to; None if to nothing."""
        name = f"CIB.{wire.name}MUX"
        for tile in self._db.at.get((wire.row, wire.col), ()):
            if name in self._db.type_of(tile).enums:
                value = self._chip.value(tile, name, wire.name)
                # Trellis calls the constant of a clock or a reset 0, and nextpnr sets it where it wants a 1.
                ties = {"0": ONE} if wire.name.startswith(("JCLK", "JLSR")) else {"0": ZERO, "1": ONE}
                return ties.get(value)
        return None

    # Logic.

    def _logic_at(self, tile: Tile, name: str) -> Cell | int | None:
        row, col = tile.row, tile.col
        if name[0] == "F" and name[1:].isdigit():
            n = int(name[1:])
            mode = self._mode(tile, n)
            if mode == "RAMW":
                raise ReadbackError(f"the output depends on the write port of {_place(('slice', row, col, n))}")
            kind = {"CCU2": "sum", "DPRAM": "small"}.get(mode)
            if kind == "small" and self._chip.way(tile, name) is not None:
                raise ReadbackError(f"the output depends on a multiplexer between memories at X{col}/Y{row}")
            return None if kind is None else (kind, row, col, n)
        found = _OF_SLICE.fullmatch(name)
        if found is None:
            return None
        kind, which = found.groups()
        if kind == "F":
            return self._table_at(tile, int(which))
        if kind == "Q":
            return "register", row, col, int(which)
        n = 2 * _SLICES.index(which or "D") + (kind != "F5")
        if kind == "FCO":
            return ("carry", row, col, n) if self._mode(tile, n) == "CCU2" else OPEN
        return "mux", row, col, n

    def _mode(self, tile: Tile, n: int) -> str:
        return self._chip.value(tile, f"SLICE{_SLICES[n // 2]}.MODE")

    def _setting(self, cell: Cell, name: str, switch: str = "") -> str:
        """Return a setting of the slice around a cell; `#` stands for which of two halves it is."""
        n = cell[3]
        whole = f"SLICE{_SLICES[n // 2]}.{name.replace('#', str(n % 2))}"
        return self._chip.value(self._tile(cell), whole, switch)

    def _tile(self, cell: Cell) -> Tile:
        tile = self._chip.tile_of(cell[1], cell[2], _LOGIC)
        if tile is None:
            raise ReadbackError(f"{_place(cell)} is no slice")
        return tile

    def _bits(self, cell: Cell) -> int:
        """Return the sixteen bits of a table."""
        n = cell[3]
        return self._chip.word([self._tile(cell)], f"SLICE{_SLICES[n // 2]}.K{n % 2}.INIT")

    def _input(self, cell: Cell, letter: str) -> Cell | int:
        """Return what drives an input of a table, or its wire M."""
        return ONE if self._is_tied(cell, letter) else self._origin(Wire(cell[1], cell[2], f"{letter}{cell[3]}"))

    def _is_tied(self, cell: Cell, letter: str) -> bool:
        """Return whether an input is tied to 1."""
        return self._setting(cell, f"{letter}#MUX", f"{letter}{cell[3]}") == "1"

    def _table_inputs(self, cell: Cell, table: int) -> list[Cell | int]:
        """Return what drives the inputs that matter to `table`; 0 for the others."""
        return [self._input(cell, letter) if depends(table, at) else ZERO for at, letter in enumerate(_INPUTS)]

    def _table_at(self, tile: Tile, n: int) -> Cell | int:
        """Return a table, or the constant that it is."""
        cell = "table", tile.row, tile.col, n
        table = self._bits(cell)
        tied = [ONE if self._is_tied(cell, letter) else OPEN for letter in _INPUTS]
        return {0: ZERO, 0xFFFF: ONE}.get(reduced(table, tied)[0], cell)

    def _made(self, cell: Cell, table: int, inputs: Iterable[Cell | int], place: str) -> None:
        """Make a table of what it depends on: other inputs are not decoded."""
        given = list(inputs)
        given += [ZERO] * (4 - len(given))
        known = [one if isinstance(one, int) else OPEN for one in given]
        table = reduced(table, known)[0]
        nets = [self._of(one) if depends(table, at) else ZERO for at, one in enumerate(given)]
        self._parts.table(table, nets, place, self._net[cell])

    def _table(self, cell: Cell) -> None:
        table = self._bits(cell)
        self._made(cell, table, self._table_inputs(cell, table), _place(cell))

    def _injects(self, cell: Cell) -> bool:
        return self._setting(cell, "CCU2.INJECT1_#") == "YES"

    def _carry_into(self, cell: Cell) -> Cell | int:
        _, row, col, n = cell
        if n % 2:
            return "carry", row, col, n - 1
        return self._origin(Wire(row, col, "FCI_SLICE" if n == 0 else f"FCI{_SLICES[n // 2]}_SLICE"))

    def _sum(self, cell: Cell) -> None:
        into = ZERO if self._injects(cell) else self._carry_into(cell)
        self._made(cell, SUM, (self._table_at(self._tile(cell), cell[3]), into), f"{_place(cell)}/sum")

    def _carry(self, cell: Cell) -> None:
        bits, own = self._bits(cell), self._table_at(self._tile(cell), cell[3])
        table = carry(bits, injects=self._injects(cell))
        a, b = self._table_inputs(cell, (bits & 15) * 0x1111)[:2]
        self._made(cell, table, (own, self._carry_into(cell), a, b), f"{_place(cell)}/carry")

    def _mux(self, cell: Cell) -> None:
        _, row, col, n = cell
        tile, letter = self._tile(cell), _SLICES[n // 2]
        if n % 2:
            taken = [self._origin(Wire(row, col, f"FX{side}{letter}")) for side in "AB"]
        else:
            taken = [self._table_at(tile, n), self._table_at(tile, n + 1)]
        self._made(cell, CHOICE, (*taken, self._input(cell, "M")), f"{_place(cell)}/mux")

    def _register(self, cell: Cell) -> None:
        _, row, col, n = cell
        place, tile, half = f"X{col}/Y{row}/SLICE{_SLICES[n // 2]}.FF{n % 2}", self._tile(cell), n // 2
        if self._setting(cell, "REG#.LSRMODE") != "LSR":
            raise ReadbackError(f"the register at {place} loads data where it is reset; fpgaprune does not decode that")
        reset, given = ZERO, self._wiring.before(Wire(row, col, f"MUXLSR{half}"))
        if given is not None:
            reset = self._inverted(given, self._chip.value(tile, f"{given.name}.LSRMUX") == "INV")
            if reset != ZERO and self._chip.value(tile, f"{given.name}.SRMODE") == "ASYNC":
                raise ReadbackError(
                    f"the register at {place} is reset without the clock; fpgaprune does not decode that"
                )
        enable = self._switched(cell, "CEMUX", Wire(row, col, f"CE{half}"))
        if not self._clocked_by(tile, self._wiring.before(Wire(row, col, f"MUXCLK{half}")), place):
            enable = reset = ZERO
        data: Cell | int = ZERO
        if enable != ZERO:
            from_table = self._setting(cell, "REG#.SD") == "1"
            data = self._origin(Wire(row, col, f"F{n}")) if from_table else self._input(cell, "M")
        start = int(self._setting(cell, "REG#.REGSET") == "SET")
        self._parts.register(self._of(data), enable, reset, start, place, self._net[cell])

    def _small(self, cell: Cell) -> None:
        _, row, col, n = cell
        place, tile = f"X{col}/Y{row}/RAM{n}", self._tile(cell)
        enable = self._switched(("slice", row, col, 0), "WREMUX", Wire(row, col, "LSR1"))
        if not self._clocked_by(tile, Wire(row, col, "CLK1"), place):
            enable = ZERO
        read = [self._of(self._input(cell, letter)) for letter in _INPUTS]
        write, data = [ZERO] * 4, ZERO
        if enable != ZERO:
            write = [self._of(self._input(("slice", row, col, 4), letter)) for letter in _INPUTS]
            data = self._of(self._input(("slice", row, col, 5), _WRITTEN[n]))
        ports = (read[0], read[1], read[2], read[3]), (write[0], write[1], write[2], write[3])
        self._parts.netlist.small.append(SmallMemory(self._bits(cell), *ports, enable, data, self._net[cell], place))

    def _switched(self, cell: Cell, name: str, wire: Wire) -> int:
        """Return the net behind a wire that a setting may invert, or make a constant."""
        value = self._setting(cell, name, wire.name)
        return int(value) if value in ("0", "1") else self._inverted(wire, value == "INV")

    def _inverted(self, wire: Wire, inverted: bool) -> int:
        """Return the net of a wire, or its inverse."""
        net = self._value(wire)
        return self._parts.table(INVERSE, (net,), f"{wire.place} inverted") if inverted else net

    # Memories, multipliers, pins.

    def _block(self, cell: Cell) -> None:
        self._output(cell, lambda row, col: self._blocks.read(self._parts, row, col, self._value, self._clocked))

    def _product(self, cell: Cell) -> None:
        self._output(cell, lambda row, col: self._multipliers.read(self._parts, row, col, self._value, self._clocked))

    def _output(self, cell: Cell, decoded: Callable[[int, int], list[int]]) -> None:
        """Make one of the outputs of a cell that is decoded once."""
        kind, row, col, number = cell
        if (kind, row, col) not in self._outputs:
            self._outputs[kind, row, col] = decoded(row, col)
        net = self._outputs[kind, row, col][number]
        self._parts.table(COPY, (net,), f"{_place(cell)}/{number}", self._net[cell])

    def _pin(self, cell: Cell) -> None:
        wire = Wire(cell[1], cell[2], f"JPADDI{chr(cell[3])}_PIO")
        self._parts.netlist.pins[self._pins.input(wire)] = self._net[cell]

    def _lock(self, cell: Cell) -> None:
        """Make a 1: the netlist begins when the PLL is locked."""
        self._plls.ratio(cell[1], cell[2])
        self._parts.table(0xFFFF, (), f"{_place(cell)}/lock", self._net[cell])

    # The clock.

    def _clocked_by(self, tile: Tile, wire: Wire | None, place: str) -> bool:
        """Return whether the clock moves at a slice's wire CLK0 or CLK1."""
        return wire is not None and self._clocked(wire, self._chip.value(tile, f"{wire.name}.CLKMUX") == "INV", place)

    def _clocked(self, wire: Wire, inverted: bool, place: str) -> bool:
        """Return whether the clock moves at a wire; a constant, and a wire that nothing is led to, do not."""
        origin = self._origin(wire)
        if isinstance(origin, int):
            return False
        if inverted:
            raise ReadbackError(f"{place} works at the falling edge; fpgaprune does not decode that")
        if self._clock is None:
            self._clock = origin
            netlist = self._parts.netlist
            netlist.clock, netlist.factor = self._origin_of_clock(origin, place)
        if origin != self._clock:
            raise ReadbackError(f"{place} has another clock, {_place(origin)}, than others, {_place(self._clock)}")
        return True

    def _origin_of_clock(self, origin: Cell, place: str) -> tuple[str, Fraction]:
        """Return the pin of a clock, and how many times as fast as there it is."""
        ratio, before = Fraction(1), origin
        if origin[0] == "PLL":
            _, row, col, _ = origin
            ratio, source = self._plls.ratio(row, col), self._origin(self._plls.input(row, col))
            if self._origin(self._plls.feedback(row, col)) != origin:
                raise ReadbackError(f"{_place(origin)} is fed back by another clock; fpgaprune does not decode that")
            before = origin if isinstance(source, int) else source
        if before[0] != "pin":
            raise ReadbackError(
                f"the clock of {place} comes from {_place(before)}; fpgaprune decodes a pin, or a PLL behind one"
            )
        return self._pins.input(Wire(before[1], before[2], f"JPADDI{chr(before[3])}_PIO")), ratio


def _place(cell: Cell) -> str:
    """Return a cell as nextpnr calls it."""
    kind, row, col, n = cell
    logic = f"SLICE{_SLICES[n // 2]}.K{n % 2}" if kind in ("table", "sum", "carry", "mux", "slice", "small") else kind
    return f"X{col}/Y{row}/{logic}"
