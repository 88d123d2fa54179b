"""Canonical signed digits write a constant as a sum of the fewest positive and negative powers of two.

Source: Avizienis, "Signed-Digit Number Representations for Fast Parallel Arithmetic", 1961. The form without
neighbouring digits: Reitwiesner, "Binary Arithmetic", 1960.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def signed_digits(value: int) -> list[tuple[int, int]]:
    """The digits of `value` as (shift, sign), lowest first; no two shifts are neighbours."""
    digits, shift = [], 0
    while value:
        if value & 1:
            sign = 2 - (value & 3)
            digits.append((shift, sign))
            value -= sign
        value >>= 1
        shift += 1
    return digits


def count_digits(raw: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many signed digits each integer has; exact below 2**61 in magnitude."""
    magnitude = np.abs(raw)
    # The digits of x are the bits in which x/2 and 3x/2 differ.
    digits: NDArray[np.int64] = np.bitwise_count(magnitude ^ (3 * magnitude)).astype(np.int64)
    return digits
