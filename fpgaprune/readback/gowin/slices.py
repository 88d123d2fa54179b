"""`Slices`: the tables, carry chains, registers and small memories of Gowin's logic tiles, by their fuses."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from fpgaprune.errors import ReadbackError
from fpgaprune.readback.gowin.chip import Chip, apycula, database

# What each field of half a slice is called in Apycula's table, and how it is set.
_FIELDS = {
    "no_reset": {("LSRONMUX", "LSRMUX", False)},
    "carry": {("MODE", "ALU", True)},
    "falling": {("REGMODE", "FF", True), ("CLKMUX_CLK", "INV", True)},
    "latch": {("REGMODE", "LATCH", True)},
    "at_once": {("SRMODE", "ASYNC", True)},
    "no_global_reset": {("GSR", "DISGSR", True)},
    "enable_inverted": {("CEMUX_CE", "INV", True)},
    "reset_inverted": {("LSR_MUX_LSR", "INV", True)},
    "past0": {("REG0_SD", "SIG", True)},
    "past1": {("REG1_SD", "SIG", True)},
    "zero0": {("REG0_SD", "0", True)},
    "zero1": {("REG1_SD", "0", True)},
    "starts0_at_0": {("REG0_REGSET", "RESET", True)},
    "starts1_at_0": {("REG1_REGSET", "RESET", True)},
}


@dataclass(frozen=True, slots=True)
class RegisterFuses:
    """How a register is set: its start value, and which of its inputs are inverted or used at all."""

    start: int
    reset_used: bool
    reset_inverted: bool
    enable_inverted: bool


@lru_cache(maxsize=64)
def _fields(device: str, tile_type: int, half: int) -> dict[str, frozenset[tuple[int, int]]]:
    """Map field to its fuses in a type of tile."""
    db, attributes = database(device), apycula("attrids")
    names = {code: name for name, code in attributes.cls_attrids.items()}
    values = {code: name for name, code in attributes.cls_attrvals.items()}
    meaning, fuses_of = db.rev_logicinfo("SLICE"), db.shortval[tile_type][f"CLS{half}"]
    found: dict[frozenset[tuple[str, str, bool]], frozenset[tuple[int, int]]] = {}
    for codes, fuses in fuses_of.items():
        said = set()
        for code in codes:
            if code:
                attribute, value = meaning[abs(code)]
                said.add((names.get(attribute, "?"), values.get(value, "?"), code > 0))
        found[frozenset(said)] = frozenset(fuses)
    return {field: found[frozenset(said)] for field, said in _FIELDS.items() if frozenset(said) in found}


class Slices:
    """The logic tiles of a chip; `n` counts the tables and registers of a tile."""

    def __init__(self, chip: Chip) -> None:
        self._chip = chip

    def has_tables(self, row: int, col: int) -> bool:
        """Return whether the tile is one of logic."""
        return "LUT0" in self._chip.db[row, col].bels

    def table(self, row: int, col: int, n: int) -> int:
        """Return the sixteen bits of a table: a fuse that is set makes a 0."""
        flags = self._chip.db[row, col].bels[f"LUT{n}"].flags
        bits = (bit for bit, fuses in flags.items() if not self._chip.set_of(row, col, fuses))
        return sum(1 << bit for bit in bits)

    def is_carry(self, row: int, col: int, n: int) -> bool:
        """Return whether the table is one of a carry chain.

        Raises:
            ReadbackError: only some fuses of that mode are set.
        """
        return self.has_tables(row, col) and n < 6 and self._field(row, col, n // 2, "carry")

    def is_small_memory(self, row: int, col: int) -> bool:
        """Return whether the first four tables of the tile are memories that the design writes."""
        bel = self._chip.db[row, col].bels.get("RAM16")
        return bel is not None and bool(self._chip.set_of(row, col, bel.mode_bits))

    def write_of_memory(self, row: int, col: int) -> bool:
        """Return whether a small memory is written where its wire LSR2 is 1, not where it is 0.

        Raises:
            ReadbackError: the fuses are none that fpgaprune decodes.
        """
        where = f"the small memory at R{row + 1}C{col + 1}"
        if self._field(row, col, 2, "no_reset"):
            raise ReadbackError(f"{where} has no write enable; fpgaprune does not decode that")
        if self._field(row, col, 2, "falling"):
            raise ReadbackError(f"{where} is written at the falling edge; fpgaprune does not decode that")
        return self._field(row, col, 2, "reset_inverted")

    def register(self, row: int, col: int, n: int) -> RegisterFuses:
        """Return how register `n` is set.

        Raises:
            ReadbackError: it is set in a way that fpgaprune does not decode.
        """
        where = f"the register at R{row + 1}C{col + 1}_Q{n}"
        half, which = n // 2, n % 2

        def field(name: str) -> bool:
            return self._field(row, col, half, name)

        strange = {
            "latch": "is a latch",
            "falling": "works at the falling edge",
            f"past{which}": "takes its input past the table beside it",
            f"zero{which}": "has a constant input",
            "no_global_reset": "is left out of the global reset, so that its start value is unknown",
        }
        for name, what in strange.items():
            if field(name):
                raise ReadbackError(f"{where} {what}; fpgaprune does not decode that")
        used = not field("no_reset")
        if used and field("at_once"):
            raise ReadbackError(f"{where} is reset without the clock; fpgaprune does not decode that")
        start = int(not field(f"starts{which}_at_0"))
        return RegisterFuses(start, used, field("reset_inverted"), field("enable_inverted"))

    def _field(self, row: int, col: int, half: int, name: str) -> bool:
        chip = self._chip
        fuses = _fields(chip.device, chip.db[row, col].ttyp, half).get(name, frozenset())
        used = chip.set_of(row, col, fuses)
        if used and used != fuses:
            raise ReadbackError(f"{len(used)} of {len(fuses)} fuses of {name!r} are set in R{row + 1}C{col + 1}")
        return bool(used)
