"""Types of single channels in the emulator: each value has the bits of its own type."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fpgaprune.emulate import emulate
from fpgaprune.errors import DesignError
from fpgaprune.values import OVERFLOW_MODES, ROUNDING_MODES, FixedType

from .designs import design, layer

KINDS = st.builds(
    FixedType,
    st.integers(1, 7),
    st.integers(-2, 5),
    st.booleans(),
    st.sampled_from(ROUNDING_MODES),
    st.sampled_from(OVERFLOW_MODES),
)
WIDEST = FixedType(24, 8)
INPUT = FixedType(14, 6, True, "RND")


def quantiser(kinds, places, shape, result=WIDEST):
    words = {"kinds": [str(kind) if kind else "0" for kind in kinds], "places": list(places)}
    entry = layer("x", "Input", None, shape, types={"result": INPUT})
    return design(entry, layer("q", "FixedPointQuantizer", "x", shape, types={"result": result}, attributes=words))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.none() | KINDS, min_size=3, max_size=3), st.booleans(), st.integers(0, 999))
def test_each_value_has_the_bits_of_its_type(kinds, each_value, seed):
    rng = np.random.default_rng(seed)
    places = rng.integers(0, 3, 6 if each_value else 3)
    x = (rng.integers(-(1 << 13), 1 << 13, (20, 2, 3)) / 256).astype(np.float32)
    found = emulate(quantiser(kinds, places.tolist(), (2, 3)), x)
    own = [kinds[place] for place in np.resize(places, 6)]
    columns = zip(own, x.reshape(20, 6).T, strict=True)
    wanted = [kind.to_float(kind.to_raw(column)) if kind else 0 * column for kind, column in columns]
    np.testing.assert_array_equal(found.reshape(20, 6).T, wanted)


def test_a_result_that_does_not_hold_a_channel_is_refused():
    kind = FixedType(4, 2, False)
    message = "layer 'q' (Quantise): its result fixed<4,2> does not hold every number of ufixed<4,2>"
    with pytest.raises(DesignError, match=re.escape(message)):
        emulate(quantiser([kind], [0, 0, 0], (2, 3), FixedType(4, 2)), np.zeros((1, 2, 3), np.float32))
