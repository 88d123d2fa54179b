"""`Functions`: functions of single bits, each with one number, so that what computes the same has the same number."""

from __future__ import annotations

from collections.abc import Sequence

ZERO, ONE = 0, 1
# Of a table of four inputs, for each input the bits where it is 1.
_WHERE_ONE = (0xAAAA, 0xCCCC, 0xF0F0, 0xFF00)


class Functions:
    """Functions of bits, made table by table.

    A number's lowest bit says that it is the inverse of the number below; 0 and 1 are the constants. Tables that
    compute the same of the same functions get the same number, whatever the order of their inputs, inversions,
    constants, and inputs that change nothing. So equal numbers mean equal functions. Different numbers mean nothing: a
    circuit that is cut into tables elsewhere has other numbers.
    """

    def __init__(self) -> None:
        self._next = 2
        self._known: dict[tuple[int, ...], int] = {}

    def free(self) -> int:
        """Return a function about which nothing is known: the bit of a register, a memory or a pin."""
        self._next += 2
        return self._next - 2

    def made(self, table: int, inputs: Sequence[int]) -> int:
        """Return the function whose value, where the `inputs` are the bits of `i`, is bit `i` of `table`."""
        values = [(table >> at) & 1 for at in range(1 << len(inputs))]
        left = list(inputs)
        at = 0
        while at < len(left):
            value = left[at]
            if value > ONE and value & 1:
                left[at] = value = value ^ 1
                values = [values[place ^ 1 << at] for place in range(len(values))]
            same = next((other for other in range(at) if left[other] == value), None)
            # What `left[at]` is for each place of the table without it.
            places = [_without(place, at) for place in range(len(values) // 2)]
            zeros, ones = [values[place] for place in places], [values[place | 1 << at] for place in places]
            if value == ZERO or zeros == ones:
                values = zeros
            elif value == ONE:
                values = ones
            elif same is not None:
                values = [ones[i] if i >> same & 1 else zeros[i] for i in range(len(zeros))]
            else:
                at += 1
                continue
            del left[at]
            # An input before may change nothing now.
            at = 0
        return self._numbered(values, left)

    def _numbered(self, values: list[int], inputs: list[int]) -> int:
        order = sorted(range(len(inputs)), key=inputs.__getitem__)
        inverse = values[0]
        table = 0
        for place in range(len(values)):
            source = sum(1 << old for new, old in enumerate(order) if place >> new & 1)
            table |= (values[source] ^ inverse) << place
        if not inputs:
            return inverse
        if len(inputs) == 1:
            return inputs[0] ^ inverse
        key = (table, *sorted(inputs))
        if key not in self._known:
            self._known[key] = self.free()
        return self._known[key] ^ inverse


def _without(place: int, at: int) -> int:
    """Return the place in a table where input `at` is 0 and the others are the bits of `place`."""
    low = place & ((1 << at) - 1)
    return (place >> at) << (at + 1) | low


def fixed(table: int, at: int, value: int) -> int:
    """Set input `at` of `table` to a constant value, so that the table depends on it no more."""
    ones = table & _WHERE_ONE[at]
    zeros = table & 0xFFFF ^ ones
    return ones | ones >> (1 << at) if value else zeros | zeros << (1 << at)


def depends(table: int, at: int) -> bool:
    """Return whether a table depends on its input `at`."""
    return fixed(table, at, 0) != fixed(table, at, 1)
