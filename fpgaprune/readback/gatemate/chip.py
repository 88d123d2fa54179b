"""`GateMate`: one configured GateMate: its settings beside nextpnr's database, and which wire drives which."""

from __future__ import annotations

import os
import re
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from fpgaprune.errors import ReadbackError, ToolExitError
from fpgaprune.fabric import GMUNPACK, find_open_tool
from fpgaprune.readback.gatemate.database import Way, Wire, database

_UNPACK_S = 120.0
# A block memory has 512 rows of 80 bits.
ROWS, ROW_BITS = 512, 80
_SECTION = re.compile(r"\.(\w+)(?: (\d+))?(?: (\d+) (\d+))?\s*")
_WORD = re.compile(r"([A-Za-z]\S*) ([01]+)")
# The settings of a block of tiles stand together: behind one of these stands which tile it is.
_NUMBERED = re.compile(r"(IM|OM|CPE|IOES|LES|BES|RES|TES)\.")
_DRIVER = re.compile(r"(SB_DRIVE\.P\d+\.D)([1-4])")
_CORE = "CPE.IN1"
Block = tuple[int, int]


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
            ReadbackError: the file is none for `device`, or is damaged.
            ToolError: a package is missing.
        """
        database(device)
        if not Path(path).is_file():
            raise ReadbackError(f"there is no bitstream {os.fspath(path)!r}; export the run for a board first")
        with tempfile.TemporaryDirectory() as folder:
            home = Path(folder)
            (home / "board.bit").write_bytes(Path(path).read_bytes())
            try:
                find_open_tool(GMUNPACK).run(("board.bit", "board.txt"), home, _UNPACK_S, "gmunpack.log")
            except ToolExitError as error:
                raise ReadbackError(
                    f"bitstream {os.fspath(path)!r} is damaged (gmunpack ends with {error.code}); make it again"
                ) from None
            return cls.from_text((home / "board.txt").read_text(encoding="ascii"), device, os.fspath(path))

    @classmethod
    def from_text(cls, text: str, device: str, name: str) -> GateMate:
        """Return the FPGA of gmunpack's text, which was made of the file `name`.

        Raises:
            ReadbackError: it is for another FPGA, or sets something that has no name.
        """
        chip, into = cls(device), dict[str, int]()
        content: bytearray | None = None
        for line in text.splitlines():
            section, word = _SECTION.fullmatch(line), _WORD.fullmatch(line)
            if line.startswith(".device "):
                if line.split()[1] != device:
                    raise ReadbackError(f"bitstream {name!r} is for a {line.split()[1]}, not for a {device}")
            elif section is not None:
                kind, die, *at = section.groups()
                place = int(at[0] or 0), int(at[1] or 0)
                if die != "0":
                    raise ReadbackError(f"bitstream {name!r} configures a second die; fpgaprune decodes one")
                content = chip.memories.setdefault(place, bytearray()) if kind == "bram_init" else None
                into = {"config": chip.whole, "tile": chip.blocks[place], "bram": chip.rams[place]}.get(kind, {})
            elif content is not None:
                content += bytes(byte >> bit & 1 for byte in bytes.fromhex(line) for bit in range(8))
            elif word is not None and not word[1].startswith("UNKNOWN"):
                into[word[1]] = int(word[2], 2)
            elif line:
                raise ReadbackError(f"bitstream {name!r} sets {line!r}, which has no name; fpgaprune does not decode it")
        return chip

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

    def wiring(self) -> Wiring:
        """Return which wire drives which, by the settings as they are now."""
        return Wiring(self)


class Wiring:
    """The ways that the settings of a chip make."""

    def __init__(self, chip: GateMate) -> None:
        self._chip, self._db = chip, chip.db
        self._before: dict[Wire, tuple[Wire, bool] | None] = {}
        self._driven: dict[Wire, bool] = {}

    def before(self, wire: Wire) -> tuple[Wire, bool] | None:
        """Return the wire that leads to a wire, and whether it is inverted on the way; None if none does.

        Raises:
            ReadbackError: several wires lead there.
        """
        if wire not in self._before:
            self._before[wire] = self._found(wire)
        return self._before[wire]

    def _found(self, wire: Wire) -> tuple[Wire, bool] | None:
        found = []
        for tile, number in self._db.node(wire):
            for way in self._ways(tile, number):
                source = Wire(tile, way.source)
                # At the edges, and of the ways that no setting makes, most begin at wires that lead nowhere.
                if self._chip.is_made(tile, way) and (way.setting or self._is_driven(source)):
                    found.append((source, way.inverts))
        if len(found) > 1:
            raise ReadbackError(
                f"the bitstream connects {len(found)} sources to {self._db.name(wire)} at {self._db.place(wire.tile)}; "
                "wanted one"
            )
        return found[0] if found else None

    def _is_driven(self, wire: Wire) -> bool:
        """Return whether a cell or a way can drive a wire."""
        if wire not in self._driven:
            self._driven[wire] = any(
                number in self._db.type_of(tile).outputs
                or any(way.setting or self._is_driven(Wire(tile, way.source)) for way in self._ways(tile, number))
                for tile, number in self._db.node(wire)
            )
        return self._driven[wire]

    def _ways(self, tile: int, number: int) -> Sequence[Way]:
        return self._db.type_of(tile).ways.get(number, ())
