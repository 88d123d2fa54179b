"""Rounding in Keras against the types themselves: the same bits, and a gradient that training can follow."""

import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf

from fpgaprune.quantise import rounded
from fpgaprune.values import OVERFLOW_MODES, ROUNDING_MODES, FixedType

SHAPES = ((4, 2), (8, 1), (3, 5), (6, -2), (12, 4))


@pytest.mark.parametrize("overflow", OVERFLOW_MODES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_values_have_the_bits_of_their_type(overflow, dtype):
    rng = np.random.default_rng(0)
    for rounding, signed, (width, integer) in itertools.product(ROUNDING_MODES, (True, False), SHAPES):
        kind = FixedType(width, integer, signed, rounding, overflow)
        # Ties, both ends and what lies beyond them, signed zeros, and values with no short fraction.
        grid = np.arange(-200, 200) * kind.lsb / 4
        ends = np.array([kind.raw_min, kind.raw_max, kind.raw_min - 0.5, kind.raw_max + 0.5, 0.0, -0.0]) * kind.lsb
        x = np.concatenate([grid, ends, 3 * rng.normal(size=300)]).astype(dtype)
        found = np.asarray(rounded(keras.ops.convert_to_tensor(x), kind))
        np.testing.assert_array_equal(found, kind.to_float(kind.to_raw(x)), err_msg=str(kind))
        assert found.dtype == dtype


@pytest.mark.parametrize(
    ("kind", "gradient"),
    [
        # -2 to 1.75 in steps of 0.25: what is cut off has no gradient.
        (FixedType(4, 2, True, "RND", "SAT"), [1, 1, 1, 0, 0]),
        (FixedType(4, 2, True, "TRN", "WRAP"), [1, 1, 1, 1, 1]),
        (FixedType(4, 2, False, "RND", "SAT"), [1, 1, 1, 0, 0]),
    ],
)
def test_the_gradient_passes_where_nothing_is_cut_off(kind, gradient):
    x = tf.Variable([0.1, 0.6, 1.8, 5.0, -9.0])
    with tf.GradientTape() as tape:
        y = rounded(tf.identity(x), kind)
    np.testing.assert_array_equal(tape.gradient(y, x), gradient)


@pytest.mark.parametrize(
    ("rounding", "trains", "gradient"),
    [("RND", False, [0, 0.375, 1.5, 0.75, 0, 0]), ("TRN", False, [1, 1, 1, 1, 1, 0]), ("RND", True, [1] * 6)],
)
def test_the_gradient_of_one_bit_is_largest_at_its_step(rounding, trains, gradient):
    """0 or 4, a step at 2; a type that cuts off has its step at its upper end, and a weight is none."""
    x = tf.Variable([0.0, 0.5, 2.0, 3.0, 4.0, 9.0])
    with tf.GradientTape() as tape:
        y = rounded(tf.identity(x), FixedType(1, 3, False, rounding, "SAT"), trains=trains)
    np.testing.assert_array_equal(tape.gradient(y, x), gradient)


@pytest.mark.parametrize("signed", [True, False])
def test_a_weight_that_was_cut_off_can_come_back_and_go_no_further(signed):
    kind = FixedType(4, 2, signed, "RND", "SAT")
    weights = tf.constant([-5.0, 0.5, 5.0])
    for upstream, wanted in ((1.0, [0, 1, 1]), (-1.0, [-1, -1, 0])):
        with tf.GradientTape() as tape:
            tape.watch(weights)
            total = upstream * tf.reduce_sum(rounded(weights, kind, trains=True))
        np.testing.assert_array_equal(tape.gradient(total, weights), wanted)
