"""`Pins`: the pins of a package, as a bitstream of an ECP5 sets them."""

from __future__ import annotations

from collections.abc import Iterable

from fpgaprune.errors import ReadbackError
from fpgaprune.readback.ecp5.chip import Ecp5
from fpgaprune.readback.ecp5.database import Wire

# What leads past the registers of an output, and drives it to both levels.
_PLAIN = {
    "DATAMUX_ODDR": "PADDO",
    "DATAMUX_OREG": "PADDO",
    "DATAMUX_MDDR": "PADDO",
    "TRIMUX_TSREG": "PADDT",
    "OPENDRAIN": "OFF",
}


class Pins:
    """Pins by the names of a package.

    Args:
        chip: the configured FPGA.
        package: as Trellis names it, `CABGA381`.
        inputs: pins that the design reads.
    """

    def __init__(self, chip: Ecp5, package: str, inputs: Iterable[str]) -> None:
        self._chip, self._package = chip, package
        self._inputs = {self._wire(pin, "JPADDI"): pin for pin in inputs}

    def is_input(self, wire: Wire) -> bool:
        """Return whether a wire comes from one of the design's inputs."""
        return wire in self._inputs

    def input(self, wire: Wire) -> str:
        """Return the pin that drives a wire.

        Raises:
            ReadbackError: it is none of the design's inputs, or not configured as an input.
        """
        if wire not in self._inputs:
            raise ReadbackError(f"the output depends on {wire.place}, which is no pin of the design")
        self._require(self._inputs[wire], "input", "INPUT")
        return self._inputs[wire]

    def driven_by(self, pin: str) -> tuple[Wire, Wire]:
        """Return the wire that an output pin shows, and that which must be 0 for it to drive.

        Raises:
            ReadbackError: the pin is not configured as an output.
        """
        # It must be 0 for a pin that may be switched off, too.
        self._require(pin, "output", "OUTPUT", "BIDIR")
        for name, wanted in _PLAIN.items():
            found = self._values(pin, name)
            if found and wanted not in found:
                raise ReadbackError(f"pin {pin} has {name} {' or '.join(sorted(found))}; fpgaprune decodes {wanted}")
        return self._wire(pin, "PADDO"), self._wire(pin, "PADDT")

    def _wire(self, pin: str, port: str) -> Wire:
        row, col, letter = self._chip.db.pin(self._package, pin)
        return Wire(row, col, f"{port}{letter}_PIO")

    def _require(self, pin: str, way: str, *kinds: str) -> None:
        found = self._values(pin, "BASE_TYPE")
        if not found or any(not value.startswith(kinds) for value in found):
            raise ReadbackError(f"pin {pin} is no plain {way} in the bitstream")

    def _values(self, pin: str, setting: str) -> set[str]:
        """Return what a setting of a pin may be; none if its buffer has no such setting."""
        row, col, letter = self._chip.db.pin(self._package, pin)
        # The bits of a buffer stand in its own tile, below it and beside it.
        places = [(row + down, col + right) for down in range(3) for right in range(2)]
        tiles = [tile for place in places for tile in self._chip.db.at.get(place, ())]
        return self._chip.values(tiles, f"PIO{letter}.{setting}", own=True)
