"""Layers that round: each computes Keras's layer on rounded weights, is saved with its types, and can be made plain."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from fpgaprune.quantise import ROUNDED, is_rounded, rounded_types, unrounded
from fpgaprune.quantise import layers as rounding
from fpgaprune.values import FixedType

L = keras.layers
TYPES = {"weight": "fixed<6,2,RND,SAT>", "bias": "fixed<5,2,RND,SAT>", "result": "fixed<8,4,TRN,SAT>"}
KINDS = {role: FixedType.parse(kind) for role, kind in TYPES.items()}
RNG = np.random.default_rng(0)


def held(values, kind):
    return kind.to_float(kind.to_raw(np.asarray(values, dtype="float64")))


CASES = {
    "dense": (L.Dense, (3, 4), {"units": 2}),
    "dense without bias": (L.Dense, (4,), {"units": 2, "use_bias": False}),
    "conv, causal": (L.Conv1D, (7, 2), {"filters": 3, "kernel_size": 3, "padding": "causal", "dilation_rate": 2}),
    "conv, strides": (L.Conv1D, (7, 2), {"filters": 3, "kernel_size": 3, "strides": 2}),
    "image": (L.Conv2D, (5, 6, 2), {"filters": 3, "kernel_size": (2, 3), "strides": (2, 1), "padding": "same"}),
    "depthwise row": (L.DepthwiseConv1D, (7, 2), {"kernel_size": 3, "depth_multiplier": 2}),
    "depthwise image": (L.DepthwiseConv2D, (5, 5, 2), {"kernel_size": 3, "strides": 2, "padding": "same"}),
}


@pytest.mark.parametrize("name", CASES)
def test_a_layer_computes_with_rounded_weights_and_rounds_its_sum(name):
    plain, shape, options = CASES[name]
    x = held(RNG.normal(size=(3, *shape)), FixedType(8, 3)).astype("float32")
    layer = ROUNDED[plain](**options, types=TYPES)
    layer.build(x.shape)
    layer.set_weights([RNG.normal(size=weight.shape) for weight in layer.weights])
    same = plain(**options, dtype="float64")
    same.build(x.shape)
    same.set_weights(
        [held(w, KINDS["weight" if w.ndim > 1 else "bias"]) for w in layer.get_weights()],
    )
    np.testing.assert_array_equal(layer(x), held(same(x), KINDS["result"]))
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(layer))
    assert type(again) is type(layer)
    assert again.get_config() == layer.get_config()
    assert again.types == KINDS


@pytest.mark.parametrize("name", ["dense", "image", "depthwise image"])
def test_sums_are_exact_but_in_training(name):
    """A convolution in double precision takes several times as long, and a step moves more than what it would save."""
    plain, shape, options = CASES[name]
    layer = ROUNDED[plain](**options, types=TYPES)
    layer.build((1, *shape))
    x = np.ones((1, *shape), np.float32)

    def dtypes(training):
        graph = tf.function(lambda x: layer(x, training=training)).get_concrete_function(x).graph
        return {output.dtype for operation in graph.get_operations() for output in operation.outputs}

    assert tf.float64 in dtypes(False)
    assert tf.float64 not in dtypes(True)
    np.testing.assert_array_equal(layer(x, training=True), layer(x))


@pytest.mark.parametrize("fraction", [0, 3])
def test_an_average_is_the_exact_sum_divided_and_cut_towards_zero(fraction, monkeypatch):
    result = FixedType(9, 9 - fraction, True, "RND", "SAT")
    x = np.random.default_rng(6).integers(-20, 20, (1, 121, 1))
    layer = ROUNDED[L.AveragePooling1D](3, 2, "same", types={"result": str(result)}, fraction=fraction)
    average = L.AveragePooling1D.call
    # As where a product with 1 / 3 is rounded.
    monkeypatch.setattr(L.AveragePooling1D, "call", lambda self, x: average(self, x) * (1 - 2.0**-50))
    found = np.asarray(layer((x * 2.0**-fraction).astype("float32")))
    # One place on the left is over the edge, and one on the right.
    windows = [x[0, max(start, 0) : start + 3, 0] for start in range(-1, x.shape[1], 2)]
    wanted = [np.trunc(window.sum() / len(window)) * 2.0**-fraction for window in windows]
    np.testing.assert_array_equal(found.ravel(), wanted)
    assert found.dtype == "float32"
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(layer))
    assert (again.fraction, again.types) == (fraction, {"result": result})


def test_a_network_without_its_rounding_is_keras_and_has_its_weights():
    inputs = keras.Input((4,), name="x")
    dense = rounding.RoundedDense(3, types=TYPES, name="dense")(inputs)
    active = L.ReLU(name="relu")(dense)
    model = keras.Model(inputs, rounding.Rounded({"result": "ufixed<4,2>"}, name="relu_type")(active))
    model.set_weights([RNG.normal(size=weight.shape) for weight in model.weights])
    assert is_rounded(model)
    assert rounded_types(model) == {"dense": KINDS, "relu": {"result": FixedType.parse("ufixed<4,2>")}}
    plain = unrounded(model)
    assert [type(layer) for layer in plain.layers] == [L.InputLayer, L.Dense, L.ReLU]
    assert not is_rounded(plain)
    assert rounded_types(plain) == {}
    for before, after in zip(model.get_weights(), plain.get_weights(), strict=True):
        np.testing.assert_array_equal(before, after)
