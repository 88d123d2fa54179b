"""What rounding explains: it follows the sizes of the values inside a network, not of its outputs."""

import keras
import numpy as np
import pytest
from keras import layers

from fpgaprune.errors import RemovalError
from fpgaprune.network import UNIT, largest_difference, rounding_noise

RNG = np.random.default_rng(0)


def largest(model, x):
    return [float(np.abs(noise).max()) for noise in rounding_noise(model, [x])]


def summing(kernel):
    model = keras.Sequential([keras.Input((len(kernel),)), layers.Dense(1, use_bias=False)])
    model.layers[0].set_weights([np.reshape(kernel, (-1, 1))])
    return model


def test_terms_that_cancel_round_as_the_terms_and_not_as_their_sum():
    x = np.ones((8, 100), np.float32)
    signs = np.resize([1.0, -1.0], 100)
    (alike,), (cancelling,) = largest(summing(np.ones(100)), x), largest(summing(1e4 * signs + 1), x)
    # 100 terms of size 1 lose some units of their sum; those of 1e4 lose as much of 1e4.
    assert 10 * UNIT < alike < 3000 * UNIT
    assert cancelling > 100 * alike


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_the_noise_scales_with_the_samples(scale):
    model = summing(RNG.normal(size=50))
    x = RNG.normal(size=(16, 50)).astype("float32")
    (one,), (scaled,) = largest(model, x), largest(model, x * np.float32(scale))
    assert scaled == pytest.approx(one * scale, rel=0.01)


def test_a_copy_in_float64_has_the_noise_of_the_original_and_float16_more():
    kernel = RNG.normal(size=(8, 8)).astype("float16")

    def made(policy):
        model = keras.Sequential([keras.Input((8,)), layers.Dense(8, activation="relu", dtype=policy)])
        model.set_weights([kernel, np.zeros(8)])
        return model

    x = RNG.normal(size=(16, 8)).astype("float32")
    (narrow,), (single,), (double,) = (largest(made(policy), x) for policy in ("mixed_float16", "float32", "float64"))
    assert double == pytest.approx(single, rel=0.1)
    assert 2**10 * single < narrow < 2**17 * single


def test_masks_models_inside_and_several_outputs_are_followed():
    x = keras.Input((6,), dtype="int32")
    inner = keras.Sequential([keras.Input((6, 4)), layers.Dense(4, activation="gelu")])
    words, plain = layers.Embedding(9, 4, mask_zero=True)(x), layers.Embedding(9, 4)(x)
    model = keras.Model(x, [layers.GRU(3)(words), layers.GlobalAveragePooling1D()(inner(plain))])
    given = np.array([[1, 2, 3, 0, 0, 0], [4, 5, 6, 7, 8, 1]])
    noise = rounding_noise(model, [given])
    assert [one.shape[1:] for one in noise] == [(2, 3), (2, 4)]
    assert all(0 < np.abs(one).max() < 1e-4 for one in noise)
    outputs = [np.asarray(y) for y in model(given)]
    assert largest_difference(model, [given], outputs, outputs)[0] == 0


def test_a_tiny_output_beside_a_large_one_has_its_own_limit():
    model = keras.Sequential([keras.Input((8,)), layers.Dense(2)])
    kernel, bias = model.get_weights()
    model.set_weights([kernel * [1e6, 1e-6], bias])
    x = RNG.normal(size=(16, 8)).astype("float32")
    wanted = model.predict(x, verbose=0)
    for column, change in ((0, 1.0), (1, 1e-9)):
        found = wanted.copy()
        found[3, column] += change * np.abs(wanted[:, column]).max() / (1e6 if column == 0 else 1e-6) * 1e2
        error, allowed = largest_difference(model, [x], [wanted], [found])
        assert error > allowed
    assert largest_difference(model, [x], [wanted], [np.full_like(wanted, np.nan)])[0] == np.inf
    error, allowed = largest_difference(model, [x], [wanted], [wanted * np.float32(1 + 2 * UNIT)])
    assert 0 < error <= allowed


def test_a_network_whose_graph_is_unknown_is_refused():
    with pytest.raises(RemovalError, match=r"keras\.Model\(x, model\.call\(x\)\)"):
        rounding_noise(keras.Model(), [np.zeros((1, 2))])
