"""GRU and LSTM with small weights and many bits: the last places of their sums are cut off."""

import keras
import numpy as np
import pytest

import fpgaprune as fp
from tests.called import called

TARGET = fp.Target.of("xc7z020clg400-1")


def design_of(cell, scale, activation="tanh"):
    keras.utils.set_random_seed(1)
    stack = [keras.Input((6, 3)), cell(4, activation=activation, name="steps"), keras.layers.Dense(2)]
    model = keras.Sequential(stack)
    for variable in model.trainable_variables:
        variable.assign(scale * variable)
    x = np.random.default_rng(0).normal(size=(20, 6, 3)).astype("float32")
    return fp.make_design(model, TARGET, x, fp.Precision(16, 16)), x, model


@pytest.mark.parametrize("activation", ["tanh", "relu"])
@pytest.mark.parametrize("scale", [1, 0.1, 1e-4])
@pytest.mark.parametrize("cell", [keras.layers.GRU, keras.layers.LSTM])
def test_the_emulator_computes_them(cell, scale, activation):
    design, x, model = design_of(cell, scale, activation)
    found = fp.emulate(design, x)
    assert found.shape == (20, 2)
    if scale == 1 and activation == "tanh":
        np.testing.assert_allclose(found, called(model, x), atol=0.02)


@pytest.mark.parametrize("cell", [keras.layers.GRU, keras.layers.LSTM])
def test_sums_that_fit_keep_their_last_place(cell):
    types = design_of(cell, 1)[0]["steps"].types
    assert types["accum"].fraction == types["recurrent_weight"].fraction + types["result"].fraction
