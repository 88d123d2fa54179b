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


def nearest(index: int, bits: Sequence[int], ends: Ends) -> list[int]:
    """Return the values that make `index`; for one that is not between its `ends`, the nearest that is."""
    found = []
    for count, (low, high) in zip(bits, ends, strict=True):
        value = index & ((1 << count) - 1)
        index >>= count
        found.append(min(max(value - (1 << count) if low < 0 and value >> count - 1 else value, low), high))
    return found
