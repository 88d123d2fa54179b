"""`Exact`: arrays of exact fixed-point numbers, as `ap_fixed` computes them before it assigns them to a type.

In `ap_fixed` a sum or a product has as many bits as it needs, so nothing is lost until the value is assigned (AMD
UG1399, "Arbitrary Precision Fixed-Point Data Types"). An `Exact` does the same: it holds integers and the bounds
between which they lie. Arithmetic widens the bounds; only `into` rounds and overflows. The bounds depend on types and
weights, never on data.

Integers have the fastest dtype that holds each of them exactly: float32 to 2**24, float64 to 2**53, else int64. More
than 63 bits are refused.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fpgaprune.errors import DesignError
from fpgaprune.values import Array, FixedType

_FLOAT32_EXACT = 1 << 24
_FLOAT64_EXACT = 1 << 53
_INT64_EXACT = 1 << 63


def carrier(low: int, high: int) -> np.dtype[Any]:
    """Return the fastest dtype in which every integer from `low` to `high` is exact.

    Raises:
        DesignError: they need more than 63 bits.
    """
    size = max(-low, high)
    if size <= _FLOAT32_EXACT:
        return np.dtype(np.float32)
    if size <= _FLOAT64_EXACT:
        return np.dtype(np.float64)
    if size < _INT64_EXACT:
        return np.dtype(np.int64)
    raise DesignError(
        f"an intermediate value needs {size.bit_length() + 1} bits; the emulator computes in 63: choose narrower types"
    )


@dataclass(frozen=True)
class Exact:
    """Numbers `raw * 2 ** -fraction`.

    Attributes:
        raw: integers, of any dtype.
        fraction: bits right of the point.
        low: a lower bound of `raw`.
        high: an upper bound of `raw`.
    """

    raw: Array
    fraction: int
    low: int
    high: int

    @classmethod
    def of(cls, raw: ArrayLike, kind: FixedType) -> Exact:
        """Return the constants with raw integers `raw` of type `kind`; their extremes are the bounds."""
        array = np.asarray(raw, dtype=np.int64)
        low, high = (int(array.min()), int(array.max())) if array.size else (0, 0)
        return cls(array.astype(carrier(low, high)), kind.fraction, low, high)

    @classmethod
    def from_real(cls, values: ArrayLike, kind: FixedType) -> Exact:
        """Return the real `values`, assigned to `kind` as C++ assigns a double; infinity counts as 2**1024.

        Raises:
            DesignError: a value is NaN.
        """
        raw = raw_of_real(np.asarray(values, dtype=np.float64), kind)
        return cls(raw.astype(carrier(kind.raw_min, kind.raw_max)), kind.fraction, kind.raw_min, kind.raw_max)

    def __add__(self, other: Exact) -> Exact:
        a, b = _aligned(self, other)
        return _combined(np.add, a, b, a.low + b.low, a.high + b.high)

    def __sub__(self, other: Exact) -> Exact:
        a, b = _aligned(self, other)
        return _combined(np.subtract, a, b, a.low - b.high, a.high - b.low)

    def __mul__(self, other: Exact) -> Exact:
        corners = [x * y for x in (self.low, self.high) for y in (other.low, other.high)]
        product = _combined(np.multiply, self, other, min(corners), max(corners))
        return Exact(product.raw, self.fraction + other.fraction, product.low, product.high)

    def __gt__(self, other: Exact) -> NDArray[np.bool_]:
        a, b = _aligned(self, other)
        return np.asarray(a.raw > b.raw)

    def reshape(self, *shape: int) -> Exact:
        """Return the same numbers in another shape."""
        return Exact(self.raw.reshape(shape), self.fraction, self.low, self.high)

    def flat(self) -> Exact:
        """Return the same numbers in the shape (N, all others)."""
        return self.reshape(self.raw.shape[0], math.prod(self.raw.shape[1:]))

    def on(self, raw: Array) -> Exact:
        """Return the numbers `raw`, taken from this array in any order, with its fraction and bounds."""
        return Exact(raw, self.fraction, self.low, self.high)

    def at_fraction(self, fraction: int) -> Exact:
        """Return the same numbers with `fraction` bits right of the point, which are not fewer than now."""
        shift = fraction - self.fraction
        if shift == 0:
            return self
        low, high = self.low << shift, self.high << shift
        dtype = carrier(low, high)
        return Exact(self.raw.astype(dtype) * dtype.type(1 << shift), fraction, low, high)

    def quotient(self, divisor: int | NDArray[np.int64]) -> Exact:
        """Return the numbers divided by positive integers; the raw quotients are truncated towards zero, as in C++."""
        smallest = int(np.min(divisor))
        low = -(-self.low // smallest) if self.low < 0 else 0
        high = self.high // smallest if self.high > 0 else 0
        if self.raw.dtype == np.int64:
            cut = np.where(self.raw < 0, -(-self.raw // divisor), self.raw // divisor)
        else:
            # The dtype holds both integers exactly, so their quotient cannot round up to the next integer.
            cut = np.trunc(self.raw / np.asarray(divisor, dtype=self.raw.dtype))
        return Exact(cut, self.fraction, low, high)

    def clipped(self, low: int, high: int) -> Exact:
        """Return the numbers with raw integers clipped to `low` and `high`."""
        bottom, top = min(max(self.low, low), high), max(min(self.high, high), low)
        if low <= self.low and self.high <= high:
            return self
        return Exact(np.clip(self.raw, bottom, top), self.fraction, bottom, top)

    def into(self, kind: FixedType) -> Exact:
        """Return the numbers assigned to type `kind`: rounded, then brought into its range."""
        return _overflowed(_rounded(self, kind), kind)

    def fits(self, kind: FixedType) -> bool:
        """Return whether assigning to `kind` changes no number."""
        if self.fraction > kind.fraction:
            return False
        shift = kind.fraction - self.fraction
        return kind.raw_min <= self.low << shift and self.high << shift <= kind.raw_max

    def integers(self) -> NDArray[np.int64]:
        """Return the raw integers as int64."""
        return self.raw.astype(np.int64)

    def values(self) -> NDArray[np.float64]:
        """Return the real values; exact if the raw integers have at most 53 bits."""
        # A float may be a negative zero, which fixed-point numbers do not have.
        return np.asarray(np.ldexp(self.raw.astype(np.float64) + 0.0, -self.fraction))


def raw_of_real(values: NDArray[np.float64], kind: FixedType) -> NDArray[np.int64]:
    """Return the raw integers of finite or infinite `values` in type `kind`.

    Raises:
        DesignError: a value is NaN.
    """
    if np.isnan(values).any():
        raise DesignError(f"values that become {kind} hold NaN; mend the data first")
    with np.errstate(over="ignore"):
        scaled = np.ldexp(values, kind.fraction)
    huge = np.abs(scaled) >= 2.0**62
    raw = kind.overflowed(kind.rounded(np.where(huge, 0.0, scaled)).astype(np.int64))
    if not huge.any():
        return raw
    if kind.overflow == "WRAP":
        # A float64 above 2**62 is an integer, so its low bits are an exact remainder; those of 2**1024 are zero.
        finite = np.where(np.isfinite(scaled), scaled, 0.0)
        beyond = kind.overflowed(np.fmod(finite, 2.0**kind.width).astype(np.int64))
    elif kind.overflow == "SAT_ZERO":
        beyond = np.zeros_like(raw)
    else:
        beyond = np.where(scaled > 0, kind.raw_max, kind.raw_min)
    return np.where(huge, beyond, raw)


def _aligned(a: Exact, b: Exact) -> tuple[Exact, Exact]:
    fraction = max(a.fraction, b.fraction)
    return a.at_fraction(fraction), b.at_fraction(fraction)


def _combined(operation: Any, a: Exact, b: Exact, low: int, high: int) -> Exact:
    dtype = carrier(min(low, a.low, b.low), max(high, a.high, b.high))
    raw = operation(a.raw.astype(dtype, copy=False), b.raw.astype(dtype, copy=False))
    return Exact(raw, a.fraction, low, high)


def _rounded(value: Exact, kind: FixedType) -> Exact:
    """Round `value` to the fraction bits of `kind`, before any overflow."""
    drop = value.fraction - kind.fraction
    if drop == 0:
        return value
    if drop < 0:
        return _widened(value, kind, -drop)
    # All numbers smaller than a quarter of the last place round to the same value.
    drop = min(drop, max(-value.low, value.high).bit_length() + 2)
    half = 1 << (drop - 1)
    low, high = (_round_integer(bound, drop, kind.rounding) for bound in (value.low, value.high))
    dtype = carrier(value.low - 2 * half, value.high + 2 * half)
    raw = value.raw.astype(dtype, copy=False)
    if dtype == np.int64:
        shifted = (raw + _round_addend(raw, drop, kind.rounding)) >> drop
        return Exact(shifted, kind.fraction, low, high)
    scale = dtype.type(2.0**-drop)
    if kind.rounding == "TRN_ZERO":
        work = raw * scale
        np.trunc(work, out=work)
    elif kind.rounding == "RND_CONV":
        work = raw * scale
        np.rint(work, out=work)
    elif kind.rounding == "TRN":
        work = raw * scale
        np.floor(work, out=work)
    else:
        work = (raw + _round_addend(raw, drop, kind.rounding)).astype(dtype, copy=False)
        work *= scale
        np.floor(work, out=work)
    return Exact(work, kind.fraction, low, high)


def _round_addend(raw: Any, drop: int, rounding: str) -> Any:
    """Return the number to add before the last `drop` bits are cut off, which rounds towards minus infinity."""
    half = 1 << (drop - 1)
    kind = getattr(raw, "dtype", np.dtype(np.int64)).type
    if rounding == "TRN":
        return kind(0)
    if rounding == "RND":
        return kind(half)
    if rounding == "RND_MIN_INF":
        return kind(half - 1)
    if rounding == "RND_INF":
        return kind(half) - (raw < 0)
    if rounding == "RND_ZERO":
        return kind(half) - (raw > 0)
    if rounding == "TRN_ZERO":
        return (raw < 0) * kind(2 * half - 1)
    return kind(half - 1) + ((raw >> drop) & 1)


def _round_integer(value: int, drop: int, rounding: str) -> int:
    half = 1 << (drop - 1)
    addend = {
        "TRN": 0,
        "RND": half,
        "RND_MIN_INF": half - 1,
        "RND_INF": half - (value < 0),
        "RND_ZERO": half - (value > 0),
        "TRN_ZERO": (2 * half - 1) * (value < 0),
        "RND_CONV": half - 1 + ((value >> drop) & 1),
    }[rounding]
    return (value + addend) >> drop


def _widened(value: Exact, kind: FixedType, shift: int) -> Exact:
    if kind.overflow == "WRAP":
        # The bits that overflow may be dropped before the shift as well as after it.
        if shift >= kind.width:
            return Exact(np.zeros_like(value.raw), kind.fraction, 0, 0)
        if not (kind.raw_min <= value.low << shift and value.high << shift <= kind.raw_max):
            value = _wrapped(value, kind.width - shift, kind.signed)
    else:
        value = value.clipped((kind.raw_min >> shift) - 1, (kind.raw_max >> shift) + 1)
    return value.at_fraction(kind.fraction)


def _overflowed(value: Exact, kind: FixedType) -> Exact:
    low, high = kind.raw_min, kind.raw_max
    if low <= value.low and value.high <= high:
        return _narrowed(value)
    if kind.overflow == "WRAP":
        return _narrowed(_wrapped(value, kind.width, kind.signed))
    if kind.overflow != "SAT_ZERO":
        return _narrowed(value.clipped(low, high))
    inside = (value.raw >= max(low, value.low)) & (value.raw <= min(high, value.high))
    bounds = (min(max(value.low, low), 0), max(min(value.high, high), 0))
    return _narrowed(Exact(value.raw * inside, value.fraction, *bounds))


def _wrapped(value: Exact, width: int, signed: bool) -> Exact:
    low = -(1 << (width - 1)) if signed else 0
    high = low + (1 << width) - 1
    if value.raw.dtype == np.int64:
        if signed:
            unused = 64 - width
            wrapped = np.left_shift(value.raw, unused) >> unused
        elif width < 64:
            wrapped = value.raw & ((1 << width) - 1)
        else:
            raise DesignError("an unsigned value of 64 bits wraps; the emulator computes in 63: choose a narrower type")
        return Exact(wrapped, value.fraction, low, high)
    dtype = carrier(min(value.low - low, value.low, low), max(value.high - low, value.high, high))
    if dtype == np.int64:
        return _wrapped(Exact(value.integers(), value.fraction, value.low, value.high), width, signed)
    raw = value.raw.astype(dtype, copy=False)
    turns = raw - dtype.type(low)
    turns *= dtype.type(2.0**-width)
    np.floor(turns, out=turns)
    turns *= dtype.type(-(2.0**width))
    turns += raw
    return Exact(turns, value.fraction, low, high)


def _narrowed(value: Exact) -> Exact:
    return Exact(value.raw.astype(carrier(value.low, value.high), copy=False), value.fraction, value.low, value.high)
