"""`Pins`: the pins of a package and the global clocks behind them, as a bitstream of a GateMate sets them."""

from __future__ import annotations

from collections.abc import Iterable

from fpgaprune.errors import ReadbackError
from fpgaprune.readback.gatemate.chip import GateMate
from fpgaprune.readback.gatemate.database import Wire

# In the order of nextpnr's numbers.
_BANKS = ("N1", "N2", "E1", "E2", "W1", "W2", "S1", "S2", "CFG")
# Settings that change voltages and delays, not what a pin says.
_ANALOGUE = ("SLEW", "DRIVE", "PULLUP", "PULLDOWN", "SCHMITT_TRIGGER", "DELAY_IBF", "DELAY_OBF")
_FEEDS = "GLBOUT.GLB"


class Pins:
    """Pins by the names of a package.

    Args:
        chip: the configured FPGA.
        package: as the package is called, `324`.
        inputs: pins that the design reads.
    """

    def __init__(self, chip: GateMate, package: str, inputs: Iterable[str]) -> None:
        self._chip, self._db, self._package = chip, chip.db, package
        self._inputs = {self._db.pin(package, pin).tile: pin for pin in inputs}

    def input(self, wire: Wire) -> str:
        """Return the pin that drives a wire.

        Raises:
            ReadbackError: it is none of the design's inputs, or not configured as an input.
        """
        pin = self._inputs.get(wire.tile)
        if pin is None:
            raise ReadbackError(
                f"the output depends on the pin at {self._db.place(wire.tile)}, which is no pin of the design"
            )
        held = "IN1_FF" if self._db.name(wire) == "IOSEL.IN1" else "IN2_FF"
        if not self._of(pin, "INPUT_ENABLE") or self._of(pin, held) or self._others(pin, "INPUT_ENABLE"):
            raise ReadbackError(f"pin {pin} is no plain input in the bitstream")
        return pin

    def driven_by(self, pin: str) -> Wire:
        """Return the wire that an output pin shows.

        Raises:
            ReadbackError: the pin is not configured as an output that always drives.
        """
        ways = ("OUT_SIGNAL", "OE_ENABLE", "OUT1_4", "OUT2_3", "OUT23_14_SEL")
        if not self._of(pin, "OUT_SIGNAL") or not self._of(pin, "OE_ENABLE") or self._others(pin, *ways):
            raise ReadbackError(f"pin {pin} is no plain output in the bitstream")
        if self._of(pin, "OUT23_14_SEL"):
            name = "OUT3" if self._of(pin, "OUT2_3") else "OUT2"
        else:
            name = "OUT4" if self._of(pin, "OUT1_4") else "OUT1"
        found = self._db.named(self._db.pin(self._package, pin).tile, f"IOSEL.{name}")
        if found is None:
            raise ReadbackError(f"pin {pin} has no wire {name}")
        return found

    def before_global(self, wire: Wire) -> tuple[Wire, bool]:
        """Return the wire that a global clock takes, and whether it is inverted on the way.

        Raises:
            ReadbackError: it takes another than one of the clock pins, or is off.
        """
        number, whole = self._db.name(wire).removeprefix(_FEEDS), self._chip.whole
        wanted = {f"GLBOUT.GLB{number}_EN": 1, f"GLBOUT.USR_GLB{number}_EN": 0, f"GLBOUT.GLB{number}_CFG": 0}
        wanted[f"PLL{number}.USR_CLK_OUT"] = 0
        for name, value in wanted.items():
            if whole.get(name, 0) != value:
                raise ReadbackError(
                    f"the global clock {number} has {name} {whole.get(name, 0)}; fpgaprune decodes {value}"
                )
        taken = whole.get(f"CLKIN.REF{number}", 0)
        found = self._db.named(wire.tile, f"CLKIN.CLK{taken}")
        if found is None:
            raise ReadbackError(f"the global clock {number} comes from no pin; fpgaprune does not decode that")
        return found, bool(whole.get(f"CLKIN.REF{number}_INV", 0))

    def _of(self, pin: str, name: str) -> int:
        return self._chip.settings(self._db.pin(self._package, pin).tile).get(f"GPIO.{name}", 0)

    def _others(self, pin: str, *known: str) -> bool:
        """Return whether settings beside those `known` are on, or the pin's bank is off."""
        pad = self._db.pin(self._package, pin)
        names = {f"GPIO.{name}" for name in (*known, *_ANALOGUE)}
        given = self._chip.settings(pad.tile)
        strange = [name for name, value in given.items() if value and name.startswith("GPIO.") and name not in names]
        return bool(strange) or not self._chip.whole.get(f"GPIO.BANK_{_BANKS[pad.bank]}", 0)
