"""`read_netlist`: the cells that a bitstream makes of a Gowin FPGA, found from its output pin backwards."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction

from fpgaprune.errors import ReadbackError
from fpgaprune.readback.functions import depends, fixed
from fpgaprune.readback.gowin.blocks import Blocks
from fpgaprune.readback.gowin.chip import CONSTANTS, Chip, Wire
from fpgaprune.readback.gowin.multipliers import Multipliers, Product
from fpgaprune.readback.gowin.pins import Pins
from fpgaprune.readback.gowin.plls import PllOutput, Plls
from fpgaprune.readback.gowin.slices import Slices
from fpgaprune.readback.netlist import (
    OPEN,
    BlockMemory,
    BlockPort,
    Lut,
    Multiplier,
    Netlist,
    Register,
    SmallMemory,
    read_address,
)

# A cell's output: kind, row, column, number within the tile.
Cell = tuple[str, int, int, int]
_INPUTS = "ABCD"
# The multiplexers between tables: which wires the output takes, and by which wire it chooses.
_MUXES: Mapping[int, tuple[str, str]] = {
    0: ("F0", "F1"),
    2: ("F2", "F3"),
    4: ("F4", "F5"),
    6: ("F6", "F7"),
    1: ("OF2", "OF0"),
    5: ("OF6", "OF4"),
    3: ("OF5", "OF1"),
    7: ("OF3", "OF3"),  # the first is that of the next tile
}


def read_netlist(chip: Chip, pins: Pins, output: str, oscillator_mhz: float) -> Netlist:
    """Return what drives the pin `output`, back to registers, memories and input pins.

    Cells on which the output does not depend are left out, whatever their fuses are. A PLL is locked from the first
    cycle on; `oscillator_mhz` goes into it.

    Raises:
        ReadbackError: a cell that the output depends on is set in a way that fpgaprune does not decode; the message
            names the cell.
    """
    return _Walk(chip, pins, Plls(chip, oscillator_mhz)).walk(output)


class _Walk:
    """The nets that are known, and the cells that wait to be decoded."""

    def __init__(self, chip: Chip, pins: Pins, plls: Plls) -> None:
        self._chip, self._pins, self._plls, self._slices = chip, pins, plls, Slices(chip)
        self._blocks, self._multipliers = Blocks(chip), Multipliers(chip)
        self._products: dict[Cell, Product] = {}
        self._netlist = Netlist()
        self._net: dict[Cell, int] = {}
        self._waiting: list[Cell] = []
        self._clock: Wire | None = None
        self._decoders: dict[str, Callable[[Cell], None]] = {
            "table": self._table,
            "sum": self._sum,
            "carry": self._carry,
            "mux": self._mux,
            "register": self._register,
            "memory": self._memory,
            "pin": self._pin,
            "block": self._block,
            "product": self._product,
            "lock": self._lock,
        }

    def walk(self, output: str) -> Netlist:
        self._netlist.output = self._value(self._pins.driven_by(output))
        while self._waiting:
            cell = self._waiting.pop()
            self._decoders[cell[0]](cell)
        return self._netlist

    # Nets.

    def _value(self, wire: Wire) -> int:
        """Return the net at the beginning of a wire."""
        return self._of(self._origin(wire))

    def _of(self, origin: Cell | int) -> int:
        """Return the net of a cell, which will be decoded; a number stands for itself."""
        if isinstance(origin, int):
            return origin
        if origin not in self._net:
            self._net[origin] = self._netlist.nets
            self._netlist.nets += 1
            self._waiting.append(origin)
        return self._net[origin]

    def _origin(self, wire: Wire) -> Cell | int:
        """Return the cell that drives a wire, or the net of a constant, or `OPEN`."""
        names = self._chip.source(wire)
        if names[0].name in CONSTANTS:
            return CONSTANTS[names[0].name]
        found = {cell for name in names if (cell := self._cell_at(name)) is not None}
        if len(found) > 1:
            raise ReadbackError(f"{len(found)} cells drive the wire {names[0].place}; wanted one")
        return found.pop() if found else OPEN

    def _cell_at(self, wire: Wire) -> Cell | None:
        row, col, name = wire
        if self._slices.has_tables(row, col):
            if name[0] == "F" and name[1:].isdigit():
                return self._table_at(row, col, int(name[1:]))
            if name[0] == "Q" and name[1:].isdigit() and int(name[1:]) < 6:
                return "register", row, col, int(name[1:])
            if name.startswith("OF"):
                return "mux", row, col, int(name[2:])
            return None
        if self._pins.is_input(wire):
            return "pin", row, col, self._pins.number(wire)
        memory = self._blocks.output(wire)
        if memory is not None:
            return "block", *memory
        made = self._multipliers.output(wire)
        if made is not None:
            one, bit = made
            # Nine bits of a number are enough for the name of a multiplier and a bit of its product.
            cell = "product", one.row, one.col, 64 * int(one.name[-2:]) + bit + 4096 * (one.width == 18)
            self._products[cell] = one
            return cell
        pll = self._plls.output(wire)
        if pll is not None and pll.port == "LOCK":
            return "lock", pll.row, pll.col, 0
        if any(name in bel.portmap.values() for bel in self._chip.db[row, col].bels.values()):
            raise ReadbackError(f"the output depends on the cell at {wire.place}; fpgaprune does not decode that cell")
        return None

    def _table_at(self, row: int, col: int, n: int) -> Cell:
        if self._slices.is_small_memory(row, col) and n < 6:
            if n > 3:
                raise ReadbackError(f"the output depends on the write port of the small memory at R{row + 1}C{col + 1}")
            return "memory", row, col, n
        return ("sum" if self._slices.is_carry(row, col, n) else "table"), row, col, n

    # Cells.

    def _lut(self, table: int, inputs: tuple[Cell | int, ...], cell: Cell) -> None:
        """Make a table of what it depends on: constant inputs and those that change nothing are left out."""
        for at, net in enumerate(inputs):
            if net in (0, 1):
                table = fixed(table, at, int(net == 1))
        nets = [self._of(net) if depends(table, at) else 0 for at, net in enumerate(inputs)]
        nets += [0] * (4 - len(nets))
        place = f"R{cell[1] + 1}C{cell[2] + 1}_{cell[0]}{cell[3]}"
        self._netlist.luts.append(Lut(table, (nets[0], nets[1], nets[2], nets[3]), self._net[cell], place))

    def _inputs(self, row: int, col: int, n: int, table: int) -> tuple[Cell | int, ...]:
        """Return what drives the inputs of table `n` that matter to `table`; 0 for the others."""
        wires = [Wire(row, col, f"{letter}{n}") for letter in _INPUTS]
        return tuple(self._origin(wire) if depends(table, at) else 0 for at, wire in enumerate(wires))

    def _table(self, cell: Cell) -> None:
        _, row, col, n = cell
        table = self._slices.table(row, col, n)
        self._lut(table, self._inputs(row, col, n, table), cell)

    def _carry_into(self, row: int, col: int, n: int) -> Cell | int:
        before = (row, col, n - 1) if n else (row, col - 1, 5)
        if before[1] < 0 or not self._slices.is_carry(*before):
            return OPEN
        return "carry", *before

    def _sum(self, cell: Cell) -> None:
        _, row, col, n = cell
        self._lut(0b0110, (self._own(row, col, n), self._carry_into(row, col, n)), cell)

    def _carry(self, cell: Cell) -> None:
        """Make a carry: where the table is 1 it goes on, else it is the first four table bits' function of A and B."""
        _, row, col, n = cell
        table = self._slices.table(row, col, n)
        own = (table & 15) * 0x1111
        a, b = self._inputs(row, col, n, own)[:2]
        # Inputs: the table, the carry into it, A, B.
        whole = sum(1 << at for at in range(16) if (at >> 1 if at & 1 else own >> (at >> 2)) & 1)
        self._lut(whole, (self._own(row, col, n), self._carry_into(row, col, n), a, b), cell)

    def _own(self, row: int, col: int, n: int) -> Cell | int:
        """Return what table `n` of a carry chain makes of its inputs, as a cell of its own, or as a constant number."""
        table = self._slices.table(row, col, n)
        for at, net in enumerate(self._inputs(row, col, n, table)):
            if net in (0, 1):
                table = fixed(table, at, int(net == 1))
        return {0: 0, 0xFFFF: 1}.get(table, ("table", row, col, n))

    def _mux(self, cell: Cell) -> None:
        _, row, col, n = cell
        first, second = _MUXES[n]
        taken = self._cell_at(Wire(row, col + (n == 7), first)), self._cell_at(Wire(row, col, second))
        if None in taken:
            raise ReadbackError(f"the multiplexer at R{row + 1}C{col + 1}_OF{n} has no table beside it")
        chooses = self._origin(Wire(row, col, f"SEL{n}"))
        self._lut(0b11001010, (taken[0] or 0, taken[1] or 0, chooses), cell)

    def _register(self, cell: Cell) -> None:
        _, row, col, n = cell
        fuses, half, place = self._slices.register(row, col, n), n // 2, f"R{row + 1}C{col + 1}_Q{n}"
        reset = self._inverted(Wire(row, col, f"LSR{half}"), fuses.reset_inverted) if fuses.reset_used else 0
        enable = self._inverted(Wire(row, col, f"CE{half}"), fuses.enable_inverted)
        if not self._clocked(Wire(row, col, f"CLK{half}"), place):
            enable = reset = 0
        data = self._of(self._table_at(row, col, n)) if enable != 0 else 0
        self._netlist.registers.append(Register(data, enable, reset, fuses.start, self._net[cell], place))

    def _memory(self, cell: Cell) -> None:
        _, row, col, n = cell
        place = f"R{row + 1}C{col + 1}_RAM{n}"
        enable = self._inverted(Wire(row, col, "LSR2"), not self._slices.write_of_memory(row, col))
        if not self._clocked(Wire(row, col, "CLK2"), place):
            enable = 0
        read = [self._value(Wire(row, col, f"{letter}{n}")) for letter in _INPUTS]
        write = [self._value(Wire(row, col, f"{letter}4")) if enable else 0 for letter in _INPUTS]
        data = self._value(Wire(row, col, f"{_INPUTS[n]}5")) if enable else 0
        content = self._slices.table(row, col, n)
        ports = (read[0], read[1], read[2], read[3]), (write[0], write[1], write[2], write[3])
        self._netlist.small.append(SmallMemory(content, *ports, enable, data, self._net[cell], place))

    def _pin(self, cell: Cell) -> None:
        self._netlist.pins[self._pins.name(cell[3])] = self._net[cell]

    def _lock(self, cell: Cell) -> None:
        """Make a 1: the netlist begins when the PLL is locked."""
        output = PllOutput(cell[1], cell[2], "LOCK")
        self._plls.ratio(output)
        self._lut(0xFFFF, (), cell)

    def _shared(self, cells: list[Cell]) -> tuple[int, ...]:
        """Return the nets of several outputs of one cell that is decoded now."""
        for cell in cells:
            if cell not in self._net:
                self._net[cell] = self._netlist.nets
                self._netlist.nets += 1
        return tuple(self._net[cell] for cell in cells)

    def _block(self, cell: Cell) -> None:
        _, row, col, _ = cell
        place = f"R{row + 1}C{col + 1}_BSRAM"
        if any(memory.place == place for memory in self._netlist.blocks):
            return
        outputs = self._shared([("block", row, col, bit) for bit in range(36)])
        fuses = {name: self._blocks.port(row, col, name) for name in "AB"}
        double = any(one.width == 36 for one in fuses.values())
        if double and len({one.width for one in fuses.values()}) > 1:
            raise ReadbackError(f"{place} has words of 36 bits at one port only; fpgaprune does not decode that")
        ports = []
        for name, one in fuses.items():

            def wire(port: str, name: str = name) -> Wire:
                return self._blocks.wire(row, col, port + name)

            if not self._clocked(wire("CLK"), place):
                continue
            select = [self._origin(self._blocks.wire(row, col, f"BLKSEL{name}{bit}")) for bit in range(3)]
            if any(origin not in (0, 1) for origin in select):
                raise ReadbackError(f"{place} is selected by wires; fpgaprune does not decode that")
            if self._inverted(wire("RESET"), "RESET" in one.inverted):
                raise ReadbackError(f"{place} has a reset; fpgaprune does not decode that")
            works = tuple(select) == one.selected
            write = self._inverted(wire("WRE"), "WRE" in one.inverted)
            if double and name == "B":
                # Words of 36 bits are written at port A and read at port B, whose write enable is a constant of either
                # kind: place and route chooses 1 for a memory, and 0 for a table.
                if write not in (0, 1):
                    raise ReadbackError(f"{place} is written at the port that reads; fpgaprune does not decode that")
                write = 0
            count = 36 if double else 18
            names = [f"{'AB'[bit // 18]}{bit % 18}" if double else f"{name}{bit}" for bit in range(count)]
            data = tuple(self._value(self._blocks.wire(row, col, f"DI{port}")) for port in names) if write else ()
            shown = outputs if double else outputs[:18] if name == "A" else outputs[18:]
            size = max(one.width, 1)
            address = [self._value(self._blocks.wire(row, col, f"AD{name}{bit}")) for bit in range(14)]
            ports.append(
                BlockPort(
                    name,
                    size,
                    read_address(address, size, writes=bool(data)),
                    data[:size],
                    shown[:size] if not double or name == "B" else (),
                    self._inverted(wire("CE"), "CE" in one.inverted) if works else 0,
                    write,
                    self._inverted(wire("OCE"), "OCE" in one.inverted),
                    one.registered,
                    one.mode if data else 0,
                )
            )
        self._netlist.blocks.append(BlockMemory(self._blocks.content(row, col), tuple(ports), place))

    def _product(self, cell: Cell) -> None:
        one = self._products[cell]
        place = f"R{one.row + 1}C{one.col + 1}_{one.name}"
        if any(made.place == place for made in self._netlist.multipliers):
            return
        first = cell[3] - cell[3] % 64
        outputs = self._shared([("product", one.row, one.col, first + bit) for bit in range(2 * one.width)])

        def value(port: str) -> int:
            return self._value(self._multipliers.wire(one, port))

        a, b = (tuple(value(f"{factor}{bit}") for bit in range(one.width)) for factor in "AB")
        self._netlist.multipliers.append(Multiplier(a, b, value("ASIGN"), value("BSIGN"), outputs, place))

    def _inverted(self, wire: Wire, inverted: bool) -> int:
        """Return the net of a wire, or its inverse as a table of its own."""
        origin = self._origin(wire)
        if not inverted:
            return self._of(origin)
        if origin in (0, 1):
            return int(origin == 0)
        net = self._netlist.nets
        self._netlist.nets += 1
        self._netlist.luts.append(Lut(0x5555, (self._of(origin), 0, 0, 0), net, f"{wire.place} inverted"))
        return net

    def _clocked(self, wire: Wire, place: str) -> bool:
        """Return whether the clock moves at `wire`; a constant does not."""
        names = self._chip.source(wire)
        if names[0].name in CONSTANTS:
            return False
        if self._clock is None:
            self._netlist.clock, self._netlist.factor = self._origin_of_clock(names, place)
            self._clock = names[0]
        if names[0] != self._clock:
            raise ReadbackError(f"{place} has another clock, {names[0].place}, than others, {self._clock.place}")
        return True

    def _origin_of_clock(self, names: tuple[Wire, ...], place: str) -> tuple[str, Fraction]:
        """Return the pin of a clock, and how many times as fast as there it is."""
        pll = next((pll for name in names if (pll := self._plls.output(name)) is not None), None)
        ratio = Fraction(1)
        if pll is not None and pll.port == "CLKOUT":
            names, ratio = self._chip.source(self._plls.input(pll)), self._plls.ratio(pll)
        pin = next((name for name in names if self._pins.is_input(name)), None)
        if pin is None:
            raise ReadbackError(
                f"the clock of {place} comes from {names[0].place}; fpgaprune decodes a pin, or a PLL behind one"
            )
        return self._pins.name(self._pins.number(pin)), ratio
