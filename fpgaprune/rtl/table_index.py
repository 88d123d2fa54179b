"""Indices of small tables: the lowest bits of some values side by side, the first one's in the lowest place."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

Ends = Sequence[tuple[int, int]]


def index_of(values: Sequence[Any], bits: Sequence[int]) -> Any:
    """Return the index that `values`, integers or arrays of them, make with so many bits of each."""
    index: Any = 0
    at = 0
    for value, count in zip(values, bits, strict=True):
        index |= (value & ((1 << count) - 1)) << at
        at += count
    return index


def reached(ends: Ends) -> list[tuple[int, ...]]:
    """Return all combinations of values between `ends`, a lower and an upper one each."""
    return list(product(*(range(low, high + 1) for low, high in ends)))


def fitted_table(table: Sequence[int], bits: Sequence[int], least: Sequence[int], ends: Ends) -> list[int]:
    """Return the same table with `least` bits of each value, which lie between `ends`, in place of `bits`.

    What the values never are gives what the nearest that they are do.
    """
    if list(least) == list(bits) and all(high - low + 1 == 1 << n for n, (low, high) in zip(bits, ends, strict=True)):
        return [int(entry) for entry in table]
    return [int(table[index_of(_nearest(place, least, ends), bits)]) for place in range(1 << sum(least))]


def _nearest(index: int, bits: Sequence[int], ends: Ends) -> list[int]:
    """Return the values that make `index`; for one that is not between its `ends`, the nearest that is."""
    found = []
    for count, (low, high) in zip(bits, ends, strict=True):
        value = index & ((1 << count) - 1)
        index >>= count
        value -= (1 << count) * (low < 0 and 2 * value >= 1 << count)
        found.append(min(max(value, low), high))
    return found
