"""Reuse factors that hls4ml's resource strategy can build."""

from __future__ import annotations

import math


def allowed_reuse(n_in: int, n_out: int, wanted: int) -> int:
    """The reuse factor nearest to `wanted` that lays out all products evenly; of two equally near the smaller.

    A factor up to `n_in` leaves whole multipliers per output; a larger one is a multiple of `n_in`; both divide the
    number of products (the conditions that the templates of the resource strategy state).
    """
    total = n_in * n_out
    allowed = [r for r in _divisors(total) if _even(n_in, n_out, r)]
    return min(allowed, key=lambda r: (abs(r - wanted), r))


def _even(n_in: int, n_out: int, reuse: int) -> bool:
    limit = -(-n_in * n_out // min(n_in, reuse))
    if not (limit % n_out == 0 or reuse >= n_in):
        return False
    if reuse > n_in and reuse % n_in:
        return False
    return n_in * n_out % reuse == 0


def _divisors(value: int) -> list[int]:
    small = [d for d in range(1, math.isqrt(value) + 1) if value % d == 0]
    return sorted({*small, *(value // d for d in small)})
