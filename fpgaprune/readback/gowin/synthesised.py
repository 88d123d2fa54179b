"""`GowinCells`: what the cells of synthesis for a Gowin FPGA are, as parts of a netlist."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

from fpgaprune.errors import ReadbackError
from fpgaprune.readback.cells_file import SynthesisedCell, SynthesisedCells
from fpgaprune.readback.gowin.blocks import WORDS
from fpgaprune.readback.netlist import ONE, OPEN, ZERO, BlockMemory, BlockPort, Multiplier, SmallMemory, read_address
from fpgaprune.readback.parts import CHOICE, COPY, INVERSE, Parts
from fpgaprune.readback.synthesised import SynthesisReader

_BEL = re.compile(r"X(\d+)Y(\d+)/([A-Z]+(?:\d+X\d+|16SDP4)?)(\d*)")
# How a cell's place is called in a netlist that was read back.
_PLACES = {"DFF": "Q", "LUT": "table", "MUX": "mux", "ALU": "sum", "RAM16SDP4": "RAM"}
_LUT = re.compile(r"LUT([1-4])")
_MUX = re.compile(r"MUX2_LUT[5-8]")
_REGISTER = re.compile(r"DFF([SR]?)(E?)")
_BLOCK = re.compile(r"(SP|pROM|SDPB|DPB|DPX9B|SDPX9B|SPX9|pROMX9)")
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


class GowinCells(SynthesisReader[Parts]):
    """Makes parts of the cells of synthesis."""

    def __init__(self, cells: SynthesisedCells) -> None:
        super().__init__(cells, Parts())
        for cell in cells.cells.values():
            for kind, port, value in (("GND", "G", ZERO), ("VCC", "V", ONE)):
                if cell.type == kind:
                    self.constant(cell.connections[port][0], value)

    def made_of(self, name: str, cell: SynthesisedCell) -> Iterator[str]:
        """Make the parts of a cell; errors are those of the class above."""
        parts, wires, place = self.parts, cell.connections, place_of(cell.bel)

        def nets(*ports: str) -> list[int]:
            return [self.bit(cell, port) for port in ports]

        table, register = _LUT.fullmatch(cell.type), _REGISTER.fullmatch(cell.type)
        if table is not None:
            inputs = nets(*(f"I{at}" for at in range(int(table[1]))))
            parts.table(cell.number("INIT"), inputs, place, *nets("F" if "F" in wires else "O"))
        elif _MUX.fullmatch(cell.type):
            parts.table(CHOICE, nets("I0", "I1", "S0"), place, *nets("O"))
        elif cell.type in ("INV", "IBUF", "OBUF"):
            parts.table(INVERSE if cell.type == "INV" else COPY, nets("I"), name, *nets("O"))
            if cell.type == "IBUF":
                self.faster(wires["O"][0], wires["I"][0])
        elif cell.type == "ALU":
            yield from self._alu(name, cell, place)
        elif register is not None:
            yield from self._register(name, cell, register)
        elif cell.type == "RAM16SDP4":
            yield from self._small(cell, place)
        elif cell.type in ("MULT9X9", "MULT18X18"):
            self._multiplier(name, cell, place)
        elif _BLOCK.fullmatch(cell.type):
            self._block(cell, place)
        elif cell.type == "rPLL":
            # The netlists are compared from when the PLL is locked.
            parts.table(0xFFFF, (), f"{name}/lock", *nets("LOCK"))
            ratio = Fraction(cell.number("FBDIV_SEL") + 1, cell.number("IDIV_SEL") + 1)
            self.faster(wires["CLKOUT"][0], wires["CLKIN"][0], ratio)
        elif cell.type not in ("GND", "VCC"):
            raise self.unknown(name, cell)
        yield place

    def _alu(self, name: str, cell: SynthesisedCell, place: str) -> Iterator[str]:
        mode, parts, inputs = cell.number("ALU_MODE"), self.parts, [self.bit(cell, port) for port in ("I0", "I1", "I3")]
        if mode not in _ALUS:
            raise ReadbackError(f"cell {name!r} is an ALU of mode {mode}; fpgaprune does not compare those")
        own, carry = (parts.table(rows, inputs, f"{name}/own") for rows in _ALUS[mode])
        into, above = self.bit(cell, "CIN"), place.replace("sum", "carry")
        if cell.connections.get("SUM"):
            parts.table(0b0110, (own, into), place, self.bit(cell, "SUM"))
        if cell.connections.get("COUT"):
            parts.table(CHOICE, (carry, into, own), above, self.bit(cell, "COUT"))
            yield above

    def _register(self, name: str, cell: SynthesisedCell, kind: re.Match[str]) -> Iterator[str]:
        start = int(kind[1] == "S")
        if cell.number("INIT", start) != start:
            raise ReadbackError(f"cell {name!r} begins at {1 - start}, and is reset to {start}; no register does that")
        reset = self.bit(cell, {"S": "SET", "R": "RESET"}[kind[1]]) if kind[1] else ZERO
        enable = self.bit(cell, "CE") if kind[2] else ONE
        for place in map(place_of, (cell.bel, *cell.copies)):
            self.parts.register(self.bit(cell, "D"), enable, reset, start, place, self.bit(cell, "Q"))
            yield place
        self.clocked(cell, "CLK")

    def _small(self, cell: SynthesisedCell, place: str) -> Iterator[str]:
        def four(port: str) -> tuple[int, int, int, int]:
            nets = [self.bit(cell, port, at) for at in range(4)]
            return nets[0], nets[1], nets[2], nets[3]

        for at in range(4):
            content, data, output = cell.number(f"INIT_{at}"), self.bit(cell, "DI", at), self.bit(cell, "DO", at)
            one = content, four("RAD"), four("WAD"), self.bit(cell, "WRE"), data, output, f"{place}{at}"
            self.parts.netlist.small.append(SmallMemory(*one))
            yield f"{place}{at}"
        self.clocked(cell, "CLK")

    def _multiplier(self, name: str, cell: SynthesisedCell, place: str) -> None:
        registers = [name for name, value in cell.parameters.items() if name.endswith("_REG") and int(value, 2)]
        chosen = [bit for port in ("ASEL", "BSEL") for bit in cell.connections.get(port, ()) if self.net(bit) != ZERO]
        if registers or chosen:
            raise ReadbackError(f"cell {name!r} is a {cell.type} with registers; fpgaprune does not compare those")
        a, b, made = (tuple(map(self.net, cell.connections[port])) for port in ("A", "B", "DOUT"))
        signs = self.bit(cell, "ASIGN"), self.bit(cell, "BSIGN")
        self.parts.netlist.multipliers.append(Multiplier(a, b, *signs, made, place))

    def _block(self, cell: SynthesisedCell, place: str) -> None:
        letters = "A" if _is_alone(cell) and not _is_split(cell) and _width(cell, "A") < 36 else "AB"
        ports = tuple(self._port(cell, letter) for letter in letters)
        self.parts.netlist.blocks.append(BlockMemory(_content(cell), ports, place))
        self.clocked(cell, "CLK", "CLKA", "CLKB")

    def _port(self, cell: SynthesisedCell, letter: str) -> BlockPort:
        wires, width = _wires(cell, letter), _width(cell, letter)

        def lanes(name: str) -> tuple[int, ...]:
            """Return the nets of a word; in bytes of eight, the ninth carries none."""
            given = iter(wires.get(name, ()))
            places = (_nine(cell) or at % 9 < 8 for at in range(width))
            return tuple(self.net(next(given, "0")) if carries and name in wires else OPEN for carries in places)

        write = self.net(wires["WRE"][0])
        data = () if write == ZERO else lanes("DI")
        # The port that only writes words of 36 bits shows none.
        outputs = () if width == 36 and letter == "A" else lanes("DO")
        kind, number = _kind(cell), int(letter == "B")
        reads = "READ_MODE" + (str(number) if kind == "DPB" else "")
        writes = "WRITE_MODE" + ("" if _is_alone(cell) else str(number))
        enable, output_enable = self.net(wires["CE"][0]), self.net(wires["OCE"][0])
        registered = bool(cell.number(reads)) and (kind != "SDPB" or letter == "B")
        mode = cell.number(writes) if data else 0
        address = read_address([self.net(bit) for bit in wires["AD"]], width, writes=bool(data))
        return BlockPort(letter, width, address, data, outputs, enable, write, output_enable, registered, mode)


def place_of(bel: str) -> str:
    """Return a place of place and route as a netlist that was read back calls it: `X5Y14/DFF2` is `R15C6_Q2`."""
    found = _BEL.fullmatch(bel)
    if found is None:
        return ""
    col, row, kind, number = found.groups()
    return f"R{int(row) + 1}C{int(col) + 1}_{_PLACES.get(kind, kind)}{number}"


# Block memories.


def _kind(cell: SynthesisedCell) -> str:
    return cell.type.replace("X9", "")


def _nine(cell: SynthesisedCell) -> bool:
    """Return whether each byte of a memory has nine bits."""
    return "X9" in cell.type


def _is_alone(cell: SynthesisedCell) -> bool:
    """Return whether a memory has one port."""
    return _kind(cell) in ("SP", "pROM")


def _is_split(cell: SynthesisedCell) -> bool:
    """Return whether a memory with one port, which writes, has words as wide as two ports."""
    return _kind(cell) == "SP" and cell.number("BIT_WIDTH") >= 32


def _width(cell: SynthesisedCell, letter: str) -> int:
    """Return the width of a port, in bytes of nine where there are bytes."""
    width = cell.number("BIT_WIDTH" if _is_alone(cell) else f"BIT_WIDTH_{int(letter == 'B')}")
    width //= 2 if _is_split(cell) else 1
    return width + (width // 8 if width >= 8 and not _nine(cell) else 0)


def _content(cell: SynthesisedCell) -> bytes:
    """Return the bits of a memory after configuration, word by word of 18."""
    size = 9 if _nine(cell) else 8
    whole = sum(cell.number(f"INIT_RAM_{row:02X}") << 32 * size * row for row in range(64))
    found = bytearray(18 * WORDS)
    for byte in range(2 * WORDS):
        own = whole >> size * byte & ((1 << size) - 1)
        found[9 * byte : 9 * byte + size] = bytes(own >> bit & 1 for bit in range(size))
    return bytes(found)


def _wires(cell: SynthesisedCell, letter: str) -> Mapping[str, Sequence[int | str]]:
    """Return the wires of a port of a memory."""
    wires = cell.connections
    if _is_split(cell):
        # Place and route gives each half of a word a port of its own, and each port its half of the byte enables.
        half = int(letter == "B")
        halves = {name: wires[name][half * len(wires[name]) // 2 :][: len(wires[name]) // 2] for name in ("DI", "DO")}
        return {**wires, **halves, "AD": [*wires["AD"][2 * half : 2 * half + 2], "0", "0", str(half), *wires["AD"][5:]]}
    if _is_alone(cell):
        return {"WRE": ["0"], "OCE": ["1"], **wires}
    if _kind(cell) == "DPB":
        names = ("AD", "DI", "DO", "CE", "WRE", "OCE")
        return {name: wires[name + letter] for name in names if name + letter in wires}
    if letter == "A":
        return {"AD": wires["ADA"], "CE": wires["CEA"], "DI": wires["DI"], "WRE": ["1"], "OCE": ["1"]}
    return {"AD": wires["ADB"], "CE": wires["CEB"], "DO": wires["DO"], "WRE": ["0"], "OCE": wires["OCE"]}
