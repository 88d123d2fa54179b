"""Channels that are zero: what makes the next channel a constant, and what does not."""

import operator

import keras
import numpy as np
import pytest
from keras import layers

import fpgaprune as fp


@pytest.mark.parametrize("divide", [operator.truediv, keras.ops.divide, keras.ops.true_divide])
@pytest.mark.parametrize("dead", ["above", "below"])
def test_a_channel_that_is_zero_above_or_below_a_division_stays_for_the_other_may_be_zero_too(dead, divide):
    keras.utils.set_random_seed(0)
    source = keras.Input((4,))
    above, below = layers.Dense(3, name="above")(source), layers.Dense(3, name="below")(source)
    model = keras.Model(source, layers.Dense(2, name="last")(divide(above, below)))
    kernel = model.get_layer(dead).kernel
    kernel.assign(np.asarray(kernel) * [1, 0, 1])
    assert fp.plan_removal(model).empty


def test_a_padded_convolution_that_reads_only_zeros_gives_its_bias():
    keras.utils.set_random_seed(0)
    model = keras.Sequential(
        [
            keras.Input((5, 5, 1)),
            layers.Conv2D(2, 1, name="a"),
            layers.Conv2D(2, 3, padding="same", name="b"),
            layers.Conv2D(1, 1, name="c"),
        ]
    )
    a, b = model.get_layer("a").kernel, model.get_layer("b").kernel
    a.assign(np.asarray(a) * [1, 0])
    b.assign(np.asarray(b) * np.array([[0, 1], [1, 1]])[None, None])  # the first output reads the second input alone
    model.get_layer("b").bias.assign([0.5, 0.0])
    plan = fp.plan_removal(model)
    assert {layer.path: len(layer.kept) for layer in plan.channels} == {"a": 1, "b": 1, "c": 1}
    fp.equivalence(model, fp.apply_removal(model, plan, dtype="float64"), tolerance=1e-12).require()
