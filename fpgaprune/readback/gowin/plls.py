"""`Plls`: the PLLs of a Gowin FPGA by their fuses: how many times as fast as its input the clock of one is."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

from fpgaprune.errors import ReadbackError
from fpgaprune.readback.gowin.chip import Chip, Wire, apycula, database

# Tiles with the fuses of a PLL stand beside it, towards the middle of the FPGA.
_TILES = 3


class PllOutput(NamedTuple):
    """An output of a PLL: the tile of its wires, and `CLKOUT` or `LOCK`."""

    row: int
    col: int
    port: str

    @property
    def place(self) -> str:
        """As Apycula's own tools write it."""
        return f"R{self.row + 1}C{self.col + 1}_PLL"


@lru_cache(maxsize=4)
def _sites(device: str) -> tuple[tuple[int, int], ...]:
    db = database(device)
    return tuple((row, col) for row in range(db.rows) for col in range(db.cols) if "RPLLA" in db[row, col].bels)


class Plls:
    """The PLLs of a chip.

    Args:
        chip: the configured FPGA.
        reference_mhz: frequency that goes into them.
    """

    def __init__(self, chip: Chip, reference_mhz: float) -> None:
        self._chip, self._reference = chip, reference_mhz
        self._outputs = {
            name: PllOutput(row, col, port)
            for row, col in _sites(chip.device)
            for port in ("CLKOUT", "LOCK")
            for name in chip.joined(self._wire(row, col, port))
        }

    def output(self, wire: Wire) -> PllOutput | None:
        """Return the output of a PLL that drives a wire."""
        return self._outputs.get(wire)

    def input(self, output: PllOutput) -> Wire:
        """Return the wire of the clock that goes into the PLL."""
        return self._wire(output.row, output.col, "CLKIN")

    def ratio(self, output: PllOutput) -> Fraction:
        """Return the frequency of a PLL's clock over that of its input.

        Raises:
            ReadbackError: the PLL is reset, or its fuses are not those of plain dividers for its input: a bypass,
                another feedback, another filter.
        """
        chip, (row, col, _) = self._chip, output
        for port in ("RESET", "RESET_P"):
            if chip.source(self._wire(row, col, port))[0].name != "VSS":
                raise ReadbackError(f"the PLL at {output.place} has a {port.lower()}; fpgaprune does not decode that")
        step = 1 if 2 * col < chip.db.cols else -1
        tiles = [(row, col + step * at) for at in range(1, _TILES + 1)]
        found: dict[str, int] = {}
        for at in tiles:
            found |= self._attributes(*at)
        divide, multiply, divided = (found.get(name, 0) for name in ("IDIV", "FDIV", "ODIV"))
        wanted = self._fuses(tiles, divide, multiply, divided)
        used = [chip.set_of(*at, self._known(*at)) for at in tiles]
        if wanted != used:
            raise ReadbackError(
                f"the PLL at {output.place} divides by {divide}, multiplies by {multiply} and its fuses are not those "
                f"of such dividers of {self._reference:g} MHz; fpgaprune does not decode that"
            )
        return Fraction(multiply, divide)

    def _wire(self, row: int, col: int, port: str) -> Wire:
        return Wire(row, col, self._chip.db[row, col].bels["RPLLA"].portmap[port])

    def _table(self, row: int, col: int) -> Any:
        db = self._chip.db
        return db.shortval[db[row, col].ttyp]["PLL"]

    def _known(self, row: int, col: int) -> set[tuple[int, int]]:
        """Return every fuse of a tile that means something for its PLL."""
        return {tuple(fuse) for fuses in self._table(row, col).values() for fuse in fuses}

    def _attributes(self, row: int, col: int) -> dict[str, int]:
        read, chip = apycula("gowin_unpack").parse_attrvals, self._chip
        names, meaning = apycula("attrids").pll_attrids, chip.db.rev_logicinfo("PLL")
        values: dict[str, int] = read(chip.tile(row, col), meaning, self._table(row, col), names, "PLL")
        return values

    def _fuses(
        self, tiles: list[tuple[int, int]], divide: int, multiply: int, divided: int
    ) -> list[set[tuple[int, int]]]:
        """Return the fuses that Apycula sets for such dividers; none for those that no PLL has."""
        db, pack, chipdb = self._chip.db, apycula("gowin_pack"), apycula("chipdb")
        if not (divide and multiply and divided):
            return []
        pack.device = self._chip.device
        given = {"IDIV_SEL": f"{divide - 1:b}", "FBDIV_SEL": f"{multiply - 1:b}", "ODIV_SEL": f"{divided:b}"}
        try:
            settings = pack.set_pll_attrs(db, "RPLL", 0, {"FCLKIN": f"{self._reference:g}", **given})
        except Exception as error:  # noqa: BLE001  Apycula raises nothing more special
            raise ReadbackError(f"a PLL of the bitstream runs out of its range: {error}") from None
        return [{tuple(bit) for bit in chipdb.get_shortval_fuses(db, db[at].ttyp, settings, "PLL")} for at in tiles]
