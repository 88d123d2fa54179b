"""`multiply`: a product, as nextpnr makes it of an array of logic cells, each two bits of A times two bits of B."""

from __future__ import annotations

from collections.abc import Sequence

from fpgaprune.readback.gatemate.cells import OF_PRODUCT, XOR2, table_of
from fpgaprune.readback.netlist import ZERO
from fpgaprune.readback.parts import INVERSE, Parts

# Below each column three cells make two bits of B, of those and the carry of the column before; every second column
# works with the inverse of A.
_CARRY = (table_of(lambda carry, low, high, _: carry & low & high), table_of(lambda c, low, high, _: c | low | high))
_HIGH = (table_of(lambda lowest, low, high, _: (1 ^ lowest) & low ^ high), table_of(lambda x, y, z, _: (x | y) ^ z))


def multiply(parts: Parts, a: Sequence[int], b: Sequence[int], width: int, place: str) -> list[int]:
    """Return the nets of the `width` lowest bits of a product of two signed numbers.

    Columns stand side by side, each a row higher than the one before; each takes two bits of B, and hands its sums to
    the next.

    Args:
        parts: gets the tables.
        a: nets of the bits of A, lowest first.
        b: those of B.
        width: bits of the product.
        place: of the multiplier.
    """
    a, b = _extended(a), _extended(b)
    inverse = [parts.table(INVERSE, (net,), f"{place}/a{at}") for at, net in enumerate((ZERO, *a))]
    rows, columns = len(a) // 2, len(b) // 2
    sums, carry = [(ZERO, ZERO)] * rows, ZERO
    lowest, made = list[tuple[int, int]](), list[_Cell]()
    for column in range(columns):
        where, odd = f"{place}/column{column}", column % 2
        low, high = b[2 * column : 2 * column + 2]
        first = parts.table(XOR2, (low, carry), f"{where}/low")
        second = parts.table(_HIGH[odd], (first, low, high), f"{where}/high")
        carry = parts.table(_CARRY[odd], (carry, low, high), f"{where}/carry")
        # With the inverse of A, a sum begins with the bits of B: so it is the negative of A that is added.
        carries = (first, second) if odd else (ZERO, ZERO)
        bits, made = inverse if odd else [ZERO, *a], []
        for row, (upper, lower) in enumerate(sums):
            wires = {"PINY1": first, "PINY2": second, "CINX": upper, "PINX": lower}
            wires |= dict(zip(("IN8", "IN5", "IN1"), bits[2 * row :], strict=False))
            wires |= dict(zip(("CINY1", "CINY2"), carries, strict=True))
            cell = _Cell(parts, wires, f"{where}/row{row}")
            carries = cell.net("COUTY1"), cell.net("COUTY2")
            made.append(cell)
        sign = made[-1].net("COUTX")
        lowest.append((made[0].net("POUTX"), made[0].net("COUTX")))
        sums = [*((cell.net("COUTX"), cell.net("POUTX")) for cell in made[1:]), (sign, sign)]
    # The upper bit of the last row, which is the sign, is shown as its lower bit too.
    rest = [(cell.net("POUTX"), cell.net("COUTX")) for cell in made[1:-1]] + [(sign, sign)]
    return [net for pair in (*lowest, *rest) for net in pair][:width]


def _extended(nets: Sequence[int]) -> list[int]:
    """Return the bits of a signed number, as many as the array has: an even number, and two more."""
    return [*nets, *[nets[-1]] * (2 * ((len(nets) + 1) // 2 + 1) - len(nets))]


class _Cell:
    """A cell of the array."""

    def __init__(self, parts: Parts, wires: dict[str, int], place: str) -> None:
        self._parts, self._nets, self._place = parts, wires, place

    def net(self, signal: str) -> int:
        """Return the net of a signal."""
        if signal not in self._nets:
            table, inputs = OF_PRODUCT[signal]
            nets = [self.net(name) for name in inputs]
            self._nets[signal] = self._parts.table(table, nets, f"{self._place}/{signal}")
        return self._nets[signal]
