"""`FixedType` is a fixed-point type as high-level synthesis tools define it, with exact integer arithmetic.

Source for the modes: AMD, *Vitis High-Level Synthesis User Guide* (UG1399), "Arbitrary Precision
Fixed-Point Data Types", quantization and overflow modes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fpgaprune.errors import DesignError, shown
from fpgaprune.values.real_arrays import Array

ROUNDING_MODES = ("TRN", "TRN_ZERO", "RND", "RND_ZERO", "RND_INF", "RND_MIN_INF", "RND_CONV")
OVERFLOW_MODES = ("WRAP", "SAT", "SAT_ZERO", "SAT_SYM")
MAX_WIDTH = 64
# Integer bits that cutting off the largest values may save: wide types lose nothing by holding them all.
_MOST_CUT = 16
# Values whose errors are computed at a time.
_TOGETHER = 1 << 15

# The most bits left of the binary point, and the most zeros right of it; double precision reaches no further.
MAX_INTEGER = 512
_TYPE = re.compile(r"^(?:hls::)?(?:ap_|ac_)?(?P<u>u?)(?P<kind>fixed|fixpt|int)<(?P<args>[^<>]*)>$")


@dataclass(frozen=True)
class FixedType:
    """A `width`-bit number with `integer` bits left of the binary point (sign bit included).

    One unit in the last place is `2 ** (integer - width)`. As in `ap_fixed`, `integer` may be negative or exceed
    `width`, and so may the number of fraction bits.
    """

    width: int
    integer: int
    signed: bool = True
    rounding: str = "TRN"
    overflow: str = "WRAP"

    def __post_init__(self) -> None:
        if not 1 <= self.width <= MAX_WIDTH:
            raise DesignError(
                f"fixed-point width is {shown(self.width)} bits; wanted 1 to {MAX_WIDTH}: choose a narrower type"
            )
        if not -MAX_INTEGER <= self.integer <= MAX_INTEGER:
            raise DesignError(
                f"fixed-point type has {shown(self.integer)} integer bits; wanted {-MAX_INTEGER} to {MAX_INTEGER}"
            )
        for value, allowed in ((self.rounding, ROUNDING_MODES), (self.overflow, OVERFLOW_MODES)):
            if value not in allowed:
                raise DesignError(f"fixed-point mode {shown(value)} is unknown; wanted one of {', '.join(allowed)}")

    @classmethod
    def parse(cls, text: str) -> FixedType:
        """Return the type in `text`, such as `ap_fixed<16,6,AP_RND,AP_SAT>`, `fixed<16,6>`, `ufixed<8,0>` or `int<4>`.

        In `ac_fixed<8,0,true,AC_RND,AC_SAT>` and `ac_int<4,0>` a further argument says whether the type is signed.
        SmartHLS calls its types `hls::ap_fixpt`.

        Raises:
            DesignError: `text` is not a fixed-point type.
        """
        found = _TYPE.match(text.replace(" ", ""))
        wanted = "wanted a form such as 'ap_fixed<16,6>' or 'fixed<16,6,RND,SAT>'"
        problem = f"fixed-point type {shown(text)} cannot be read; {wanted}"
        if not found:
            raise DesignError(problem)
        args = found["args"].split(",")
        unsigned = bool(found["u"])
        place = 1 if found["kind"] == "int" else 2
        signs = ("true", "false", "1", "0") if text.strip().startswith("ac_") else ("true", "false")
        if len(args) > place and args[place].lower() in signs:
            unsigned = args.pop(place).lower() in ("false", "0")
        if found["kind"] == "int" and len(args) > 1:
            raise DesignError(problem)  # an integer neither rounds nor saturates
        modes = [a.upper().removeprefix("HLS::").removeprefix("AP_").removeprefix("AC_") for a in args]
        try:
            width = int(args[0])
            if found["kind"] == "int":
                return cls(width, width, signed=not unsigned)
            rounding = modes[2] if len(modes) > 2 else "TRN"
            overflow = modes[3] if len(modes) > 3 else "WRAP"
            return cls(width, int(args[1]), not unsigned, rounding, overflow)
        except (ValueError, IndexError) as error:
            if isinstance(error, DesignError):
                raise
            raise DesignError(problem) from error

    @classmethod
    def holding(cls, magnitude: float, width: int, signed: bool = True) -> FixedType:
        """Return the `width`-bit type with the fewest integer bits that holds `magnitude`; it rounds and saturates."""
        kind = cls(width, integer_bits(magnitude) + (1 if signed else 0), signed, "RND", "SAT")
        # A value just below a power of two may round up to it, which needs one more bit.
        overshoot = np.round(magnitude / kind.lsb) > kind.raw_max
        return replace(kind, integer=kind.integer + 1) if overshoot else kind

    @classmethod
    def with_least_error(cls, values: Array, width: int, signed: bool = True) -> FixedType:
        """Return the `width`-bit type that rounds and cuts off `values` with the least sum of squared errors.

        Few bits are better spent on the many values than on the largest few.

        Source: Sung, Shin, Hwang, "Resiliency of Deep Neural Networks under Quantization", 2015 (step sizes that
        minimise the squared error).
        """
        largest = float(np.abs(values).max(initial=0.0))
        kind = cls.holding(largest, width, signed)
        # NaN is refused.
        kind.to_raw(largest)
        best, least = kind, math.inf
        for fewer in range(min(2 * width, _MOST_CUT)):
            one = replace(kind, integer=kind.integer - fewer)
            error = one._squared_error(values.reshape(-1), least)
            if error < least:
                best, least = one, error
        return best

    def _squared_error(self, values: Array, most: float) -> float:
        """Sum the squared errors of `values` (N,) in a type that rounds and saturates; stop once at `most` or more.

        A part of the values at a time stays in the processor's cache, and a type that is worse ends early: that takes a
        tenth of the time of `to_raw` and `to_float`. What `scaled + 0.5` rounds here changes no error.
        """
        scale, found = 2.0**self.fraction, 0.0
        for start in range(0, len(values), _TOGETHER):
            scaled = values[start : start + _TOGETHER].astype(np.float64) * scale
            error = np.clip(np.floor(scaled + 0.5), self.raw_min, self.raw_max)
            error -= scaled
            found += float(np.dot(error, error)) / scale**2
            if found >= most:
                break
        return found

    def __str__(self) -> str:
        head = f"{'' if self.signed else 'u'}fixed<{self.width},{self.integer}"
        modes = "" if (self.rounding, self.overflow) == ("TRN", "WRAP") else f",{self.rounding},{self.overflow}"
        return f"{head}{modes}>"

    @property
    def fraction(self) -> int:
        """Bits right of the binary point; a value is `raw * 2 ** -fraction`."""
        return self.width - self.integer

    @property
    def raw_min(self) -> int:
        """Smallest raw integer."""
        if not self.signed:
            return 0
        return -(1 << (self.width - 1)) + (1 if self.overflow == "SAT_SYM" else 0)

    @property
    def raw_max(self) -> int:
        """Largest raw integer."""
        return (1 << (self.width - (1 if self.signed else 0))) - 1

    @property
    def lsb(self) -> float:
        """One unit in the last place."""
        return float(2.0**-self.fraction)

    @property
    def magnitude(self) -> float:
        """Largest absolute value."""
        return float(max(-self.raw_min, self.raw_max) * self.lsb)

    def to_raw(self, values: ArrayLike) -> NDArray[np.int64]:
        """Return the raw integers of real `values` after rounding and overflow; exact for finite float64 input.

        Raises:
            DesignError: a value is NaN or infinite, or too large for a 64-bit intermediate.
        """
        array = np.asarray(values, dtype=np.float64)
        if not np.isfinite(array).all():
            raise DesignError(f"values for type {self} hold NaN or infinity; correct the weights first")
        scaled = np.ldexp(array, self.fraction)
        if np.abs(scaled).max(initial=0.0) >= 2.0**62:
            raise DesignError(f"values up to {np.abs(array).max():.3g} do not fit a 64-bit intermediate of {self}")
        return self.overflowed(self.rounded(scaled).astype(np.int64))

    def rounded(self, scaled: NDArray[np.float64]) -> NDArray[np.float64]:
        """Round `scaled`, in units in the last place, to integers by this type's rounding mode; exact."""
        whole = np.trunc(scaled)
        # The fraction of a float is itself a float, while `scaled + 0.5` may not be.
        return np.asarray(whole + _ROUND[self.rounding](scaled - whole, whole))

    def overflowed(self, raw: NDArray[np.int64]) -> NDArray[np.int64]:
        """Reduce `raw` to this type's range by its overflow mode."""
        low, high = self.raw_min, self.raw_max
        if self.overflow == "SAT_ZERO":
            return np.where((raw < low) | (raw > high), 0, raw)
        if self.overflow != "WRAP":
            return np.clip(raw, low, high)
        if self.width == MAX_WIDTH:
            return raw
        wrapped = raw & ((1 << self.width) - 1)
        if self.signed:
            wrapped = np.where(wrapped > high, wrapped - (1 << self.width), wrapped)
        return wrapped

    def to_float(self, raw: ArrayLike) -> NDArray[np.float64]:
        """Return the real values of `raw`; exact while `width` is at most 53."""
        return np.ldexp(np.asarray(raw, dtype=np.float64), -self.fraction)


def integer_bits(magnitude: float) -> int:
    """Count the bits left of the binary point that an unsigned number of this size needs."""
    return math.floor(math.log2(magnitude)) + 1 if magnitude > 0 else 0


def _ties_to_even(part: NDArray[np.float64], whole: NDArray[np.float64]) -> Array:
    beyond = np.where(np.fmod(whole, 2.0) == 0, np.abs(part) > 0.5, np.abs(part) >= 0.5)
    return beyond * np.sign(part)


# Each gives the number to add after cutting a number towards zero, where `part` was cut off and `whole` is left.
_ROUND: Mapping[str, Callable[[NDArray[np.float64], NDArray[np.float64]], Array]] = {
    "TRN": lambda part, _: -1.0 * (part < 0),
    "TRN_ZERO": lambda part, _: np.zeros_like(part),
    "RND": lambda part, _: 1.0 * (part >= 0.5) - (part < -0.5),
    "RND_ZERO": lambda part, _: 1.0 * (part > 0.5) - (part < -0.5),
    "RND_INF": lambda part, _: 1.0 * (part >= 0.5) - (part <= -0.5),
    "RND_MIN_INF": lambda part, _: 1.0 * (part > 0.5) - (part <= -0.5),
    "RND_CONV": _ties_to_even,
}


def signed_digits(value: int) -> list[tuple[int, int]]:
    """Return the digits of `value` as (shift, sign), lowest first; no two shifts are neighbours.

    Source: Avizienis, "Signed-Digit Number Representations for Fast Parallel Arithmetic", 1961. The form without
    neighbouring digits: Reitwiesner, "Binary Arithmetic", 1960.
    """
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
    """Return how many signed digits each integer has; exact below 2**61 in magnitude."""
    magnitude = np.abs(raw)
    # The digits of x are the bits in which x/2 and 3x/2 differ.
    digits: NDArray[np.int64] = np.bitwise_count(magnitude ^ (3 * magnitude)).astype(np.int64)
    return digits
