"""`Database`: a GateMate as nextpnr knows it: its wires, the switches between them, and the settings that make each."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fpgaprune.readback.shipped_database import read_shipped

_PACKAGE = "yowasp_nextpnr_himbaechel_gatemate"
_SLICE = [("at", "<i4"), ("length", "<i4")]
# The records of nextpnr's file. A text or a list is given by its distance from the place where that stands.
_RECORDS: dict[str, Any] = {
    "type": [
        ("name", "<i4"),
        ("bels", _SLICE),
        ("wires", _SLICE),
        ("pips", _SLICE),
        ("groups", _SLICE),
        ("extra", "<i4"),
    ],
    "bel": [("", "<i4", 6), ("pins", _SLICE), ("extra", "<i4")],
    "bel_pin": [("port", "<i4"), ("wire", "<i4"), ("kind", "<i4")],
    "wire": [("name", "<i4"), ("", "<i4", 5), ("uphill", _SLICE), ("downhill", _SLICE), ("bels", _SLICE)],
    "pip": [("source", "<i4"), ("wire", "<i4"), ("", "<i4", 3), ("extra", "<i4")],
    "pip_extra": [("name", "<i4"), ("bits", "u1"), ("value", "u1"), ("flags", "u1"), ("", "u1")],
    "tile": [("prefix", "<i4"), ("type", "<i4"), ("shape", "<i4"), ("extra", "<i4")],
    "tile_extra": [("die", "u1"), ("x", "u1"), ("y", "u1"), ("column", "u1"), ("row", "u1"), ("number", "u1")],
    "shape": [("entries", _SLICE), ("", "<i4")],
    "node": [("dx", "<i2"), ("dy", "<i2"), ("wire", "<u2")],
    "package": [("name", "<i4"), ("pads", _SLICE), ("extra", "<i4")],
    "pad": [("pin", "<i4"), ("tile", "<i4"), ("", "<i4", 2), ("bank", "<i4"), ("", "<i4", 2)],
    "text": "<i4",
}
_MAGIC, _VERSION = 0x00CA7CA7, 6
# Where in the first record of the file the lists begin.
_LISTS = {name: 28 + 8 * at for at, name in enumerate(("type", "tile", "node", "shape", "package"))}
_TEXTS = 28 + 8 * 6
# Instead of a distance: a wire of one tile only; the wire that a node is named after.
_ALONE, _ROOT = 0x7000, 0x7001
_INVERTS, _SET, _GLOBAL = 1, 2, 4
_OUTPUTS = (1, 2)
_PLACE = re.compile(r"X(\d+)Y(\d+)")


class Wire(NamedTuple):
    """A wire by the number of a tile that it is in, and its number there."""

    tile: int
    number: int


class Way(NamedTuple):
    """A way from wire to wire within a tile.

    Attributes:
        source: number of the wire that it begins at.
        setting: what must be `value` for it; empty if it is always there.
        value: see above.
        inverts: whether a 1 becomes a 0.
        is_global: whether the setting is one of the whole FPGA.
    """

    source: int
    setting: str
    value: int
    inverts: bool
    is_global: bool


class TileType:
    """What is in a kind of tile.

    Attributes:
        wires: their names.
        numbers: name -> number.
        ways: number of a wire -> the ways to it.
        outputs: numbers of the wires that cells drive.
    """

    def __init__(self, wires: list[str], ways: dict[int, list[Way]], outputs: frozenset[int]) -> None:
        self.wires, self.ways, self.outputs = wires, ways, outputs
        self.numbers = {name: number for number, name in enumerate(wires)}


class Tile(NamedTuple):
    """Where the settings of a tile stand.

    Attributes:
        x, y: block of settings.
        column, row: of the tile among eight by eight.
        number: of the tile among those of the block.
    """

    x: int
    y: int
    column: int
    row: int
    number: int


class Node(NamedTuple):
    """Wires that are always one.

    Attributes:
        outputs: those among them that cells drive.
        ways: the tile of each way to one of them, and the way.
    """

    outputs: tuple[Wire, ...]
    ways: tuple[tuple[int, Way], ...]


class Pad(NamedTuple):
    """The buffer at a pin: its tile, and the number of the bank of pins that it is in."""

    tile: int
    bank: int


@lru_cache(maxsize=2)
def database(device: str) -> Database:
    """Return what nextpnr knows of `device`, as `CCGM1A1`.

    Raises:
        ToolError: the package is missing, or its file has a form that fpgaprune does not read.
    """
    return read_shipped(
        _PACKAGE, "the settings of a GateMate", "gatemate", f"himbaechel/gatemate/chipdb-{device}.bin", Database
    )


class Database:
    """One kind of FPGA.

    Attributes:
        width, height: columns and rows of tiles.
    """

    def __init__(self, path: Path) -> None:
        self._data = np.memmap(path, np.uint8, "r").view(np.ndarray)
        root = self._at(0)
        magic, version, self.width, self.height = (int(word) for word in self._data[root : root + 16].view("<i4"))
        if (magic, version) != (_MAGIC, _VERSION):
            raise ValueError(f"it begins with {magic:#x} and version {version}")
        texts = self._at(root + _TEXTS)
        self._known = int(self._word(texts))
        self._texts_at = self._at(texts + 4)
        self._types_at = self._at(root + _LISTS["type"])
        self._types: dict[int, TileType] = {}
        self._tiles, self._tiles_at = self._list("tile", root + _LISTS["tile"])
        self._node_shapes, self._nodes_at = self._list("shape", root + _LISTS["node"])
        self._shapes, self._shapes_at = self._list("shape", root + _LISTS["shape"])
        self._packages, self._packages_at = self._list("package", root + _LISTS["package"])
        # What is asked for again and again, as plain lists.
        self._type_of: list[int] = self._tiles["type"].tolist()
        self._shape_of: list[int] = self._tiles["shape"].tolist()
        self._places: dict[int, Tile] = {}
        self._entries: dict[int, list[tuple[int, int, int]]] = {}
        self._nodes: dict[Wire, Node] = {}
        self._members: dict[int, list[tuple[int, int, int]]] = {}

    def type_of(self, tile: int) -> TileType:
        """Return what is in a tile."""
        number = self._type_of[tile]
        if number not in self._types:
            self._types[number] = self._read(self._types_at + number * np.dtype(_RECORDS["type"]).itemsize)
        return self._types[number]

    def tile(self, tile: int) -> Tile:
        """Return where the settings of a tile stand."""
        if tile not in self._places:
            at = self._at(self._tiles_at + tile * self._tiles.itemsize + 12)
            row = self._data[at : at + 6].view(np.dtype(_RECORDS["tile_extra"]))[0]
            self._places[tile] = Tile(*(int(row[name]) for name in ("x", "y", "column", "row", "number")))
        return self._places[tile]

    def place(self, tile: int) -> str:
        """Return a tile as nextpnr calls it: `X5Y6`."""
        return f"X{tile % self.width}Y{tile // self.width}"

    def tile_at(self, place: str) -> int:
        """Return the number of a tile that nextpnr calls `place`, as `X5Y6`."""
        found = _PLACE.fullmatch(place)
        return 0 if found is None else int(found[1]) + int(found[2]) * self.width

    def name(self, wire: Wire) -> str:
        """Return the name of a wire in its tile, as `CPE.IN1`."""
        return self.type_of(wire.tile).wires[wire.number]

    def named(self, tile: int, name: str) -> Wire | None:
        """Return the wire of that name in a tile; None if there is none."""
        number = self.type_of(tile).numbers.get(name)
        return None if number is None else Wire(tile, number)

    def wires(self, wire: Wire) -> Sequence[Wire]:
        """Return all wires that are always one with a wire, itself among them."""
        root = self._root(wire)
        if root is None:
            return (wire,)
        tile, shape = root
        if shape not in self._members:
            members, _ = self._list("node", self._nodes_at + shape * self._node_shapes.itemsize)
            self._members[shape] = members.tolist()
        return [Wire(tile + dx + dy * self.width, number) for dx, dy, number in self._members[shape]]

    def node(self, wire: Wire) -> Node:
        """Return what may drive a wire.

        At the edges, and of the ways that no setting makes, most begin at wires that lead nowhere: they are left out.
        """
        if wire not in self._nodes:
            outputs, ways = list[Wire](), list[tuple[int, Way]]()
            for one in self.wires(wire):
                about = self.type_of(one.tile)
                if one.number in about.outputs:
                    outputs.append(one)
                for way in about.ways.get(one.number, ()):
                    if way.setting or any(self.node(Wire(one.tile, way.source))):
                        ways.append((one.tile, way))
            self._nodes[wire] = Node(tuple(outputs), tuple(ways))
        return self._nodes[wire]

    def pin(self, package: str, pin: str) -> Pad:
        """Return the buffer at a pin of a package."""
        return self._pins(package)[pin]

    @lru_cache(maxsize=2)  # noqa: B019
    def _pins(self, package: str) -> Mapping[str, Pad]:
        found: dict[str, Pad] = {}
        for number, row in enumerate(self._packages):
            if not self._text(int(row["name"])).endswith(package):
                continue
            pads, _ = self._list("pad", self._packages_at + number * self._packages.itemsize + 4)
            for pin, tile, bank in pads[["pin", "tile", "bank"]].tolist():
                found[self._text(pin)] = Pad(self.tile_at(self._text(tile)), bank)
        return found

    def _root(self, wire: Wire) -> tuple[int, int] | None:
        """Return the tile that a node is named after, and its shape; None for a wire that is alone."""
        entry = self._entry(wire)
        if entry is None:
            return None
        dx, dy, number = entry
        if dx != _ROOT:
            tile = wire.tile + dx + dy * self.width
            dx, dy, number = self._entry(Wire(tile, number)) or (0, 0, 0)
            if dx != _ROOT:
                raise ValueError(f"a node of {self.name(wire)} at {self.place(wire.tile)} has no beginning")
            return tile, dy & 0xFFFF | number << 16
        return wire.tile, dy & 0xFFFF | number << 16

    def _entry(self, wire: Wire) -> tuple[int, int, int] | None:
        shape = self._shape_of[wire.tile]
        if shape not in self._entries:
            entries, _ = self._list("node", self._shapes_at + shape * self._shapes.itemsize)
            self._entries[shape] = entries.tolist()
        found = self._entries[shape]
        if wire.number >= len(found) or found[wire.number][0] == _ALONE:
            return None
        return found[wire.number]

    def _read(self, at: int) -> TileType:
        bels, bels_at = self._list("bel", at + 4)
        wires, _ = self._list("wire", at + 12)
        pips, pips_at = self._list("pip", at + 20)
        outputs: set[int] = set()
        for number in range(len(bels)):
            pins, _ = self._list("bel_pin", bels_at + number * bels.itemsize + 24)
            outputs.update(wire for _, wire, kind in pins.tolist() if kind in _OUTPUTS)
        ways: dict[int, list[Way]] = {}
        for number, (source, wire) in enumerate(pips[["source", "wire"]].tolist()):
            ways.setdefault(wire, []).append(self._way(source, pips_at + number * pips.itemsize + 20))
        return TileType([self._text(name) for name in wires["name"].tolist()], ways, frozenset(outputs))

    def _way(self, source: int, at: int) -> Way:
        begin = self._at(at)
        row = self._data[begin : begin + 8].view(np.dtype(_RECORDS["pip_extra"]))[0]
        flags = int(row["flags"])
        name = self._text(int(row["name"])) if flags & _SET else ""
        return Way(source, name, int(row["value"]), bool(flags & _INVERTS), bool(flags & _GLOBAL))

    # The file.

    def _word(self, at: int) -> int:
        return int(self._data[at : at + 4].view("<i4")[0])

    def _at(self, at: int) -> int:
        return at + self._word(at)

    def _list(self, name: str, at: int) -> tuple[NDArray[Any], int]:
        """Return the list whose place and length stand at `at`, and where it begins."""
        kind, begin = np.dtype(_RECORDS[name]), self._at(at)
        length = self._word(at + 4)
        return self._data[begin : begin + length * kind.itemsize].view(kind), begin

    def _text(self, number: int) -> str:
        """Return a name; those that nextpnr has of its own are not in the file, and none of a wire or a setting."""
        if number < self._known:
            return ""
        begin = self._at(self._texts_at + 4 * (number - self._known))
        return bytes(self._data[begin : begin + 64]).split(b"\0")[0].decode()
