"""`GateMate`: one configured GateMate: its settings beside nextpnr's database, and which wire drives which."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from pathlib import Path

from fpgaprune.errors import ReadbackError
from fpgaprune.readback.gatemate.database import Way, Wire, database
from fpgaprune.readback.gatemate.frames import Block, read_commands
from fpgaprune.readback.gatemate.layout import (
    Words,
    read_words,
    words_of,
    words_of_clocks,
    words_of_ram,
    words_of_status,
)

# A block memory has 512 rows of 80 bits.
ROWS, ROW_BITS = 512, 80
# The settings of a block of tiles stand together: behind one of these stands which tile it is.
_NUMBERED = re.compile(r"(IM|OM|CPE|IOES|LES|BES|RES|TES)\.")
_DRIVER = re.compile(r"(SB_DRIVE\.P\d+\.D)([1-4])")
_CORE = "CPE.IN1"


class GateMate:
    """One configured FPGA.

    Attributes:
        device: as nextpnr's file is called, `CCGM1A1`.
        db: the database of the device.
        whole: settings of the whole FPGA.
        blocks: column and row of a block of tiles -> its settings; those that are 0 need not be there.
        rams: column and row of a block memory -> its settings.
        memories: column and row of a block memory -> its bits after configuration, row by row of 80.
    """

    def __init__(self, device: str) -> None:
        self.device, self.db = device, database(device)
        self.whole: dict[str, int] = {}
        self.blocks: defaultdict[Block, dict[str, int]] = defaultdict(dict)
        self.rams: defaultdict[Block, dict[str, int]] = defaultdict(dict)
        self.memories: dict[Block, bytearray] = {}
        self._stands_at: dict[tuple[int, str], tuple[Block, str]] = {}

    @classmethod
    def from_file(cls, path: str | os.PathLike[str], device: str) -> GateMate:
        """Return the FPGA that the file `path` (`.bit`) configures.

        Raises:
            ReadbackError: the file is damaged, or sets something that has no name.
            ToolError: a package is missing.
        """
        database(device)
        try:
            return cls.from_bytes(Path(path).read_bytes(), device)
        except FileNotFoundError:
            raise ReadbackError(
                f"there is no bitstream {os.fspath(path)!r}; export the run for a board first"
            ) from None
        except ValueError as error:
            raise ReadbackError(f"bitstream {os.fspath(path)!r} is damaged ({error}); make it again") from None

    @classmethod
    def from_bytes(cls, data: bytes, device: str) -> GateMate:
        """Return the FPGA that the bytes of a file configure.

        Raises:
            ValueError: they are damaged, or set something that has no name.
        """
        chip, frames = cls(device), read_commands(data)
        for block, content in frames.blocks.items():
            chip.blocks[block] = _named(content, words_of(*block), f"block {block}")
            for at, start in enumerate(frames.starts.get(block, ())):
                if start is not None:
                    chip.blocks[block][f"CPE{at + 1}.FF_INIT"] = 2 | start
        for block, settings in frames.rams.items():
            chip.rams[block] = _named(settings, words_of_ram(), f"memory {block}")
        for block, held in frames.contents.items():
            chip.memories[block] = bytearray(byte >> bit & 1 for byte in held for bit in range(8))
        chip.whole |= _named(frames.clocks, words_of_clocks(), "the clocks")
        # The first two bytes of the status are commands themselves.
        chip.whole |= _named(b"\0\0" + frames.status[2:], words_of_status(), "the status")
        return chip

    @staticmethod
    def words(block: Block) -> Words:
        """Return where the settings of a block stand: by name, the first bit and how many."""
        return words_of(*block)

    def settings(self, tile: int) -> dict[str, int]:
        """Return the settings of the block that a tile belongs to."""
        return self.blocks[self.db.tile(tile)[:2]]

    def setting(self, tile: int, name: str) -> int:
        """Return a setting of a tile, as `CPE.C_O1`."""
        if (tile, name) not in self._stands_at:
            self._stands_at[tile, name] = self.setting_at(tile, name)
        block, full = self._stands_at[tile, name]
        return self.blocks[block].get(full, 0)

    def setting_at(self, tile: int, name: str) -> tuple[Block, str]:
        """Return the block in which a setting of a tile stands, and its name there."""
        x, y, column, row, number = self.db.tile(tile)
        drives = _DRIVER.fullmatch(name)
        if drives is not None and self.db.named(tile, _CORE) is not None:
            # Within the core, the setting of a driver stands with the tile that it drives to.
            which = drives[2]
            across, down = column >= 4, row >= 4
            moved = {"3": (-2, 0, "1", across), "1": (2, 0, "3", not across), "4": (0, -2, "2", down)}
            moved["2"] = (0, 2, "4", not down)
            dx, dy, other, moves = moved[which]
            if moves:
                return (x + dx, y + dy), drives[1] + other
            return (x, y), name
        return (x, y), _NUMBERED.sub(lambda found: f"{found[1]}{number}.", name, count=1)

    def is_made(self, tile: int, way: Way) -> bool:
        """Return whether the settings make a way."""
        if not way.setting:
            return True
        if way.is_global:
            return self.whole.get(way.setting, 0) == way.value
        return self.setting(tile, way.setting) == way.value

    def before(self, wire: Wire) -> tuple[Wire, bool] | None:
        """Return the wire that leads to a wire, and whether it is inverted on the way; None if none does.

        Raises:
            ReadbackError: several wires lead there.
        """
        ways = self.db.node(wire).ways
        found = [(Wire(tile, way.source), way.inverts) for tile, way in ways if self.is_made(tile, way)]
        if len(found) > 1:
            raise ReadbackError(
                f"the bitstream connects {len(found)} sources to {self.db.name(wire)} at {self.db.place(wire.tile)}; "
                "wanted one"
            )
        return found[0] if found else None


def _named(data: bytes | bytearray, words: Words, where: str) -> dict[str, int]:
    """Return the settings in some bytes that are not 0.

    Raises:
        ValueError: a bit is set that belongs to none.
    """
    found, strange = read_words(bytes(data), words)
    if strange:
        raise ValueError(f"bit {strange[0]} of {where} has no name")
    return found
