"""FixedType against an obvious reference in rational arithmetic."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fpgaprune.errors import DesignError
from fpgaprune.values import OVERFLOW_MODES, ROUNDING_MODES, FixedType

types = st.builds(
    FixedType,
    width=st.integers(2, 24),
    integer=st.integers(-6, 20),
    signed=st.booleans(),
    rounding=st.sampled_from(ROUNDING_MODES),
    overflow=st.sampled_from(OVERFLOW_MODES),
)


def reference(kind: FixedType, value: float) -> int:
    exact = Fraction(value) * Fraction(2) ** kind.fraction
    low, high = math.floor(exact), math.ceil(exact)
    half = Fraction(1, 2)
    tie = exact - low == half
    nearest = low if exact - low < half else high
    toward_zero = low if exact >= 0 else high
    away = high if exact >= 0 else low
    raw = {
        "TRN": low,
        "TRN_ZERO": toward_zero,
        "RND": high if tie else nearest,
        "RND_ZERO": toward_zero if tie else nearest,
        "RND_INF": away if tie else nearest,
        "RND_MIN_INF": low if tie else nearest,
        "RND_CONV": (low if low % 2 == 0 else high) if tie else nearest,
    }[kind.rounding]
    if kind.overflow == "WRAP":
        raw %= 1 << kind.width
        return raw - (1 << kind.width) if kind.signed and raw > kind.raw_max else raw
    if kind.overflow == "SAT_ZERO" and not kind.raw_min <= raw <= kind.raw_max:
        return 0
    return min(max(raw, kind.raw_min), kind.raw_max)


@given(types, st.integers(-(2**20), 2**20), st.integers(-3, 14))
def test_to_raw_is_the_reference(kind, numerator, shift):
    value = numerator * 2.0**-shift
    assert kind.to_raw(value) == reference(kind, value)


@given(types)
def test_text_round_trip(kind):
    assert FixedType.parse(str(kind)) == kind
    assert FixedType.parse("ap_" + str(kind)) == kind


@given(types, st.integers(-(2**23), 2**23))
def test_representable_values_keep_their_bits(kind, raw):
    raw = int(np.clip(raw, kind.raw_min, kind.raw_max))
    assert kind.to_raw(kind.to_float(raw)) == raw


def test_negative_zero_is_the_integer_zero():
    assert FixedType(8, 4).to_raw(-0.0) == 0


@pytest.mark.parametrize(
    "text", ["fixed<0,0>", "fixed<200,6>", "fixed<16>", "float", "fixed<16,6,UP>", "ap_fixed<a,b>"]
)
def test_bad_types_are_refused(text):
    with pytest.raises(DesignError):
        FixedType.parse(text)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_nan_is_refused(bad):
    with pytest.raises(DesignError, match="NaN or infinity"):
        FixedType(8, 4).to_raw([0.0, bad])
