"""`Plls`: the PLLs of an ECP5, by their bits."""

from __future__ import annotations

from fractions import Fraction

from fpgaprune.errors import ReadbackError
from fpgaprune.readback.ecp5.chip import Ecp5
from fpgaprune.readback.ecp5.database import Tile, Wire

# Nothing gates, resets or shifts the output.
_SETTINGS = {
    "MODE": "EHXPLLL",
    "CLKOP_ENABLE": "ENABLED",
    "OUTDIVIDER_MUXA": "DIVA",
    "PLLRST_ENA": "DISABLED",
    "STDBY_ENABLE": "DISABLED",
    "DPHASE_SOURCE": "DISABLED",
    "SYNC_ENABLE": "DISABLED",
    "REFIN_RESET": "DISABLED",
}
# Its oscillator, by the data sheet.
_OSCILLATOR_MHZ = (400, 800)


class Plls:
    """The PLLs of a chip, each by row and column.

    Args:
        chip: the configured FPGA.
        oscillator_mhz: frequency at the pin of the clock.
    """

    def __init__(self, chip: Ecp5, oscillator_mhz: float) -> None:
        self._chip, self._oscillator_mhz = chip, oscillator_mhz

    def input(self, row: int, col: int) -> Wire:
        """Return the wire of a PLL's reference."""
        return Wire(row, col, "CLKI_PLL")

    def feedback(self, row: int, col: int) -> Wire:
        """Return the wire of what a PLL compares with its reference; its own output, else the ratio is another."""
        return Wire(row, col, "CLKFB_PLL")

    def ratio(self, row: int, col: int) -> Fraction:
        """Return the frequency of the output of a PLL, which feeds itself back, over that of its reference.

        Raises:
            ReadbackError: it is set in a way that fpgaprune does not decode.
        """
        tiles = [
            tile
            for near_row in range(row - 1, row + 2)
            for near_col in range(col - 1, col + 2)
            for tile in self._chip.db.at.get((near_row, near_col), ())
            if tile.kind.startswith(("PLL", "BANKREF"))
        ]
        for name, wanted in _SETTINGS.items():
            found = self._chip.values(tiles, name, own=True)
            if wanted not in found:
                was = " or ".join(sorted(found)) or "of unknown bits"
                raise ReadbackError(f"the PLL at X{col}/Y{row} has {name} {was}; fpgaprune decodes {wanted}")
        divide, multiply, output = (self._divider(tiles, name) for name in ("CLKI_DIV", "CLKFB_DIV", "CLKOP_DIV"))
        ratio = Fraction(multiply, divide)
        inside, (low, high) = float(ratio) * output * self._oscillator_mhz, _OSCILLATOR_MHZ
        if not low <= inside <= high:
            raise ReadbackError(
                f"the oscillator of the PLL at X{col}/Y{row} runs at {inside:g} MHz; wanted {low} to {high}"
            )
        return ratio

    def _divider(self, tiles: list[Tile], name: str) -> int:
        return self._chip.word(tiles, name) + 1
