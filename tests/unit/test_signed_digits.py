"""Signed digits and their counts against a slow reference."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fpgaprune.values import count_digits, signed_digits


def naf_digits(value: int) -> int:
    """Nonzero digits of the non-adjacent form, by its definition."""
    count = 0
    value = abs(value)
    while value:
        if value & 1:
            count += 1
            value -= 2 - (value & 3)
        value >>= 1
    return count


def test_digits_are_those_of_the_non_adjacent_form():
    values = np.arange(-1030, 1031)
    assert count_digits(values).tolist() == [naf_digits(int(v)) for v in values]


@pytest.mark.parametrize(("value", "digits"), [(0, 0), (64, 1), (-64, 1), (3, 2), (7, 2), (11, 3), (-21, 3), (85, 4)])
def test_known_digits(value, digits):
    assert count_digits(np.array([value])).tolist() == [digits]


@given(st.integers(-(1 << 40), 1 << 40))
@settings(derandomize=True, deadline=None)
def test_signed_digits_have_no_neighbours(value):
    digits = signed_digits(value)
    assert sum(sign << shift for shift, sign in digits) == value
    assert len(digits) == count_digits(np.array(value))
    assert all(b - a > 1 for (a, _), (b, _) in pairwise(digits))
