"""`Multipliers`: the multipliers of a Gowin FPGA by their fuses."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from itertools import product
from typing import NamedTuple

from fpgaprune.errors import ReadbackError
from fpgaprune.readback.gowin.chip import Chip, Wire, apycula, database

_TILES = 9
# What half of a macro holds: nothing, one of 18 x 18, or one or two of 9 x 9 (their numbers within the half).
_HALVES = ("", "18", "9:0", "9:1", "9:01")
_NO_REGISTERS = {"CE": "0", "CLK": "0", "RESET": "0", "NET_ASEL": "GND", "NET_BSEL": "GND"}


class Product(NamedTuple):
    """A multiplier without registers: the first of its nine tiles, its name there, and the bits of a factor."""

    row: int
    col: int
    name: str
    width: int


@lru_cache(maxsize=128)
def _settings(device: str, tiles: tuple[int, ...], macro: int) -> Mapping[frozenset[tuple[int, int, int]], str]:
    """Map a macro's fuses in its nine tiles to what its halves hold, as `18,9:01`."""
    db, pack, chipdb = database(device), apycula("gowin_pack"), apycula("chipdb")
    pack.device = device
    found = {}
    for halves in product(_HALVES, repeat=2):
        # Numbers of 9 and of 18 bits do not mix in a macro.
        if len({half[:1] for half in halves if half}) > 1:
            continue
        fuses = set()
        for half, held in enumerate(halves):
            kind, _, numbers = held.partition(":")
            names = [f"{macro}{2 * half + int(number)}" for number in numbers] or [f"{macro}{half}"] * bool(kind)
            for name in names:
                typ = f"MULT{kind}X{kind}"
                attributes = pack.set_dsp_attrs(db, typ, {}, name, dict(_NO_REGISTERS))
                for number, tile in enumerate(tiles):
                    if f"DSP{macro}" in db.shortval[tile]:
                        bits = chipdb.get_shortval_fuses(db, tile, attributes, f"DSP{macro}")
                        fuses |= {(number, *bit) for bit in bits}
        found[frozenset(fuses)] = ",".join(halves)
    return found


class Multipliers:
    """The multipliers of a chip."""

    def __init__(self, chip: Chip) -> None:
        self._chip = chip
        self._outputs: dict[tuple[int, int], dict[Wire, tuple[Product, int]]] = {}

    def output(self, wire: Wire) -> tuple[Product, int] | None:
        """Return the multiplier that drives a wire, and which bit of the product that is.

        Raises:
            ReadbackError: a macro is set in a way that fpgaprune does not decode: with registers, or as an accumulator.
        """
        for col in range(wire.col, max(wire.col - _TILES, -1), -1):
            bels = self._chip.db[wire.row, col].bels
            if "DSP" in bels:
                if (wire.row, col) not in self._outputs:
                    self._outputs[wire.row, col] = self._read(wire.row, col)
                return self._outputs[wire.row, col].get(wire)
            if not any(name.startswith("DSP_AUX") for name in bels):
                return None
        return None

    def wire(self, product: Product, port: str) -> Wire:
        """Return the wire of a multiplier's port, as `A3`."""
        return Wire(product.row, product.col, self._chip.db[product.row, product.col].bels[product.name].portmap[port])

    def _read(self, row: int, col: int) -> dict[Wire, tuple[Product, int]]:
        chip = self._chip
        tiles = tuple(chip.db[row, col + number].ttyp for number in range(_TILES))
        found: dict[Wire, tuple[Product, int]] = {}
        for macro in range(2):
            settings = _settings(chip.device, tiles, macro)
            known = {
                (number, *fuse)
                for number, tile in enumerate(tiles)
                for fuses in chip.db.shortval[tile].get(f"DSP{macro}", {}).values()
                for fuse in fuses
            }
            used = frozenset(fuse for fuse in known if chip.is_set(row, col + fuse[0], fuse[1:]))
            if used not in settings:
                raise ReadbackError(
                    f"the multipliers {macro} at R{row + 1}C{col + 1} have registers or other modes; fpgaprune "
                    "does not decode those"
                )
            for half, held in enumerate(settings[used].split(",")):
                kind, _, numbers = held.partition(":")
                names = [f"MULT9X9{macro}{2 * half + int(number)}" for number in numbers]
                names = names or [f"MULT18X18{macro}{half}"] * bool(kind)
                for name in names:
                    one = Product(row, col, name, int(kind))
                    for bit in range(2 * one.width):
                        for wire in chip.joined(self.wire(one, f"DOUT{bit}")):
                            found[wire] = one, bit
        return found
