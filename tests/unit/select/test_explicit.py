"""Masks from zeros and from fixed-point types, bit for bit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fpgaprune.errors import DesignError, MaskError
from fpgaprune.select import from_fixed, from_zeros
from fpgaprune.values import ROUNDING_MODES, FixedType

from .fakes import fake_model

ARRAYS = {
    "a/kernel": np.array([[0.0, -0.0, 1.0]], np.float32),
    "a/bias": np.array([0.0, 2.0], np.float32),
    "b/depthwise_kernel": np.array([[5.0, 0.0]], np.float32),
}


def test_zeros_of_kernels_are_locked_both_signs():
    masks = from_zeros(fake_model(ARRAYS))
    assert {path: mask.tolist() for path, mask in masks.items()} == {
        "a/kernel": [[False, False, True]],
        "b/depthwise_kernel": [[True, False]],
    }
    assert from_zeros(fake_model(ARRAYS), ["a/bias"])["a/bias"].tolist() == [False, True]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    width=st.integers(2, 10),
    integer=st.integers(-2, 4),
    rounding=st.sampled_from(ROUNDING_MODES),
    overflow=st.sampled_from(["WRAP", "SAT"]),
    seed=st.integers(0, 999),
)
def test_what_is_locked_changes_no_bit_of_the_quantised_weight(width, integer, rounding, overflow, seed):
    fixed = FixedType(width, integer, True, rounding, overflow)
    values = (np.random.default_rng(seed).normal(size=64) * 3 * fixed.lsb).astype(np.float32).reshape(8, 8)
    mask = from_fixed(fake_model({"d/kernel": values}), fixed)["d/kernel"]
    raw = fixed.to_raw(values)
    assert np.array_equal(fixed.to_raw(np.where(mask, values, 0)), raw)
    # Everything that rounds to zero is locked, but what overflow alone makes zero.
    assert np.array_equal(~mask, (raw == 0) & (np.abs(values) < fixed.lsb))


def test_what_wraps_to_zero_stays_free():
    model = fake_model({"d/kernel": np.array([[2.0, 0.001, -0.001]], np.float32)})
    assert FixedType.parse("fixed<8,1>").to_raw(2.0) == 0
    assert from_fixed(model, "fixed<8,1>")["d/kernel"].tolist() == [[True, False, True]]  # -0.001 truncates to -1 lsb
    assert from_fixed(model, "fixed<8,1,RND,SAT>")["d/kernel"].tolist() == [[True, False, False]]


def test_the_first_pattern_that_matches_gives_the_type():
    model = fake_model({"a/kernel": np.full((1, 1), 0.1), "b/kernel": np.full((1, 1), 0.1)})
    masks = from_fixed(model, {"a/*": "fixed<16,1>", "*/kernel": "fixed<2,1>"})
    assert masks["a/kernel"].all()
    assert not masks["b/kernel"].any()


def test_bad_input():
    model = fake_model({"a/kernel": np.array([[np.nan]])})
    with pytest.raises(MaskError, match="weight 'a/kernel': values for type"):
        from_fixed(model, "fixed<8,1>")
    with pytest.raises(DesignError, match="cannot be read"):
        from_fixed(model, "int8")
    with pytest.raises(MaskError, match="matches no weight"):
        from_fixed(model, {"c/*": "fixed<8,1>"})
    with pytest.raises(MaskError, match="paths is the string 'a/kernel'"):
        from_zeros(model, "a/kernel")
