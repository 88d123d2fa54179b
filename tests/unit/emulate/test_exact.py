"""Exact integers in the fastest dtype: where a dtype ends, and what a rounding does to the bounds."""

import numpy as np
import pytest

from fpgaprune.emulate import Exact, carrier
from fpgaprune.errors import DesignError
from fpgaprune.values import OVERFLOW_MODES, ROUNDING_MODES, FixedType


@pytest.mark.parametrize(
    ("low", "high", "dtype"),
    [
        (0, 2**24, np.float32),
        (-(2**24), 0, np.float32),
        (0, 2**24 + 1, np.float64),
        (-(2**53), 2**53, np.float64),
        (-(2**53) - 1, 0, np.int64),
        (1 - 2**63, 2**63 - 1, np.int64),
    ],
)
def test_a_dtype_carries_up_to_its_last_exact_integer(low, high, dtype):
    assert carrier(low, high) == dtype


@pytest.mark.parametrize(("low", "high"), [(0, 2**63), (-(2**63), 0)])
def test_what_no_dtype_carries_is_refused_with_its_bits(low, high):
    with pytest.raises(DesignError, match="an intermediate value needs 65 bits; the emulator computes in 63"):
        carrier(low, high)


@pytest.mark.parametrize("overflow", OVERFLOW_MODES)
@pytest.mark.parametrize("rounding", ROUNDING_MODES)
def test_a_constant_that_is_rounded_has_itself_as_both_bounds(rounding, overflow):
    kind = FixedType(9, 7, True, rounding, overflow)
    for raw in range(-33, 34):
        got = Exact(np.array([float(raw)]), 5, raw, raw).into(kind)
        assert (got.low, got.high) == (got.raw[0], got.raw[0]), raw


def test_a_quotient_is_within_its_bounds_which_it_reaches():
    for low, high in ((-7, 9), (0, 9), (-7, 0), (-9, -4), (4, 9)):
        got = Exact(np.arange(low, high + 1), 0, low, high).quotient(2)
        assert (got.low, got.high) == (min(got.raw.min(), 0), max(got.raw.max(), 0))
