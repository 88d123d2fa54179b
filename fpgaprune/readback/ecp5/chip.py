"""`Ecp5`: one configured ECP5: its bits beside Trellis's database, and which wire drives which."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fpgaprune.errors import ReadbackError
from fpgaprune.readback.ecp5.database import Bit, Tile, Wire, database
from fpgaprune.readback.ecp5.frames import read_frames


class Ecp5:
    """One configured FPGA.

    Attributes:
        device: as Trellis names it, `LFE5U-25F`.
        db: the database of the device.
        bits: (frames, bits of each), 0 or 1.
        memories: number of a block memory -> its bits after configuration, word by word of 9.
    """

    def __init__(self, device: str, bits: NDArray[np.uint8], memories: dict[int, bytearray]) -> None:
        self.device, self.db, self.bits, self.memories = device, database(device), bits, memories
        # Name of a tile -> its bits, and which of them are 1.
        self._ones: dict[str, tuple[bytes, frozenset[Bit]]] = {}

    @classmethod
    def from_file(cls, path: str | os.PathLike[str], device: str) -> Ecp5:
        """Return the FPGA that the file `path` (`.bit`) configures.

        Raises:
            ReadbackError: the file is none for `device`, or is damaged.
            ToolError: the package with the database is missing.
        """
        db = database(device)
        try:
            data = Path(path).read_bytes()
        except FileNotFoundError:
            raise ReadbackError(
                f"there is no bitstream {os.fspath(path)!r}; export the run for a board first"
            ) from None
        try:
            return cls(device, *read_frames(data, db.identity, db.frames, db.frame_bits))
        except LookupError as error:
            raise ReadbackError(
                f"bitstream {os.fspath(path)!r} is for the FPGA {error.args[0]}, not for {device} ({db.identity:#010x})"
            ) from None
        except ValueError as error:
            raise ReadbackError(f"bitstream {os.fspath(path)!r} is damaged ({error}); make it again") from None

    def ones(self, tile: Tile) -> frozenset[Bit]:
        """Return the bits of a tile that are 1."""
        part = self.bits[tile.frame : tile.frame + tile.frames, tile.bit : tile.bit + tile.bits]
        text = part.tobytes()
        known, found = self._ones.get(tile.name, (b"", frozenset()))
        if text != known:
            found = frozenset((frame, bit) for frame, bit in np.argwhere(part).tolist())
            self._ones[tile.name] = text, found
        return found

    def block(self, row: int, col: int, kind: str) -> tuple[list[Tile], int]:
        """Return the tiles of nine columns that share settings, around a cell in one of them, and its column there.

        Some columns belong to the clock's tree too, and have other names.

        Args:
            row: of the cell.
            col: of the cell.
            kind: how the names of the nine kinds of tiles begin.
        """
        for near in range(col - 8, col + 9):
            for tile in self.db.at.get((row, near), ()):
                if tile.kind.startswith(kind) and tile.kind[len(kind) :].isdigit():
                    first = near - int(tile.kind[len(kind) :])
                    if first <= col < first + 9:
                        places = (self.db.at.get((row, at), ()) for at in range(first, first + 9))
                        return [one for place in places for one in place], col - first
        raise ReadbackError(f"there is no {kind} at X{col}/Y{row}")

    def tile_of(self, row: int, col: int, kind: str) -> Tile | None:
        """Return the tile of a kind at a place; None if there is none."""
        return next((tile for tile in self.db.at.get((row, col), ()) if tile.kind == kind), None)

    def word(self, tiles: Iterable[Tile], name: str) -> int:
        """Return a number whose bits stand in some tiles, its first bit lowest.

        Raises:
            ReadbackError: the bits are none that the database knows.
        """
        found = 0
        for tile in tiles:
            ones = self.ones(tile)
            for at, bits in enumerate(self.db.type_of(tile).words.get(name, ())):
                if not (bits.ones or bits.zeros):
                    continue
                if bits.ones <= ones and not bits.zeros & ones:
                    found |= 1 << at
                elif bits.ones & ones or bits.zeros - ones:
                    raise self.strange(name, tile.name)
        return found

    def value(self, tile: Tile, name: str, switch: str = "") -> str:
        """Return what a setting of a tile is.

        Args:
            tile: the tile.
            name: of the setting.
            switch: the wire whose switch has some of its bits: with these, the switch may be a constant.

        Raises:
            ReadbackError: the bits are none that the database knows.
        """
        found = self.values([tile], name, switch)
        if len(found) != 1:
            raise self.strange(name, tile.name)
        return found.pop()

    def only(self, tiles: Iterable[Tile], name: str, place: str) -> str:
        """Return what a setting of the cell at `place`, whose bits stand in several tiles, is.

        Raises:
            ReadbackError: the bits are none that the database knows.
        """
        found = self.values(tiles, name)
        if len(found) != 1:
            raise self.strange(name, place)
        return found.pop()

    def values(self, tiles: Iterable[Tile], name: str, switch: str = "", *, own: bool = False) -> set[str]:
        """Return what a setting, whose bits stand in several tiles, may be: what it is there in each of them.

        With `own`, bits that other settings have too are not looked at if no value has just the bits that are there.
        """
        found: set[str] | None = None
        for tile in tiles:
            about = self.db.type_of(tile)
            if name not in about.enums:
                continue
            ones, settings = self.ones(tile), about.enums[name]
            free = about.bits_of(name)
            if self.way(tile, switch) is not None:
                free -= about.bits_of(switch)
                settings = {value: bits for value, bits in settings.items() if bits.ones <= free}
            here = {value for value, bits in settings.items() if bits.ones == ones & free}
            if own and not here:
                free -= about.shared(name)
                here = {value for value, bits in settings.items() if bits.ones & free == ones & free}
            found = here if found is None else found & here
        return found or set()

    def strange(self, name: str, place: str) -> ReadbackError:
        """Return the error for bits that mean nothing."""
        return ReadbackError(f"the bits of {name} at {place} are none that Trellis knows")

    def way(self, tile: Tile, name: str) -> str | None:
        """Return the wire that a switch leads to a wire of the tile; None if the database does not know its bits."""
        about = self.db.type_of(tile)
        used = about.bits_of(name) & self.ones(tile)
        return next((source for source, bits in about.muxes.get(name, {}).items() if used and bits.ones == used), None)

    def wiring(self) -> Wiring:
        """Return which wire drives which, by the bits as they are now."""
        return Wiring(self)


class Wiring:
    """The ways that the switches of a chip make."""

    def __init__(self, chip: Ecp5) -> None:
        self._chip, self._db = chip, chip.db
        self._sources: dict[Wire, set[Wire]] = {}
        self._strange: dict[Wire, Tile] = {}
        for tile in chip.db.tiles.values():
            ones = chip.ones(tile)
            if ones:
                self._read(tile, ones)

    def _read(self, tile: Tile, ones: frozenset[Bit]) -> None:
        about = self._db.type_of(tile)
        for name in {name for bit in ones for name in about.of_bit.get(bit, ())}:
            wire, ways = self._db.wire(tile, name), about.muxes[name]
            if wire is None:
                continue
            used = about.bits_of(name) & ones
            sources = [source for source, bits in ways.items() if bits.ones == used]
            if not sources:
                self._strange[wire] = tile
            for source in sources:
                before = self._db.wire(tile, source)
                if before is not None:
                    self._sources.setdefault(wire, set()).add(before)

    def before(self, wire: Wire) -> Wire | None:
        """Return the wire that leads to a wire; None if none does.

        Raises:
            ReadbackError: the bits of the switch are none that the database knows, or several wires lead there.
        """
        if wire in self._strange:
            raise self._chip.strange(f"the switch before {wire.place}", self._strange[wire].name)
        found = set(self._sources.get(wire, ()))
        if not found:
            for tile, name, source in self._db.always(wire):
                before = self._db.wire(tile, source)
                if before is not None and not self._db.type_of(tile).bits_of(name) & self._chip.ones(tile):
                    found.add(before)
            beyond = self._db.global_source(wire)
            if beyond is not None:
                found.add(beyond)
        if len(found) > 1:
            # Multipliers of other widths and adders have the same outputs; that of 18 bits must be on where it is read.
            found = {source for source in found if source.name.endswith("_MULT18")} or found
        if len(found) > 1:
            raise ReadbackError(f"the bitstream connects {len(found)} sources to {wire.place}; wanted one")
        return next(iter(found), None)
