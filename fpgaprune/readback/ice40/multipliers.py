"""`multiply`: a multiplier of an iCE40 UltraPlus with its registers, adders and accumulators, as parts of a netlist."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fpgaprune.errors import ReadbackError
from fpgaprune.readback.ice40.cells import Cells
from fpgaprune.readback.netlist import ZERO
from fpgaprune.readback.parts import CARRY, Wires

_HALF = 16
_RESETS = ("IRSTTOP", "IRSTBOT", "ORSTTOP", "ORSTBOT")
_XOR2, _XOR3, _AND_NOT = 0b0110, 0b10010110, 0b0010
# Of load, what is loaded, the sum, and the subtraction, which inverts what goes into the sum and what comes out.
_LOADED = sum(1 << at for at in range(16) if (at >> 1 if at & 1 else at >> 2 ^ at >> 3) & 1)


def multiply(cells: Cells, settings: Mapping[str, int], wire: Wires, place: str) -> list[int]:
    """Make the parts of an `SB_MAC16` of 16 x 16 bits; return the nets of its output `O`.

    Args:
        cells: gets the parts.
        settings: the parameters of `SB_MAC16`.
        wire: gives the net of a bit of one of its ports.
        place: of the multiplier.

    Raises:
        ReadbackError: it is set in a way that fpgaprune does not decode.
    """
    return _Multiplier(cells, settings, wire, place).outputs()


@dataclass(frozen=True, slots=True)
class _Side:
    """The names of one half of the output stage."""

    name: str
    letter: str  # of the input that goes past the product
    other: str  # of the input that is added or loaded


_TOP, _BOTTOM = _Side("TOP", "A", "C"), _Side("BOT", "B", "D")


class _Multiplier:
    def __init__(self, cells: Cells, settings: Mapping[str, int], wire: Wires, place: str) -> None:
        self._cells, self._wire, self._place = cells, wire, place
        self._settings = settings

    def outputs(self) -> list[int]:
        early = {self._set(name) for name in ("TOP_8x8_MULT_REG", "BOT_8x8_MULT_REG", "PIPELINE_16x16_MULT_REG1")}
        if self._set("MODE_8x8") or len(early) > 1:
            raise self._refused("makes products of 8 x 8 bits")
        a, b = self._input("A"), self._input("B")
        signs = (int(self._set("A_SIGNED") > 0), int(self._set("B_SIGNED") > 0))
        product: Sequence[int] = self._cells.product(a, b, *signs, self._place)
        # Registers of its four parts delay the product as registers behind it do.
        for name, is_there in (("F", early == {1}), ("H", self._set("PIPELINE_16x16_MULT_REG2") == 1)):
            if is_there:
                product = self._cells.registers(product, self._enable(None), f"{self._place}/{name}")
        low, high = product[:_HALF], product[_HALF:]
        kinds = self._set("BOTADDSUB_CARRYSELECT"), self._set("TOPADDSUB_CARRYSELECT")
        sums_low, sums_high = (self._set(f"{side.name}OUTPUT_SELECT") < 2 for side in (_BOTTOM, _TOP))
        if any(self._set(f"{side.name}OUTPUT_SELECT") == 2 for side in (_TOP, _BOTTOM)):
            raise self._refused("shows products of 8 x 8 bits")
        carry = ZERO
        bottom: Sequence[int] = low
        if sums_low or (sums_high and kinds[1] > 1):
            if kinds[0] == 2:
                raise self._refused("takes the carry of the one below")
            shown, carry = self._summed(_BOTTOM, low, b, self._wire("CI", 0) if kinds[0] == 3 else kinds[0])
            bottom = shown if sums_low else low
        top: Sequence[int] = high
        if sums_high:
            if kinds[1] == 3:
                carry = self._cells.table(_XOR2, (carry, self._wire("ADDSUBBOT", 0)), f"{self._place}/carry")
            top, _ = self._summed(_TOP, high, a, carry if kinds[1] > 1 else kinds[1])
        return [*bottom, *top]

    def _set(self, name: str) -> int:
        return self._settings.get(name, 0)

    def _refused(self, what: str) -> ReadbackError:
        return ReadbackError(f"the multiplier at {self._place} {what}; fpgaprune does not decode that")

    def _enable(self, hold: str | None) -> int:
        """Return the net that enables registers, which `hold` may stop."""
        if any(self._wire(name, 0) != ZERO for name in _RESETS):
            raise self._refused("has registers that are reset without the clock")
        held = ZERO if hold is None else self._wire(hold, 0)
        return self._cells.table(_AND_NOT, (self._wire("CE", 0), held), f"{self._place}/enable{hold or ''}")

    def _input(self, letter: str) -> list[int]:
        nets = [self._wire(letter, bit) for bit in range(_HALF)]
        if not self._set(f"{letter}_REG"):
            return nets
        return self._cells.registers(nets, self._enable(f"{letter}HOLD"), f"{self._place}/{letter}")

    def _summed(self, side: _Side, product: Sequence[int], past: Sequence[int], carry: int) -> tuple[list[int], int]:
        """Return what half of the output stage shows, and its carry."""
        cells, place, name = self._cells, f"{self._place}/{side.name}", side.name
        lower = self._set(f"{name}ADDSUB_LOWERINPUT")
        if lower not in (0, 2):
            raise self._refused("adds a product of 8 x 8 bits or a sign")
        subtract, load = self._wire(f"ADDSUB{name}", 0), self._wire(f"OLOAD{name}", 0)
        adds_other = self._set(f"{name}ADDSUB_UPPERINPUT") == 1
        other = self._input(side.other) if adds_other or load != ZERO else [ZERO] * _HALF
        shows_register = self._set(f"{name}OUTPUT_SELECT") == 1
        kept = [cells.net() for _ in range(_HALF)]
        shown = []
        for bit, one in enumerate(product if lower else past):
            added = cells.table(_XOR2, (other[bit] if adds_other else kept[bit], subtract), f"{place}/added{bit}")
            made = cells.table(_XOR3, (one, added, carry), f"{place}/sum{bit}")
            carry = cells.table(CARRY, (one, added, carry), f"{place}/carry{bit}")
            shown.append(cells.table(_LOADED, (load, other[bit], made, subtract), f"{place}/shown{bit}"))
        if shows_register or not adds_other:
            enable = self._enable(f"OHOLD{name}")
            for bit, net in enumerate(shown):
                cells.register(net, enable, ZERO, 0, f"{place}/{bit}", kept[bit])
        return (kept if shows_register else shown), carry
