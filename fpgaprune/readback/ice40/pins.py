"""`Pins`: the pins of a package, the global nets and the PLL behind them, as a bitstream of an iCE40 sets them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction

from fpgaprune.errors import ReadbackError
from fpgaprune.fabric import filter_range
from fpgaprune.readback.ice40.chip import Ice40, Wiring
from fpgaprune.readback.ice40.database import Place
from fpgaprune.readback.netlist import ONE, ZERO

_PLAIN_INPUT, _PLAIN_OUTPUT = 0b01, 0b0110
# Of a PLL: its input is the pin, its output is fed back, and no part of it delays or shifts.
_PLL_AT_A_PIN, _FED_BACK = 2, 1
# Tiles whose wires to the outside bypass the PLL of an UltraPlus, and let it run; and what they must be.
_CONTROLS = {(15, 31): ZERO, (16, 31): ONE}


class Pins:
    """Pins by the numbers of a package.

    Args:
        chip: the configured FPGA.
        package: as nextpnr names it, `sg48`.
        inputs: pins that the design reads.
        oscillator_mhz: frequency at the pin of the clock.
    """

    def __init__(self, chip: Ice40, package: str, inputs: Iterable[str], oscillator_mhz: float) -> None:
        self._chip, self._package, self._oscillator_mhz = chip, package, oscillator_mhz
        self._inputs = {self._wire(self._place(pin), "D_IN_0"): pin for pin in inputs}
        self._plls = {place: chip.settings(place, kind, "PLL") for place, kind in chip.db.with_settings("pll")}

    def input(self, wire: int) -> str:
        """Return the pin that drives a wire.

        Raises:
            ReadbackError: it is none of the design's inputs, or not configured as an input.
        """
        name = self._chip.db.name(wire)
        if wire not in self._inputs:
            raise ReadbackError(f"the output depends on {name}, which is no pin of the design")
        pin = self._inputs[wire]
        place = self._place(pin)
        enable = self._chip.db.input_enables.get(place, place)
        is_on = self._chip.is_on(enable.x, enable.y, f"IoCtrl.IE_{enable.z}")
        plain = self._kind(place) & 3 == _PLAIN_INPUT and is_on
        if not plain or self._pll_before(wire) is not None:
            raise ReadbackError(f"pin {pin} is no plain input in the bitstream")
        return pin

    def driven_by(self, pin: str) -> int:
        """Return the wire that an output pin shows.

        Raises:
            ReadbackError: the pin is not configured as an output that always drives.
        """
        place = self._place(pin)
        if self._kind(place) >> 2 != _PLAIN_OUTPUT:
            raise ReadbackError(f"pin {pin} is no plain output in the bitstream")
        return self._wire(place, "D_OUT_0")

    def before_global(self, wire: int, wiring: Wiring) -> int:
        """Return the wire that a global net takes: that of its pin, or one that the design leads to its buffer.

        Any other wire stands for itself.
        """
        db, drivers = self._chip.db, self._chip.db.drivers(wire)
        if "/glb_netwk_" not in db.name(wire):
            return wire
        taken = "io" if int(db.name(wire).rpartition("_")[2]) in self._chip.globals_of_pins else "gb"
        places = [place for kind, place in drivers if kind.startswith(taken)]
        if len(places) != 1:
            raise ReadbackError(f"the source of {db.name(wire)} is none that fpgaprune decodes")
        ((x, y, _),) = places
        return self._wire(places[0], "D_IN_0") if taken == "io" else wiring.source(db.wire(x, y, "fabout"))

    def clock(self, wire: int, wiring: Wiring, where: str) -> tuple[str, Fraction, Mapping[int, int]]:
        """Return the pin of a clock, how many times as fast as there it is, and what certain wires must be for that.

        Args:
            wire: where the way to the clock of `where` begins.
            wiring: of the chip.
            where: a cell, for messages.

        Raises:
            ReadbackError: it comes from no pin, nor from a PLL at one.
        """
        db, origin = self._chip.db, self.before_global(wire, wiring)
        pin = self._inputs.get(origin)
        if pin is None:
            raise ReadbackError(
                f"the clock of {where} comes from {db.name(origin)}; fpgaprune decodes a pin, or a PLL at one"
            )
        pll = self._pll_before(origin)
        if pll is not None:
            return pin, self.pll_ratio(pll), {db.wire(*tile, "fabout"): value for tile, value in _CONTROLS.items()}
        return self.input(origin), Fraction(1), {}

    def _pll_before(self, wire: int) -> Place | None:
        """Return the place of the PLL that drives a wire, past the pin; None if none does."""
        found = (place for kind, place in self._chip.db.drivers(wire) if kind.startswith("pll"))
        return next((place for place in found if self._plls[place]["PLLTYPE"]), None)

    def pll_ratio(self, pll: Place) -> Fraction:
        """Return the frequency of a PLL's clock over that at its pin.

        Raises:
            ReadbackError: its bits are not those of plain dividers: a bypass, another feedback, a shifted clock.
        """
        if self._chip.device != "5k":
            raise ReadbackError("the clock comes from a PLL; fpgaprune decodes that of an iCE40 UltraPlus only")
        found = dict(self._plls[pll])
        divide, multiply, output = found.pop("DIVR", 0) + 1, found.pop("DIVF", 0) + 1, 1 << found.pop("DIVQ", 0)
        wanted = {
            "PLLTYPE": _PLL_AT_A_PIN,
            "FEEDBACK_PATH": _FED_BACK,
            "FILTER_RANGE": filter_range(self._oscillator_mhz / divide),
        }
        if {name: value for name, value in found.items() if value} != wanted:
            raise ReadbackError(
                f"the PLL divides by {divide} and {output}, multiplies by {multiply} and is set to "
                f"{', '.join(f'{name} {value}' for name, value in found.items() if value)}; fpgaprune decodes "
                f"{', '.join(f'{name} {value}' for name, value in wanted.items())}"
            )
        return Fraction(multiply, divide * output)

    def _place(self, pin: str) -> Place:
        return self._chip.db.pin(self._package, pin)

    def _wire(self, place: Place, port: str) -> int:
        return self._chip.db.wire(place.x, place.y, f"io_{place.z}:{port}")

    def _kind(self, place: Place) -> int:
        bits = (self._chip.entry(place.x, place.y, f"IOB_{place.z}.PINTYPE_{bit}") for bit in range(6))
        return sum(value << bit for bit, value in enumerate(bits))
