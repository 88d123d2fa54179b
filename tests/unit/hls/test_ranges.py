"""The range that a narrow type should hold: no other place of the point changes the values less."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fpgaprune.fixed import FixedType
from fpgaprune.hls.precision import fitting
from fpgaprune.hls.ranges import Range


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
