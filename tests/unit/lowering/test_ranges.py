"""The range that a narrow type should hold: no other place of the point changes the values less."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fpgaprune.errors import DesignError
from fpgaprune.lowering import Range, fitting
from fpgaprune.values import FixedType


@given(st.lists(st.floats(-50, 50, width=32), min_size=1, max_size=30), st.integers(2, 8), st.booleans())
def test_no_other_place_of_the_point_has_less_error(numbers, width, positive):
    values = np.abs(np.array(numbers)) if positive else np.array(numbers)
    found = Range.with_least_error(values, width)
    kind = fitting(found, width, bool((values < 0).any()))

    def error(integer):
        other = replace(kind, integer=integer)
        return np.square(other.to_float(other.to_raw(values)) - values).sum()

    least = min(error(integer) for integer in range(kind.integer - 3, kind.integer + 4))
    assert error(kind.integer) <= least * (1 + 1e-12)


def test_one_large_value_among_many_is_cut_off():
    values = np.concatenate([np.linspace(0, 1, 10_000), [6.9]])
    assert fitting(Range.of(values), 3) == FixedType(3, 3, False, "RND", "SAT")
    assert fitting(Range.with_least_error(values, 3), 3) == FixedType(3, 0, False, "RND", "SAT")


def test_every_part_of_many_values_counts():
    """They are read in parts; the first part alone would choose another type, and so would the last."""
    rng = np.random.default_rng(0)
    parts = [0.1 * rng.normal(size=40_000), 30 * rng.normal(size=500), 3 * rng.normal(size=40_000)]
    values = np.concatenate(parts)
    for width in (3, 5, 8):
        kinds = [replace(FixedType.holding(float(np.abs(values).max()), width), integer=n) for n in range(-12, 9)]
        errors = [np.square(kind.to_float(kind.to_raw(values)) - values).sum() for kind in kinds]
        assert FixedType.with_least_error(values, width) == kinds[int(np.argmin(errors))]
    assert FixedType.with_least_error(values, 3) not in [FixedType.with_least_error(part, 3) for part in parts]


def test_values_that_are_no_numbers_are_refused():
    with pytest.raises(DesignError, match="hold NaN or infinity"):
        FixedType.with_least_error(np.array([1.0, np.nan]), 8)
