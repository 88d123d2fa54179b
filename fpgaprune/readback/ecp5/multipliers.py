"""`Multipliers`: the multipliers of an ECP5, by their bits; `multiply` makes parts of one, also for synthesis."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from fpgaprune.errors import ReadbackError
from fpgaprune.readback.ecp5.blocks import Clocked, Value
from fpgaprune.readback.ecp5.chip import Ecp5
from fpgaprune.readback.ecp5.database import Wire
from fpgaprune.readback.netlist import ONE, ZERO
from fpgaprune.readback.parts import INVERSE, Parts, Wires

# Where a multiplier may have registers, in the order of its data.
STAGES = ("INPUTA", "INPUTB", "PIPELINE", "OUTPUT")
_FACTOR = 18


def multiply(parts: Parts, registered: Collection[str], wire: Wires, place: str) -> list[int]:
    """Make the parts of a product of 18 x 18 bits; return its 36 nets.

    Args:
        parts: gets the parts.
        registered: which of `STAGES` have registers, always enabled and never reset.
        wire: gives the net of a bit of a port of `MULT18X18D`.
        place: of the multiplier.

    Raises:
        ReadbackError: it takes its factors from the one beside it, or its signs are wires.
    """

    def refused(what: str) -> ReadbackError:
        return ReadbackError(f"the multiplier at {place} {what}; fpgaprune does not decode that")

    def held(nets: Sequence[int], stage: str) -> list[int]:
        """Put registers, which begin at 0, behind `nets`; one that takes 0 stays at it."""
        if stage not in registered:
            return list(nets)
        return [net and parts.register(net, ONE, ZERO, 0, f"{place}/{stage}{at}") for at, net in enumerate(nets)]

    if any(wire(port, 0) != ZERO for port in ("SOURCEA", "SOURCEB")):
        raise refused("takes factors of another one")
    signs = [wire(f"SIGNED{letter}", 0) for letter in "AB"]
    if any(sign not in (ZERO, ONE) for sign in signs):
        raise refused("takes its signs from wires")
    a, b = (held([wire(letter, at) for at in range(_FACTOR)], f"INPUT{letter}") for letter in "AB")
    product = parts.product(a, b, signs[0], signs[1], place)
    return held(held(product, "PIPELINE"), "OUTPUT")


class Multipliers:
    """The multipliers of a chip, each by row and column of its tile."""

    def __init__(self, chip: Ecp5) -> None:
        self._chip = chip

    def read(self, parts: Parts, row: int, col: int, value: Value, clocked: Clocked) -> list[int]:
        """Make the parts of a multiplier; result as for `multiply`.

        Raises:
            ReadbackError: it is off, or set in a way that fpgaprune does not decode.
        """
        tiles, column = self._chip.block(row, col, "MIB_DSP")
        name, place = f"MULT18_{column}", f"X{col}/Y{row}/MULT18_{column}"

        def setting(what: str) -> str:
            return self._chip.only(tiles, f"{name}.{what}", place)

        def wire(port: str, at: int) -> int:
            numbered = f"{port}{at}" if port in ("A", "B") else port
            return value(Wire(row, col, f"J{numbered}_MULT18"))

        def control(port: str) -> int:
            net = wire(port, 0)
            return parts.table(INVERSE, (net,), f"{place}/{port}") if setting(f"{port}MUX") == "INV" else net

        if (setting("MODE"), setting("SOURCEB_MODE")) != ("MULT18X18D", "B_SHIFT"):
            raise ReadbackError(f"the multiplier at {place} is off or of another kind; fpgaprune does not decode that")
        registered = set()
        for stage in STAGES:
            clock = setting(f"REG_{stage}_CLK")
            if clock == "NONE" or not clocked(
                Wire(row, col, f"J{clock}_MULT18"), setting(f"{clock}MUX") == "INV", place
            ):
                continue
            # Trellis knows no bits that choose these behind the product: they are those of the clock's number.
            enable, reset = (
                setting(f"REG_{stage}_{kind}") if stage != "OUTPUT" else clock.replace("CLK", kind)
                for kind in ("CE", "RST")
            )
            if control(enable) != ONE or control(reset) != ZERO:
                raise ReadbackError(
                    f"the multiplier at {place} has registers that are enabled or reset; fpgaprune does not decode that"
                )
            registered.add(stage)
        return multiply(parts, registered, wire, place)
