"""`Blocks`: the block memories of a Gowin FPGA by their fuses, and their contents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from fpgaprune.errors import ReadbackError
from fpgaprune.readback.gowin.chip import Chip, Wire, apycula, database

Fuses = frozenset[tuple[int, int, int]]  # tile of the three, row, column
# The types of Apycula's tables; the fuses are the same in each, and mean the same.
_TYPES = ("SP", "SDP", "DP")
# Words of 18 bits: two bytes of 9.
WORDS = 1024
_QUARTER = {0: 0x00, 1: 0x80, 2: 0x40, 3: 0xC0}
_WRITES = {"": 0, "WT": 1, "RBW": 2}


@dataclass(frozen=True, slots=True)
class PortFuses:
    """Settings of a port of a memory block.

    Attributes:
        width: bits read or written at once: 1, 2, 4, 9, 18 or 36.
        registered: whether a register follows the output.
        mode: while it writes, a port keeps its output (0), shows what is written (1), or what was there (2).
        selected: for each of three wires, the constant at which the port works.
        inverted: which of CLK, CE, WRE, OCE and RESET are inverted.
    """

    width: int
    registered: bool
    mode: int
    selected: tuple[int, int, int]
    inverted: frozenset[str]


@lru_cache(maxsize=8)
def _table(device: str, tiles: tuple[int, int, int]) -> Mapping[tuple[str, str], Fuses]:
    """Map attribute and value to its fuses in the three tiles of a memory."""
    db, attributes = database(device), apycula("attrids")
    names = {code: name for name, code in attributes.bsram_attrids.items()}
    values = {code: name for name, code in attributes.bsram_attrvals.items()}
    meaning = db.rev_logicinfo("BSRAM")
    found: dict[tuple[str, str], Fuses] = {}
    for kind in _TYPES:
        for number, tile in enumerate(tiles):
            for codes, fuses in db.shortval[tile].get(f"BSRAM_{kind}", {}).items():
                (code,) = [code for code in codes if code]
                attribute, value = meaning[code]
                name = names.get(attribute, "?")
                # A and B with the type before them: SDPA_MODE.
                for prefix in _TYPES:
                    name = name.removeprefix(prefix) if name.startswith((f"{prefix}A_", f"{prefix}B_")) else name
                key = name, values.get(value, "?")
                found[key] = found.get(key, frozenset()) | {(number, *fuse) for fuse in fuses}
    return found


class Blocks:
    """The block memories of a chip, each named by row and column of the first of its three tiles."""

    def __init__(self, chip: Chip) -> None:
        self._chip = chip
        self._outputs: dict[tuple[int, int], dict[Wire, int]] = {}

    def output(self, wire: Wire) -> tuple[int, int, int] | None:
        """Return row and column of the memory that drives a wire, and which of its 36 outputs: 18 of A, 18 of B."""
        for col in range(wire.col, max(wire.col - 3, -1), -1):
            bels = self._chip.db[wire.row, col].bels
            if "BSRAM" in bels:
                if (wire.row, col) not in self._outputs:
                    self._outputs[wire.row, col] = {
                        name: 18 * (port == "B") + bit
                        for port in "AB"
                        for bit in range(18)
                        for name in self._chip.joined(self.wire(wire.row, col, f"DO{port}{bit}"))
                    }
                number = self._outputs[wire.row, col].get(wire)
                return None if number is None else (wire.row, col, number)
            if "BSRAM_AUX" not in bels:
                return None
        return None

    def wire(self, row: int, col: int, port: str) -> Wire:
        """Return the wire of a memory's port, as `ADA3`."""
        return Wire(row, col, self._chip.db[row, col].bels["BSRAM"].portmap[port])

    def port(self, row: int, col: int, port: str) -> PortFuses:
        """Return how port `A` or `B` is set.

        Raises:
            ReadbackError: the memory is off, or its fuses are none that fpgaprune decodes.
        """
        where = f"the block memory at R{row + 1}C{col + 1}"
        chip = self._chip
        tiles = tuple(chip.db[row, col + number].ttyp for number in range(3))
        table = _table(chip.device, (tiles[0], tiles[1], tiles[2]))
        known = frozenset().union(*table.values())
        used = {fuse for fuse in known if chip.is_set(row, col + fuse[0], fuse[1:])}

        def is_set(attribute: str, value: str) -> bool:
            fuses = table.get((attribute, value), frozenset())
            return bool(fuses) and fuses <= used

        if not is_set("MODE", "ENABLE"):
            raise ReadbackError(f"{where} is switched off in the bitstream, and the output depends on it")
        for attribute in ("CLKMUX_CLKA", "CLKMUX_CLKB"):
            if is_set(attribute, "INV"):
                raise ReadbackError(f"{where} works at the falling edge; fpgaprune does not decode that")
        for edge in (f"{port}_BEHB", f"{port}_BELB"):
            if is_set(edge, "INV"):
                raise ReadbackError(f"{where} has inverted byte enables; fpgaprune does not decode that")
        widths = {name: table.get((f"{port}_DATA_WIDTH", name), frozenset()) for name in ("1", "2", "4", "9")}
        mine = frozenset().union(*widths.values())
        found = next((int(name) for name, fuses in widths.items() if fuses and fuses == used & mine), 0)
        if not found and used & mine:
            raise ReadbackError(f"{where} has a width at port {port} that fpgaprune does not decode")
        double = is_set(f"DBLW{port}", "X36")
        if double and found:
            raise ReadbackError(f"{where} has two widths at port {port}")
        mode = next((name for name in ("WT", "RBW") if is_set(f"{port}_MODE", name)), "")
        inverted = {
            "CE": f"CEMUX_CE{port}",
            "WRE": f"WEMUX_WE{port}",
            "OCE": f"OUTREG_CE{port}",
            "RESET": f"REGSET_RST{port}",
        }
        selected = [0 if is_set(f"CS{port}_{number}", "SET") else 1 for number in range(3)]
        return PortFuses(
            36 if double else found or 18,
            is_set(f"{port}_REGMODE", "OUTREG"),
            _WRITES[mode],
            (selected[0], selected[1], selected[2]),
            frozenset(name for name, attribute in inverted.items() if is_set(attribute, "INV")),
        )

    def content(self, row: int, col: int) -> bytes:
        """Return the bits of a memory after configuration, word by word of 18, each 0 or 1."""
        chip = self._chip
        if len(chip.rows) == chip.db.height:
            return bytes(18 * WORDS)
        top = chip.db.height + 256 * sorted(chip.db.simplio_rows).index(row)
        left = chip.origin_of(row, col)[1]
        columns = chip.db.rev_logicinfo("BSRAM_INIT")
        found = bytearray()
        for word in range(WORDS):
            line = chip.rows[top + 255 - (_QUARTER[word & 3] + (word >> 2 & 63))]
            found += bytes(line[left + columns[4 * bit + (word >> 8)][0] - 1] for bit in range(18))
        return bytes(found)
