"""Delays of arithmetic by device family; the pipelining of a design depends on them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True, slots=True)
class Speed:
    """Delays that high-level synthesis schedules with, and the size of a DSP multiplier.

    Attributes:
        add_ns: delay of a 16-bit addition.
        multiply_ns: delay of a multiplication in one DSP slice.
        multiply_wide_ns: delay of a multiplication with an operand of more than nine bits.
        dsp_wide: width of the wider operand of one DSP slice, in bits.
        dsp_narrow: width of the narrower operand of one DSP slice, in bits.
    """

    add_ns: float
    multiply_ns: float
    multiply_wide_ns: float
    dsp_wide: int
    dsp_narrow: int = 18


_SMALL_7 = Speed(2.3, 3.4, 6.4, 25)
_LARGE_7 = Speed(2.0, 3.0, 4.0, 25)
_ULTRASCALE = Speed(1.6, 2.6, 2.6, 27)
_ULTRASCALE_PLUS = Speed(0.9, 2.1, 2.1, 27)
# By the prefix of an order number; the longest that matches counts.
_SPEEDS = {
    "xc7": _SMALL_7,
    "xc7k": _LARGE_7,
    "xc7v": _LARGE_7,
    "xc7z030": _LARGE_7,
    "xc7z035": _LARGE_7,
    "xc7z045": _LARGE_7,
    "xc7z100": _LARGE_7,
    "xcku": _ULTRASCALE,
    "xcvu": _ULTRASCALE,
    "xcku3p": _ULTRASCALE_PLUS,
    "xcku5p": _ULTRASCALE_PLUS,
    "xcku9p": _ULTRASCALE_PLUS,
    "xcku11p": _ULTRASCALE_PLUS,
    "xcku13p": _ULTRASCALE_PLUS,
    "xcku15p": _ULTRASCALE_PLUS,
    "xcvu3p": _ULTRASCALE_PLUS,
    "xcvu5p": _ULTRASCALE_PLUS,
    "xcvu7p": _ULTRASCALE_PLUS,
    "xcvu9p": _ULTRASCALE_PLUS,
    "xcvu11p": _ULTRASCALE_PLUS,
    "xcvu13p": _ULTRASCALE_PLUS,
    "xczu": _ULTRASCALE_PLUS,
    "xcu": _ULTRASCALE_PLUS,
    "xcau": _ULTRASCALE_PLUS,
    "xck26": _ULTRASCALE_PLUS,
    "xcv": _ULTRASCALE_PLUS,
}


@cache
def speed_of(part: str) -> Speed:
    """Return the speed of the device with order number `part`; that of UltraScale+ if the device is unknown."""
    name = part.lower()
    best = max((prefix for prefix in _SPEEDS if name.startswith(prefix)), key=len, default="")
    return _SPEEDS.get(best, _ULTRASCALE_PLUS)


def dsps_per_product(speed: Speed, first_bits: int, second_bits: int) -> int:
    """Count the DSP slices that a signed product of operands of these widths takes.

    A slice multiplies a wide operand by a narrow one; a wider operand is cut into pieces that overlap by a sign bit.
    """
    wide, narrow = max(first_bits, second_bits), min(first_bits, second_bits)
    pieces = math.ceil((wide - 1) / (speed.dsp_wide - 1)) * math.ceil((narrow - 1) / (speed.dsp_narrow - 1))
    return max(pieces, 1)
