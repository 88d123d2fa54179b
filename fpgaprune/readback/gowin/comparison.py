"""`compare_cells`: the cells of a bitstream against those of synthesis, one by one: for all inputs, not for samples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from fpgaprune.errors import ReadbackError
from fpgaprune.readback.cells_file import SynthesisedCell
from fpgaprune.readback.comparison import NEXT, CellComparison, misplaced, other, other_ratio, other_table
from fpgaprune.readback.functions import ONE, ZERO, Functions
from fpgaprune.readback.gowin.synthesised import REGISTER, Synthesised, SynthesisedFunctions
from fpgaprune.readback.netlist import OPEN, BlockMemory, BlockPort, Lut, Multiplier, Netlist, Register, SmallMemory

_WORDS = 1024


_Cell = Register | SmallMemory | BlockMemory | Multiplier


def compare_cells(
    netlist: Netlist, synthesised: Synthesised, pin: str = "serial_in", output: str = "serial_out"
) -> CellComparison:
    """Compare each cell that a bitstream's output depends on with that of synthesis in its place.

    Registers, memories and multipliers are paired by their places. Each pair must begin at the same value, and take the
    same function of the other pairs and of the pins. So the bitstream and the netlist give the same output in every
    cycle, for all inputs. Places are only a guess at which belong together: a wrong one makes a difference.

    Args:
        netlist: as read back.
        synthesised: from yosys, with places.
        pin: name of the port that the netlist's input is.
        output: name of the port that its output is.

    Raises:
        ReadbackError: a cell is of a type that is not compared.
    """
    return _Pairs(netlist, synthesised).compared(pin, output)


class _Pairs:
    def __init__(self, netlist: Netlist, synthesised: Synthesised) -> None:
        self._netlist, self._wanted = netlist, synthesised
        self._functions, self._read = Functions(), netlist.read_nets()
        self._synthesised = SynthesisedFunctions(synthesised, self._functions)
        # Net of the bitstream -> its function.
        self._came: dict[int, int] = {ZERO: ZERO, ONE: ONE, OPEN: self._functions.free()}

    def compared(self, pin: str, output: str) -> CellComparison:
        whole = self._netlist
        cells: list[_Cell] = [*whole.registers, *whole.small, *whole.blocks, *whole.multipliers]
        lost = [cell.place for cell in cells if self._name(cell) is None]
        if lost:
            return misplaced(lost, len(cells))
        for cell in cells:
            self._share(cell)
        self._share_pins(pin)
        return CellComparison(len(cells) + 1, next(self._differences(cells, output), None))

    def _name(self, cell: _Cell) -> str | None:
        place = cell.place
        if isinstance(cell, SmallMemory):
            place = place[: place.rindex("_")] + "_RAM16SDP4"
        return self._wanted.at.get(place)

    def _cell(self, cell: _Cell) -> tuple[str, SynthesisedCell]:
        name = self._name(cell) or ""
        return name, self._wanted.cells[name]

    # What both netlists call alike.

    def _share(self, cell: _Cell) -> None:
        _, wanted = self._cell(cell)
        if isinstance(cell, Register):
            bit = wanted.connections.get("Q", [""])[0]
            original = self._synthesised.known(bit)
            if original is None:
                self._pair(cell.output, bit)
            else:
                # A copy: shown to begin and to go on as its original does, it is the same in every cycle.
                self._came[cell.output] = original
        elif isinstance(cell, SmallMemory):
            self._pair(cell.output, wanted.connections["DO"][int(cell.place[-1])])
        elif isinstance(cell, Multiplier):
            for net, bit in zip(cell.outputs, wanted.connections["DOUT"], strict=True):
                self._pair(net, bit)
        else:
            for port in cell.ports:
                bits = _port(wanted, port).get("DO", [])
                for at, bit in zip(_lanes(wanted, port), bits, strict=False):
                    self._pair(port.outputs[at], bit)

    def _pair(self, net: int, bit: int | str) -> None:
        self._came[net] = self._functions.free()
        self._synthesised.set(bit, self._came[net])

    def _share_pins(self, pin: str) -> None:
        """The one input of data; the clock is none."""
        for net in self._netlist.pins.values():
            self._pair(net, self._wanted.buffered(pin))
        for pll in self._wanted.kinds("rPLL"):
            # The netlists are compared from when the PLL is locked.
            self._synthesised.set(pll.connections["LOCK"][0], ONE)

    # What each pair takes.

    def _differences(self, cells: Sequence[_Cell], output: str) -> Iterator[str]:
        for table in self._netlist.ordered():
            if isinstance(table, Lut):
                self._came[table.output] = self._functions.made(table.table, [self._came[net] for net in table.inputs])
                yield from self._table(table)
        yield from self._clock(cells)
        for cell in cells:
            name, wanted = self._cell(cell)
            for what in self._of_cell(cell, wanted):
                yield other(f"{what} of {name!r} at {cell.place}")
        if self._came[self._netlist.output] != self._synthesised.of(self._wanted.buffered(output)):
            yield other(f"the output {output!r}")

    def _clock(self, cells: Sequence[_Cell]) -> Iterator[str]:
        """One clock moves all cells, at the frequency that the PLL of synthesis makes."""
        clocked = [self._cell(cell)[1].connections for cell in cells if not isinstance(cell, Multiplier)]
        clocks = {bits[0] for wires in clocked for name, bits in wires.items() if name in ("CLK", "CLKA", "CLKB")}
        # A port of a memory that is not used has a constant.
        clocks = {bit for bit in clocks if self._wanted.type_before(bit) not in ("GND", "VCC", "")}
        wanted, pins = Fraction(1), {self._wanted.buffered("clk")}
        for pll in self._wanted.kinds("rPLL"):
            if set(pll.connections["CLKIN"]) == pins:
                pins = set(pll.connections["CLKOUT"])
                wanted = Fraction(pll.number("FBDIV_SEL") + 1, pll.number("IDIV_SEL") + 1)
        if clocks != pins:
            yield "synthesis has another clock than that of the pin"
        if wanted != self._netlist.factor:
            yield other_ratio(self._netlist.factor, wanted)

    def _table(self, table: Lut) -> Iterator[str]:
        """A table that is not the one that synthesis placed there: what it feeds differs too, and this names it."""
        place, _, number = table.place.partition("_")
        carry = number.startswith("carry")
        name = self._wanted.at.get(f"{place}_sum{number[5:]}" if carry else table.place)
        if name is None:
            return
        cell = self._wanted.cells[name]
        port = "COUT" if carry else "SUM" if cell.type == "ALU" else "F" if "F" in cell.connections else "O"
        for bit in cell.connections.get(port, []):
            if self._synthesised.of(bit) != self._came[table.output]:
                yield other_table(f"{name!r} at {table.place}")

    def _of_cell(self, cell: _Cell, wanted: SynthesisedCell) -> Iterator[str]:
        if isinstance(cell, Register):
            yield from self._of_register(cell, wanted)
        elif isinstance(cell, SmallMemory):
            yield from self._of_small(cell, wanted)
        elif isinstance(cell, Multiplier):
            yield from self._of_multiplier(cell, wanted)
        else:
            yield from self._of_block(cell, wanted)

    def _of_register(self, cell: Register, wanted: SynthesisedCell) -> Iterator[str]:
        kind = REGISTER.fullmatch(wanted.type)
        if kind is None or kind[1] or kind[2] in ("P", "C"):
            raise ReadbackError(f"{cell.place} is a {wanted.type} of synthesis; fpgaprune does not compare those")
        start = int(kind[2] == "S")
        if wanted.number("INIT", start) != cell.start:
            yield "the start value"
        own = self._came[cell.output]
        reset, enable, data = (self._came[net] for net in (cell.reset, cell.enable, cell.data))
        came = self._functions.made(NEXT, [reset, enable, data, own, cell.start])
        port = {"S": "SET", "R": "RESET"}.get(kind[2])
        reset = self._net(wanted, port) if port else ZERO
        enable = self._net(wanted, "CE") if kind[3] else ONE
        if came != self._functions.made(NEXT, [reset, enable, self._net(wanted, "D"), own, start]):
            yield "the next value"

    def _of_small(self, cell: SmallMemory, wanted: SynthesisedCell) -> Iterator[str]:
        number = int(cell.place[-1])
        if wanted.number(f"INIT_{number}") != cell.content:
            yield f"the content of bit {number}"
        yield from self._wires("the address that is read", cell.read, wanted.connections["RAD"])
        yield from self._wires("the write enable", (cell.enable,), wanted.connections["WRE"])
        if self._came[cell.enable] != ZERO:
            yield from self._wires("the address that is written", cell.write, wanted.connections["WAD"])
            yield from self._wires("the data", (cell.data,), wanted.connections["DI"][number : number + 1])

    def _of_multiplier(self, cell: Multiplier, wanted: SynthesisedCell) -> Iterator[str]:
        registers = [name for name, value in wanted.parameters.items() if name.endswith("_REG") and int(value, 2)]
        if registers or wanted.type not in ("MULT9X9", "MULT18X18"):
            raise ReadbackError(f"{cell.place} is a {wanted.type} with registers; fpgaprune does not compare those")
        for name, nets in (("A", cell.a), ("B", cell.b), ("ASIGN", (cell.a_signed,)), ("BSIGN", (cell.b_signed,))):
            yield from self._wires(f"the input {name}", nets, wanted.connections[name])
        if any(self._synthesised.of(bit) != ZERO for name in ("ASEL", "BSEL") for bit in wanted.connections[name]):
            yield "the choice of inputs"

    def _of_block(self, cell: BlockMemory, wanted: SynthesisedCell) -> Iterator[str]:
        content = _content(wanted)
        if content != cell.content:
            at = next(at for at in range(len(content)) if content[at] != cell.content[at])
            yield f"the content (word {at // 18}, bit {at % 18}, {cell.content[at]} instead of {content[at]})"
        for port in cell.ports:
            yield from self._of_port(cell, port, wanted)

    def _of_port(self, cell: BlockMemory, port: BlockPort, wanted: SynthesisedCell) -> Iterator[str]:
        given = _port(wanted, port)
        if _settings(wanted, port) != (port.width, port.registered, port.mode if port.data else 0):
            yield f"the width or the mode of port {port.letter}"
        shift = {1: 0, 2: 1, 4: 2, 9: 3, 18: 4, 36: 5}[port.width]
        nets, bits = port.address[shift:], given["AD"][shift:]
        if port.data and port.width >= 18:
            nets, bits = (*port.address[: port.width // 9], *nets), [*given["AD"][: port.width // 9], *bits]
        yield from self._wires(f"the address of port {port.letter}", nets, bits)
        yield from self._wires(f"the enable of port {port.letter}", (port.enable,), given["CE"])
        yield from self._wires(f"the write enable of port {port.letter}", (port.write,), given["WRE"])
        if port.registered:
            yield from self._wires(f"the output enable of port {port.letter}", (port.output_enable,), given["OCE"])
        if port.data:
            # Place and route writes anything into a lane that nothing reads.
            lanes = cell.lanes()
            pairs = [
                (port.data[at], bit)
                for at, bit in zip(_lanes(wanted, port), given["DI"], strict=False)
                if lanes[at if len(lanes) > 1 else 0][0] & self._read
            ]
            taken, wires = [net for net, _ in pairs], [bit for _, bit in pairs]
            yield from self._wires(f"the data of port {port.letter}", taken, wires)

    def _wires(self, what: str, nets: Sequence[int], bits: Sequence[int | str]) -> Iterator[str]:
        came = [self._came[net] for net in nets]
        if came != [self._synthesised.of(bit) for bit in bits]:
            yield what

    def _net(self, wanted: SynthesisedCell, port: str) -> int:
        return self._synthesised.of(wanted.connections[port][0])


# Block memories.


def _nine(wanted: SynthesisedCell) -> bool:
    """Whether each byte of a memory has nine bits."""
    return "X9" in wanted.type


def _content(wanted: SynthesisedCell) -> bytes:
    """The bits of a memory after configuration, word by word of 18."""
    size = 9 if _nine(wanted) else 8
    whole = sum(wanted.number(f"INIT_RAM_{row:02X}") << 32 * size * row for row in range(64))
    found = bytearray(18 * _WORDS)
    for byte in range(2 * _WORDS):
        own = whole >> size * byte & ((1 << size) - 1)
        found[9 * byte : 9 * byte + size] = bytes(own >> bit & 1 for bit in range(size))
    return bytes(found)


def _lanes(wanted: SynthesisedCell, port: BlockPort) -> list[int]:
    """Which of the bits of a port carry data: in bytes of eight, the ninth does not."""
    bits = max(len(port.outputs), len(port.data))
    return [at for at in range(bits) if _nine(wanted) or at % 9 < 8]


def _port(wanted: SynthesisedCell, port: BlockPort) -> dict[str, list[int | str]]:
    """The wires of a port of a memory."""
    kind, wires = wanted.type.replace("X9", ""), wanted.connections
    fixed: dict[str, list[int | str]] = {"WRE": ["0"], "OCE": ["1"]}
    if _is_split(wanted):
        # Place and route gives each half of a word a port of its own, and each port its half of the byte enables.
        half, words = int(port.letter == "B"), ("DI", "DO")
        halves = {
            name: wires[name][half * len(wires[name]) // 2 :][: len(wires[name]) // 2]
            for name in words
            if name in wires
        }
        address = [*wires["AD"][2 * half : 2 * half + 2], "0", "0", str(half), *wires["AD"][5:]]
        return {**fixed, **wires, **halves, "AD": address}
    if kind in ("SP", "pROM"):
        return {**fixed, **wires}
    names = ("AD", "DI", "DO", "CE", "WRE", "OCE")
    if kind == "DPB":
        return {name: wires[name + port.letter] for name in names}
    if kind != "SDPB":
        raise ReadbackError(f"a block memory is a {wanted.type} of synthesis; fpgaprune does not compare those")
    if port.letter == "A":
        return {**fixed, "AD": wires["ADA"], "CE": wires["CEA"], "DI": wires["DI"], "WRE": ["1"]}
    return {**fixed, "AD": wires["ADB"], "CE": wires["CEB"], "DO": wires["DO"], "OCE": wires["OCE"]}


def _is_split(wanted: SynthesisedCell) -> bool:
    """Whether a memory with one port, which writes, has words as wide as two ports."""
    return wanted.type.startswith("SP") and wanted.number("BIT_WIDTH") >= 32


def _settings(wanted: SynthesisedCell, port: BlockPort) -> tuple[int, bool, int]:
    """Width in bytes of nine, whether a register follows, and the mode while a port that writes does so."""
    kind, number = wanted.type.replace("X9", ""), int(port.letter == "B")
    alone = kind in ("SP", "pROM")
    width = wanted.number("BIT_WIDTH" if alone else f"BIT_WIDTH_{number}")
    width //= 2 if _is_split(wanted) else 1
    registered = wanted.number(f"READ_MODE{number}" if kind == "DPB" else "READ_MODE")
    mode = wanted.number("WRITE_MODE" if alone else f"WRITE_MODE{number}") if port.data else 0
    writes_only = kind == "SDPB" and not number
    return width + (width // 8 if width >= 8 and not _nine(wanted) else 0), bool(registered) and not writes_only, mode
