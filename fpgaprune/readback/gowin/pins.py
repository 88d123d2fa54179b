"""`Pins`: the buffers at the pins of a package that a bitstream uses."""

from __future__ import annotations

import re
from collections.abc import Iterable

from fpgaprune.errors import ReadbackError
from fpgaprune.readback.gowin.chip import CONSTANTS, Chip, Wire, apycula

_SITE = re.compile(r"IO([TBLR])(\d+)([AB])")


class Pins:
    """Pins by the numbers of a package.

    Args:
        chip: the configured FPGA.
        variant: as Apycula names the FPGA in its package, `GW1NR-9C`.
        package: as Apycula names the package, `QFN88P`.
        inputs: pins that the design reads.
    """

    def __init__(self, chip: Chip, variant: str, package: str, inputs: Iterable[str]) -> None:
        self._chip = chip
        self._sites = chip.db.pinout[variant][package]
        self._inputs = tuple(inputs)
        self._wires = [self._buffer(pin)[0] for pin in self._inputs]
        self._places = {name: at for at, wire in enumerate(self._wires) for name in chip.joined(wire)}

    def is_input(self, wire: Wire) -> bool:
        """Return whether an input pin drives the wire.

        Raises:
            ReadbackError: the pin is not configured as an input.
        """
        at = self._places.get(wire)
        if at is not None and "PADDI" not in self._buffer(self._inputs[at])[1]:
            raise ReadbackError(f"pin {self._inputs[at]} is no input in the bitstream")
        return at is not None

    def number(self, wire: Wire) -> int:
        """Return which input pin drives the wire."""
        return self._places[wire]

    def name(self, number: int) -> str:
        """Return the name of the pin with this number."""
        return self._inputs[number]

    def driven_by(self, pin: str) -> Wire:
        """Return the wire that an output pin shows.

        Raises:
            ReadbackError: the pin is not configured as an output that always drives.
        """
        _, attributes, row, col, letter = self._buffer(pin)
        values = apycula("attrids").iob_num2val
        if values.get(attributes.get("ODMUX_1")) != "1":
            raise ReadbackError(f"pin {pin} is no output in the bitstream")
        ports = self._chip.db[row, col].bels[f"IOB{letter}"].portmap
        if "BOTTOM_IO_PORT_A" in ports:
            # At the lower edge an output also needs two wires at constants.
            first, second, normal = self._chip.db.bottom_io
            found = tuple(self._chip.source(Wire(row, col, name))[0].name for name in (first, second))
            if found != tuple(normal[0]):
                raise ReadbackError(f"the buffer of pin {pin} is set to {found}; fpgaprune does not decode that")
        wire = Wire(row, col, ports["I"])
        if self._chip.source(wire)[0].name in CONSTANTS:
            raise ReadbackError(f"pin {pin} shows a constant")
        return wire

    def _buffer(self, pin: str) -> tuple[Wire, dict[str, int], int, int, str]:
        chip, (site, _) = self._chip, self._sites[pin]
        found = _SITE.fullmatch(site)
        if found is None:
            raise ReadbackError(f"pin {pin} is at {site!r}; wanted a place such as IOR17A")
        side, number, letter = found.groups()
        row = {"T": 0, "B": chip.db.rows - 1}.get(side, int(number) - 1)
        col = {"L": 0, "R": chip.db.cols - 1}.get(side, int(number) - 1)
        tile, bel = chip.db[row, col], chip.db[row, col].bels[f"IOB{letter}"]
        fuses = chip.db.longval[tile.ttyp][f"IOB{letter}"]
        meaning = chip.db.rev_logicinfo("IOB")
        read = apycula("gowin_unpack").parse_attrvals
        attributes = read(chip.tile(row, col), meaning, fuses, apycula("attrids").iob_attrids, "IOB")
        return Wire(row, col, bel.portmap["O"]), attributes, row, col, letter
