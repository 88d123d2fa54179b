"""`Chip`: the fuses of a bitstream beside Apycula's database of the FPGA: what is set, and which wire drives which."""

from __future__ import annotations

import importlib
import importlib.resources
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from typing import Any, NamedTuple

from fpgaprune.errors import ReadbackError, ToolError

_SEGMENT = re.compile(r"([NESW])([128])(\d)(\d)")
_STEP = {"N": (1, 0), "E": (0, -1), "S": (-1, 0), "W": (0, 1)}
_TURNED = {"N": "S", "S": "N", "E": "W", "W": "E"}
CONSTANTS = {"VSS": 0, "VCC": 1}


class Wire(NamedTuple):
    """A wire by the tile that it begins in, from 0, and its name there."""

    row: int
    col: int
    name: str

    @property
    def place(self) -> str:
        """As Apycula's own tools write it, from 1."""
        return f"R{self.row + 1}C{self.col + 1}_{self.name}"


def apycula(module: str) -> Any:
    """Return a module of Apycula.

    Raises:
        ToolError: the package is missing.
    """
    try:
        return importlib.import_module(f"apycula.{module}")
    except ImportError:
        raise ToolError("apycula, which knows the bits of Gowin FPGAs: pip install 'fpgaprune[gowin]'") from None


@lru_cache(maxsize=2)
def database(device: str) -> Any:
    """Load Apycula's description of a device.

    Raises:
        ReadbackError: it has none.
        ToolError: the package is missing.
    """
    chipdb = apycula("chipdb")
    place = importlib.resources.files("apycula") / f"{device}.msgpack.xz"
    if not place.is_file():
        raise ReadbackError(f"Apycula has no database of {device!r}; its bitstreams cannot be read back")
    return chipdb.load_chipdb(str(place))


@lru_cache(maxsize=2)
def _nodes(device: str) -> Mapping[Wire, tuple[Wire, ...]]:
    """Map each wire to all wires that are always joined to it."""
    db = database(device)
    found: dict[Wire, tuple[Wire, ...]] = {}
    for wires in (*([Wire(*wire) for wire in sorted(joined)] for _, joined in db.nodes.values()), *_long(db)):
        for wire in wires:
            found[_begin(db, wire)] = tuple(wires)
    return found


def _long(db: Any) -> Iterator[list[Wire]]:
    """Yield the long lines: each column that runs from top to bottom, and each row that branches off it."""
    for (_, col, number), line in db.segments.items():
        half, rows = number // 4, range(line["min_y"], line["max_y"] + 1)
        ends = [Wire(line[f"{end}_row"], col, line[f"{end}_wire"]) for end in ("top", "bottom")]
        yield ends + [Wire(row, col, f"LT0{1 + 3 * half}") for row in rows]
        for row in rows:
            taps = [Wire(row, at, f"LB{number}1") for at in range(line["min_x"], line["max_x"] + 1)]
            yield [Wire(row, col, f"LBO{half}"), *taps]


def _begin(db: Any, wire: Wire) -> Wire:
    """Return the wire by the tile that it begins in: `N202` is the `N200` of the tile two rows further down."""
    segment = _SEGMENT.fullmatch(wire.name)
    if segment is None:
        return wire
    way, length, number, steps = segment.groups()
    row, col = (at + step * int(steps) for at, step in zip(wire[:2], _STEP[way], strict=True))
    # At the edges a wire turns back.
    for low, high in ((row, db.rows), (col, db.cols)):
        if not 0 <= low < high:
            way = _TURNED[way]
    row = -1 - row if row < 0 else 2 * db.rows - 1 - row if row >= db.rows else row
    col = -1 - col if col < 0 else 2 * db.cols - 1 - col if col >= db.cols else col
    if length == "1" and number in "12":
        return Wire(row, col, f"{'SN' if way in 'NS' else 'EW'}{number}0")
    return Wire(row, col, f"{way}{length}{number}0")


class _Switch(NamedTuple):
    """What may lead to a wire of a tile: all fuses that matter, and the sources by those of them that are set."""

    fuses: frozenset[tuple[int, int]]
    sources: Mapping[frozenset[tuple[int, int]], list[str]]


@cache
def _switches(device: str, kind: int, wire: str) -> tuple[_Switch, ...]:
    """Return the switches before a wire of a tile of one kind: the plain ones, and those of the clock's tree."""
    return tuple(_switches_of(database(device).tiles[kind], wire))


def _switches_of(tile: Any, wire: str) -> Iterator[_Switch]:
    for table in (tile.pips, tile.clock_pips):
        sources: dict[frozenset[tuple[int, int]], list[str]] = {}
        for source, own in table.get(wire, {}).items():
            # A plain switch has fuses that cut the wire off other sources, too.
            cut = tile.alonenode.get(wire, ()) if table is tile.pips else ()
            fuses = frozenset(own).union(*(apart for others, apart in cut if source not in others))
            sources.setdefault(fuses, []).append(source)
        if sources:
            yield _Switch(frozenset().union(*sources), sources)


class Chip:
    """One configured FPGA.

    Attributes:
        device: as Apycula names it, `GW1N-9C`.
        db: Apycula's database of the device.
        rows: the fuses, row by row; behind `db.height` rows the contents of the block memories, if any.
    """

    def __init__(self, device: str, rows: list[list[int]]) -> None:
        self.device, self.db, self.rows = device, database(device), rows
        self._nodes = _nodes(device)
        db = self.db
        self._top = [0]
        for row in range(db.rows):
            self._top.append(self._top[-1] + db[row, 0].height)
        self._left = [0]
        for col in range(db.cols):
            self._left.append(self._left[-1] + db[0, col].width)

    @classmethod
    def from_file(cls, path: str | os.PathLike[str], device: str) -> Chip:
        """Return the FPGA that the file `path` (`.fs`) configures.

        Raises:
            ReadbackError: the file is none for `device`, or is damaged.
            ToolError: Apycula is missing.
        """
        db, bslib = database(device), apycula("bslib")
        try:
            rows, head, _, _ = bslib.read_bitstream(os.fspath(path))
        except FileNotFoundError:
            raise ReadbackError(
                f"there is no bitstream {os.fspath(path)!r}; export the run for a board first"
            ) from None
        except (AssertionError, ValueError, IndexError, OSError) as error:
            reason = str(error).split(" for ")[0] or "it ends early"
            raise ReadbackError(f"bitstream {os.fspath(path)!r} is damaged ({reason}); make it again") from None
        number = next((bytes(line) for line in db.cmd_hdr if line[0] == 0x06), b"")
        if number not in [bytes(line) for line in head]:
            raise ReadbackError(
                f"bitstream {os.fspath(path)!r} is not for {device}, whose number is {number[4:].hex()}"
            )
        wanted = {db.height, db.height + 256 * len(db.simplio_rows)}
        if len(rows) not in wanted or any(len(row) != db.width for row in rows):
            raise ReadbackError(
                f"bitstream {os.fspath(path)!r} has {len(rows)} rows of bits; wanted {' or '.join(map(str, wanted))}"
            )
        return cls(device, rows)

    def origin_of(self, row: int, col: int) -> tuple[int, int]:
        """Return row and column of a tile's first fuse in `rows`."""
        return self._top[row], self._left[col]

    def is_set(self, row: int, col: int, fuse: tuple[int, int]) -> bool:
        """Return whether a fuse of the tile at `row` and `col` is set."""
        return bool(self.rows[self._top[row] + fuse[0]][self._left[col] + fuse[1]])

    def set_of(self, row: int, col: int, fuses: Iterable[tuple[int, int]]) -> set[tuple[int, int]]:
        """Return which of the `fuses` of a tile are set."""
        return {fuse for fuse in fuses if self.is_set(row, col, fuse)}

    def tile(self, row: int, col: int) -> list[list[int]]:
        """Return all fuses of a tile."""
        top, left = self.origin_of(row, col)
        tile = self.db[row, col]
        return [line[left : left + tile.width] for line in self.rows[top : top + tile.height]]

    def joined(self, wire: Wire) -> tuple[Wire, ...]:
        """Return every name of a wire, with those that are always joined to it."""
        begin = _begin(self.db, wire)
        return self._nodes.get(begin, (begin,))

    def source(self, wire: Wire) -> tuple[Wire, ...]:
        """Return what drives `wire`, through all switches: every name of the wire where the way begins.

        Raises:
            ReadbackError: the fuses of a switch are none that the database knows, two drive one wire, or the way
                leads in a circle.
        """
        seen: set[Wire] = set()
        while True:
            if wire.name in CONSTANTS:
                return (wire,)
            names = self.joined(wire)
            if names[0] in seen:
                raise ReadbackError(f"the switches at {names[0].place} lead in a circle; nothing drives that wire")
            seen.add(names[0])
            before = self._switched(names)
            if before is None:
                return names
            wire = before

    def _switched(self, names: tuple[Wire, ...]) -> Wire | None:
        """Return the wire that a switch leads to a wire; None if no switch does."""
        found = {(wire.row, wire.col, source): bool(fuses) for wire, source, fuses in self._choices(names)}
        # What is connected without a fuse gives way to what a fuse connects.
        chosen = [key for key, fused in found.items() if fused] or list(found)
        if len(chosen) > 1:
            raise ReadbackError(f"the bitstream connects {len(chosen)} sources to {names[0].place}; wanted one")
        return Wire(*chosen[0]) if chosen else None

    def _is_driven(self, wire: Wire) -> bool:
        return self._switched(self.joined(wire)) is not None

    def _choices(self, names: tuple[Wire, ...]) -> Iterator[tuple[Wire, str, frozenset[tuple[int, int]]]]:
        for wire in names:
            tile = self.db[wire.row, wire.col]
            for switch in _switches(self.device, tile.ttyp, wire.name):
                used = frozenset(self.set_of(wire.row, wire.col, switch.fuses))
                matches = switch.sources.get(used, [])
                if len(matches) > 1:
                    # A tap of the clock's tree is the same for each of four spines: it takes the one that is driven.
                    driven = [name for name in matches if self._is_driven(Wire(wire.row, wire.col, name))]
                    matches = driven or matches[:1]
                if matches:
                    yield from ((wire, source, used) for source in matches)
                elif used:
                    raise ReadbackError(f"the fuses of the switch before {wire.place} are none that Apycula knows")
