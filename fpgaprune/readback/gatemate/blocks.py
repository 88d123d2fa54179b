"""`Rams`: the block memories of a GateMate, by their settings; `memory` makes parts of one, also for synthesis."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from fpgaprune.errors import ReadbackError
from fpgaprune.readback.gatemate.chip import ROW_BITS, ROWS, GateMate
from fpgaprune.readback.gatemate.database import Database
from fpgaprune.readback.gatemate.frames import Block
from fpgaprune.readback.netlist import ONE, ZERO, BlockMemory, BlockPort
from fpgaprune.readback.parts import Parts, Wires

# Gives the net of a wire of a memory; and whether the clock moves at one, for a place.
Value = Callable[[int, str], int]
Clocked = Callable[[int, str, str], bool]
_WIDTHS = (0, 1, 2, 5, 10, 20, 40, 80)
# Where a port's clock comes from: a wire of its own, or one of four global ones.
_CLOCKS = {0: "", 0x23: "CLOCK1", 0x33: "CLOCK2", 0x03: "CLOCK3", 0x13: "CLOCK4"}
_CONTROLS = {0x03: ZERO, 0x13: ONE}
_FROM_A_WIRE = 0
# The bit of an address behind those that choose a part of a row.
_ROW = 7
# While it writes, a port keeps its output, or shows each bit as it is then.
MODES = {0: 0, 1: 3}
_WRITTEN = "RAM_cfg_"
# Data wires of a port of one half.
_HALF = 20
OF_RAM = re.compile(r"RAM\.(DO[AB])\[(\d+)\]")
_HANDS_ON = re.compile(r"(X\d+Y\d+)/CPE_RAMIO_([LU])")


@dataclass(frozen=True, slots=True)
class PortSettings:
    """Settings of a port: the bits that it writes and reads at once, and the mode while it writes."""

    writes: int
    reads: int
    mode: int


@dataclass(frozen=True, slots=True)
class Choice:
    """A bit that an output of a memory shows: one of `nets`, by the number that the nets `by` are."""

    nets: tuple[int, ...]
    by: tuple[int, ...]
    place: str

    def made(self, parts: Parts) -> int:
        """Make the tables that choose; return their net."""
        return parts.chosen(self.nets, self.by, self.place)


def memory(
    parts: Parts, content: bytes, ports: Mapping[str, PortSettings], wire: Wires, place: str, *, halves: int
) -> dict[str, Choice]:
    """Make the parts of a block memory; return what each of its outputs shows, by name, as `DOA[3]`.

    Its rows are as wide as the memory allows; ports of fewer bits choose a part of a row by the low bits of their
    address. Where a port is as wide as a row, A writes and B reads, each with the data wires of both.

    Args:
        parts: gets the parts.
        content: its bits, row by row.
        ports: the ports that the clock moves, A and B.
        wire: gives the net of a bit of a port, as of `ADDRA`.
        place: of the memory.
        halves: 1 if it has half the rows' bits, 2 if all.
    """
    row = ROW_BITS // 2 * halves
    shown: dict[str, Choice] = {}
    made = []
    for letter, one in ports.items():
        address = [wire(f"ADDR{letter}", at) for at in range(_ROW, 16)]
        enable, write = wire(f"EN{letter}", 0), wire(f"WE{letter}", 0) if one.writes else ZERO
        data: tuple[int, ...] = ()
        masks: tuple[int, ...] = ()
        outputs: tuple[int, ...] = ()
        if write != ZERO:
            data, masks = _written(parts, one.writes, row, halves, letter, wire, place)
        if one.reads:
            outputs = tuple(parts.net() for _ in range(row))
            held = parts.table(0b0010, (enable, write), f"{place}/{letter}/read") if one.mode == 0 else enable
            shown.update(_shown(parts, outputs, one.reads, halves, letter, wire, held, place))
        mode = one.mode if write != ZERO else 0
        made.append(
            BlockPort(
                letter, row, tuple(address), data, outputs, enable, write, ONE, registered=False, mode=mode, masks=masks
            )
        )
    parts.netlist.blocks.append(BlockMemory(content, tuple(made), place))
    return shown


def _pieces(width: int, row: int) -> list[int]:
    """Return where each part of `width` bits of a row begins; those of one or two bits leave every fifth out."""
    if width >= 5:
        return list(range(0, row, width))
    return [5 * (at * width // 4) + at * width % 4 for at in range(row // 5 * 4 // width)]


def _columns(width: int, row: int, halves: int) -> range:
    """Return the bits of an address that choose a part of a row."""
    last = _ROW - 2 + halves
    return range(last - (len(_pieces(width, row)).bit_length() - 1), last)


def _names(width: int, row: int, letter: str) -> list[tuple[str, int]]:
    """Return letter and number of the data wires of a port: those of both ports for a whole row."""
    half = row // 2
    return [("AB"[at // half] if width == row else letter, at % half if width == row else at) for at in range(width)]


def _written(
    parts: Parts, width: int, row: int, halves: int, letter: str, wire: Wires, place: str
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the data of a row, and for each bit a net that is 1 where it is not written."""
    names = _names(width, row, letter)
    given = [wire(f"DI{name}", at) for name, at in names]
    wanted = [wire(f"BM{name}", at) for name, at in names]
    columns = [wire(f"ADDR{letter}", at) for at in _columns(width, row, halves)]
    data, masks = [ZERO] * row, [ONE] * row
    for number, begin in enumerate(_pieces(width, row)):
        here = ONE
        for first in range(0, len(columns), 3):
            some = columns[first : first + 3]
            number_here = number >> first & (1 << len(some)) - 1
            here = parts.table(1 << (number_here << 1 | 1), (here, *some), f"{place}/{letter}/part{number}.{first}")
        for at in range(width):
            data[begin + at] = given[at]
            masks[begin + at] = parts.table(0b0111, (here, wanted[at]), f"{place}/{letter}/mask{begin + at}")
    return tuple(data), tuple(masks)


def _shown(
    parts: Parts,
    outputs: tuple[int, ...],
    width: int,
    halves: int,
    letter: str,
    wire: Wires,
    held: int,
    place: str,
) -> dict[str, Choice]:
    """Return what the outputs of a port show of a row: the part that its address named when it read."""
    row = len(outputs)
    columns = [wire(f"ADDR{letter}", at) for at in _columns(width, row, halves)]
    by, begins = parts.registers(columns, held, f"{place}/{letter}/column"), _pieces(width, row)
    return {
        f"DO{name}[{at}]": Choice(
            tuple(outputs[begin + bit] for begin in begins), tuple(by), f"{place}/{letter}/bit{bit}"
        )
        for bit, (name, at) in enumerate(_names(width, row, letter))
    }


def ram_place(db: Database, bel: str, halves: int) -> str:
    """Return the place of the memory, or of the half of one, whose output the logic cell half `bel` hands on."""
    found = _HANDS_ON.fullmatch(bel)
    wire = None if found is None else db.named(db.tile_at(found[1]), f"CPE.RAM_I{'LU'.index(found[2]) + 1}_n")
    for one in () if wire is None else db.wires(wire):
        output = OF_RAM.fullmatch(db.name(one))
        if output is not None and is_ram(db, one.tile):
            return _place(db, one.tile, str(int(output[2]) // _HALF) if halves == 1 else "")
    return bel


def is_ram(db: Database, tile: int) -> bool:
    """Return whether a tile is the first one of a block memory."""
    return db.named(tile, "RAM.ADDRA0[0]") is not None and db.named(tile, "RAM.DIA[0]") is not None


def _place(db: Database, tile: int, half: str) -> str:
    """Return a memory, or one of its halves, as nextpnr calls it."""
    return f"{db.place(tile)}/RAM" + (f"_HALF_{'UL'[int(half)]}" if half else "")


class Rams:
    """The block memories of a chip, each by its first tile."""

    def __init__(self, chip: GateMate) -> None:
        self._chip, self._db = chip, chip.db

    def half(self, tile: int, bit: int) -> str:
        """Return which half of a memory has a bit of the data wires: `0` or `1`; empty if it is one."""
        return str(bit // _HALF) if self._of(tile, "sram_mode") & 1 else ""

    def read(self, parts: Parts, tile: int, half: str, value: Value, clocked: Clocked) -> dict[str, Choice]:
        """Make the parts of a memory or of one of its halves; result as for `memory`, by the names of wires.

        Raises:
            ReadbackError: it is set in a way that fpgaprune does not decode.
        """
        number, first = int(half or 0), _HALF * int(half or 0)
        place = _place(self._db, tile, half)

        def refused(what: str) -> ReadbackError:
            return ReadbackError(f"the block memory at {place} {what}; fpgaprune does not decode that")

        def of(name: str) -> int:
            return self._of(tile, name)

        def control(name: str, letter: str, kind: str) -> int:
            found = of(f"forward_{letter.lower()}{number}_{kind}")
            if found in _CONTROLS:
                return _CONTROLS[found]
            if found != _FROM_A_WIRE:
                raise refused(f"has forward_{letter.lower()}{number}_{kind} {found:#04x}")
            return value(tile, f"{name}{letter}[{2 * number}]")

        def wire(port: str, at: int) -> int:
            letter = port[-1]
            if port.startswith("ADDR"):
                return value(tile, f"ADDR{letter}{number}[{at}]")
            if port.startswith("EN"):
                return control("EN", letter, "en")
            if port.startswith("WE"):
                return control("GLWE", letter, "we")
            return value(tile, f"{'WE' if port.startswith('BM') else 'DI'}{letter}[{first + at}]")

        for name in ("ecc_enable", "cascade_enable", "datbm_sel", "forward_a_addr", "forward_b_addr"):
            if of(name):
                raise refused(f"has {name} {of(name)}")
        if any(of(name) for name in self._names(tile) if "fifo" in name or "dyn" in name):
            raise refused("is a queue")
        simple = bool(of("sram_mode") >> 1 & 1)
        ports: dict[str, PortSettings] = {}
        for letter in "AB":
            own = f"{letter.lower()}{number}"
            if of(f"inversion_{own}") or of(f"{own}_set_outputreg"):
                raise refused(f"has inverted wires or output registers at port {letter}")
            clock = _CLOCKS.get(of(f"forward_{own}_clk"))
            if clock is None:
                raise refused(f"has forward_{own}_clk {of(f'forward_{own}_clk'):#04x}")
            if not clocked(tile, clock or f"CLK{letter}[{2 * number}]", place):
                continue
            writes, reads = (_WIDTHS[of(f"{way}_config_{own}")] for way in ("input", "output"))
            whole = ROW_BITS if not half else ROW_BITS // 2
            if simple and (writes, reads) != ((whole, 0) if letter == "A" else (0, whole)):
                raise refused(f"writes {writes} and reads {reads} bits at port {letter}")
            if (writes and reads and writes != reads) or (not simple and max(writes, reads) == whole):
                raise refused(f"writes {writes} and reads {reads} bits at port {letter}")
            if not writes and wire(f"WE{letter}", 0) != ZERO:
                raise refused(f"writes no bits at port {letter}")
            ports[letter] = PortSettings(writes, reads, MODES[of(f"{own}_writemode")])
        made = memory(parts, self._content(tile, half), ports, wire, place, halves=1 if half else 2)
        return {f"{name[:3]}[{int(name[4:-1]) + first}]": one for name, one in made.items()}

    def _content(self, tile: int, half: str) -> bytes:
        whole = bytes(self._chip.memories.get(self._block(tile), bytearray(ROWS * ROW_BITS)))
        if not half:
            return whole
        size, begin = ROW_BITS // 2, ROW_BITS // 2 * int(half)
        return b"".join(whole[at + begin : at + begin + size] for at in range(0, len(whole), ROW_BITS))

    def _block(self, tile: int) -> Block:
        """Return column and row of a memory among all."""
        place = self._db.tile(tile)
        return (place.x - 17) // 16, (place.y - 1) // 8

    def _names(self, tile: int) -> list[str]:
        return [name.removeprefix(_WRITTEN) for name in self._chip.rams[self._block(tile)]]

    def _of(self, tile: int, name: str) -> int:
        return self._chip.rams[self._block(tile)].get(_WRITTEN + name, 0)
