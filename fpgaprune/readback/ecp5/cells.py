"""What the carry cells and small memories of an ECP5 do, as tables and addresses, in bitstreams and in synthesis."""

from __future__ import annotations

SUM = 0b0110
# For each bit of the address of a small memory, the input of a table, A to D, that takes it.
ADDRESS = (3, 1, 2, 0)


def carry(table: int, *, injects: bool) -> int:
    """Return the carry out of half a carry cell, as a table of its own table, of the carry into it, and of A and B.

    The carry goes on where the cell's table is 1; else it is what the table's first four bits make of A and B, or 0
    where the cell takes no carry into its sum.
    """
    low = 0 if injects else table & 15
    return sum(1 << at for at in range(16) if (at >> 1 if at & 1 else low >> (at >> 2)) & 1)


def small_content(words: int, bit: int) -> int:
    """Return bit `bit` of sixteen words of four, as the sixteen bits of the table that holds it."""
    found = 0
    for address in range(16):
        place = sum((address >> at & 1) << position for at, position in enumerate(ADDRESS))
        found |= (words >> (4 * address + bit) & 1) << place
    return found
