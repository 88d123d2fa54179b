"""`Ice40`: one configured iCE40: its bits beside nextpnr's database, and which wire drives which."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fpgaprune.errors import ReadbackError, ToolExitError
from fpgaprune.fabric import ICEUNPACK, find_open_tool
from fpgaprune.readback.ice40.database import Place, database

_ROWS, _COLUMNS = 16, 54
# The last of some rows of tiles, and the row whose buffers lead the global nets to them; a tile without buffers has
# them in the one below.
_COLUMN_BUFFERS: Mapping[str, Sequence[tuple[int, int]]] = {
    "1k": ((4, 4), (8, 5), (12, 12), (17, 13)),
    "5k": ((4, 4), (10, 5), (14, 14), (20, 15), (26, 26), (31, 27)),
    "8k": ((8, 8), (16, 9), (24, 24), (33, 25)),
}
# For each global net the bit outside the tiles that leads a pin to it: bank, column, row.
_GLOBALS_OF_PINS = {
    "1k": ("0 330 142", "0 331 142", "1 330 143", "1 331 143", "1 330 142", "1 331 142", "0 330 143", "0 331 143"),
    "5k": ("0 690 334", "0 691 334", "1 690 175", "1 691 175", "1 690 174", "1 691 174", "0 690 335", "0 691 335"),
    "8k": ("0 870 270", "0 871 270", "1 870 271", "1 871 271", "1 870 270", "1 871 270", "0 870 271", "0 871 271"),
}
_GLOBAL = "glb_netwk_"
_UNPACK_S = 120.0
# Words of sixteen bits in a block memory.
WORDS = 256


class Ice40:
    """One configured FPGA.

    Attributes:
        device: as nextpnr's file is called: `5k` for an iCE40UP5K, `8k` for an HX8K or HX4K.
        db: the database of the device.
        bits: of each tile by column and row, in its rows and columns, 0 or 1.
        memories: column and row of a block memory -> its bits after configuration, word by word of 16.
        extra: bits outside the tiles that are set.
    """

    def __init__(
        self, device: str, bits: NDArray[np.uint8], memories: dict[tuple[int, int], bytearray], extra: set[str]
    ) -> None:
        self.device, self.db = device, database(device)
        self.bits, self.memories, self.extra = bits, memories, extra

    @classmethod
    def from_file(cls, path: str | os.PathLike[str], device: str) -> Ice40:
        """Return the FPGA that the file `path` (`.bin`) configures.

        Raises:
            ReadbackError: the file is none for `device`, or is damaged.
            ToolError: a package is missing.
        """
        database(device)
        if not Path(path).is_file():
            raise ReadbackError(f"there is no bitstream {os.fspath(path)!r}; export the run for a board first")
        with tempfile.TemporaryDirectory() as folder:
            home = Path(folder)
            (home / "board.bin").write_bytes(Path(path).read_bytes())
            try:
                find_open_tool(ICEUNPACK).run(("board.bin", "board.asc"), home, _UNPACK_S, "iceunpack.log")
            except ToolExitError as error:
                raise ReadbackError(
                    f"bitstream {os.fspath(path)!r} is damaged (iceunpack ends with {error.code}); make it again"
                ) from None
            return cls.from_text((home / "board.asc").read_text(encoding="ascii"), device, os.fspath(path))

    @classmethod
    def from_text(cls, text: str, device: str, name: str) -> Ice40:
        """Return the FPGA of iceunpack's text, which was made of the file `name`.

        Raises:
            ReadbackError: it is for another device.
        """
        db = database(device)
        bits = np.zeros((db.width, db.height, _ROWS, _COLUMNS), np.uint8)
        memories: dict[tuple[int, int], bytearray] = {}
        extra: set[str] = set()
        for part in text.split("\n.")[1:]:
            head, *lines = part.splitlines()
            kind, *words = head.split()
            lines = [line for line in lines if line]
            if kind == "device" and words != [device]:
                raise ReadbackError(f"bitstream {name!r} is for an iCE40 {words[0]}, not for an iCE40 {device}")
            if kind == "ram_data":
                numbers = (int(line, 16) for line in lines)
                memories[int(words[0]), int(words[1])] = bytearray(
                    number >> bit & 1 for number in numbers for bit in range(16 * _ROWS)
                )
            elif kind.endswith("_tile"):
                for row, line in enumerate(lines):
                    bits[int(words[0]), int(words[1]), row, : len(line)] = np.frombuffer(line.encode(), np.uint8) & 1
            elif kind == "extra_bit":
                extra.add(" ".join(words))
        return cls(device, bits, memories, extra)

    def entry(self, x: int, y: int, name: str) -> int:
        """Return the bits of an entry of a tile, the first one lowest.

        Raises:
            ReadbackError: the tile has no such entry.
        """
        places = self.db.entries(x, y).get(name)
        if places is None:
            raise ReadbackError(f"the tile at X{x}/Y{y} has no {name}; fpgaprune does not decode that")
        return sum(int(self.bits[x, y, row, col]) << at for at, (row, col) in enumerate(places))

    def is_on(self, x: int, y: int, name: str) -> bool:
        """Return whether an entry switches a buffer or a memory on: by a 1, on an HX1K or LP1K by a 0."""
        return self.entry(x, y, name) != (self.device == "1k")

    def settings(self, place: Place, kind: str, group: str) -> dict[str, int]:
        """Return the settings of a cell, in entries of a `group`; bits of one setting are joined, `_0` the lowest."""
        found: dict[str, int] = {}
        for name, (x, y, entry) in self.db.settings(place, kind).items():
            # nextpnr lists an output among them too.
            if f"{group}.{entry}" not in self.db.entries(x, y):
                continue
            stem, _, digit = name.rpartition("_")
            whole, at = (stem, int(digit)) if digit.isdigit() and stem else (name, 0)
            found[whole] = found.get(whole, 0) | self.entry(x, y, f"{group}.{entry}") << at
        return found

    @property
    def globals_of_pins(self) -> set[int]:
        """The global nets that pins drive past the switches."""
        return {at for at, bit in enumerate(_GLOBALS_OF_PINS[self.device]) if bit in self.extra}

    def wiring(self) -> Wiring:
        """Return which wire drives which, by the bits as they are now."""
        return Wiring(self)


class Wiring:
    """The ways that the switches of a chip make."""

    def __init__(self, chip: Ice40) -> None:
        self._chip, db = chip, chip.db
        switches, ways = db.switches, db.ways
        values = np.zeros(len(switches), np.int64)
        for at in range(5):
            row, col = switches["places"][:, at].T
            bit = chip.bits[switches["x"], switches["y"], row, col]
            values = np.where(switches["bits"] > at, 2 * values + bit, values)
        made = values[ways["switch"]] == ways["mask"]
        self._sources: dict[int, list[tuple[int, int]]] = {}
        for source, wire, switch, _ in ways[made].tolist():
            self._sources.setdefault(wire, []).append((source, switch))
        # Switches that are set and make no way.
        set_to_none = values > 0
        set_to_none[ways["switch"][made]] = False
        self._strange: set[int] = set(ways["wire"][set_to_none[ways["switch"]]].tolist())

    def is_led(self, wire: int) -> bool:
        """Return whether a switch leads anything to a wire."""
        return wire in self._sources or wire in self._strange

    def source(self, wire: int) -> int:
        """Return the wire where the way into `wire` begins.

        Raises:
            ReadbackError: the bits of a switch are none that the database knows, two drive one wire, the way leads in
                a circle, or a buffer that it needs is off.
        """
        seen: set[int] = set()
        name = self._chip.db.name
        while True:
            if wire in seen:
                raise ReadbackError(f"the switches at {name(wire)} lead in a circle; nothing drives that wire")
            seen.add(wire)
            if wire in self._strange:
                raise ReadbackError(f"the bits of a switch before {name(wire)} are none that nextpnr knows")
            found = self._sources.get(wire)
            if found is None:
                return wire
            if len(found) > 1:
                raise ReadbackError(f"the bitstream connects {len(found)} sources to {name(wire)}; wanted one")
            ((wire, switch),) = found
            self._require_buffer(wire, switch)

    def _require_buffer(self, wire: int, switch: int) -> None:
        """Check that a global net reaches a tile through the buffers of its column."""
        chip = self._chip
        net = chip.db.name(wire).rpartition("/")[2]
        if not net.startswith(_GLOBAL):
            return
        x, y = (int(chip.db.switches[switch][axis]) for axis in "xy")
        row = next(row for last, row in _COLUMN_BUFFERS[chip.device] if y <= last)
        row -= f"ColBufCtrl.{net}" not in chip.db.entries(x, row)
        if not chip.entry(x, row, f"ColBufCtrl.{net}"):
            raise ReadbackError(f"the buffer of {net} in column {x} is off, and X{x}/Y{y} takes that net")
