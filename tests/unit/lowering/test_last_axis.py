"""Layers along another axis than the last, and merges that repeat positions, become layers that compute the same."""

from itertools import permutations

import keras
import numpy as np
import pytest
import tensorflow as tf

import fpgaprune as fp
from fpgaprune.errors import UnsupportedLayerError
from fpgaprune.lowering import Precision, fold, with_channels_last
from fpgaprune.values import named_weights

kl = keras.layers
OURS = fp.Target.of("xc7z020clg400-1", backend="Verilog")
IMAGE = (4, 6, 5)


def samples(*shapes):
    rng = np.random.default_rng(3)
    return [rng.normal(size=(24, *shape)).astype("float32") for shape in shapes]


def with_weights(model):
    rng = np.random.default_rng(2)
    for weight in model.weights:
        weight.assign(rng.uniform(0.5, 1.5, weight.shape))
    return model


def require_same(model, shapes):
    """What `fold` makes computes the same; its layers, the inputs left out."""
    folded, x = fold(with_weights(model)), samples(*shapes)
    # Compiled: without oneDNN, which some processors do not get, TensorFlow has no convolution with channels first.
    computed = tf.function(model, jit_compile=True)(x if len(x) > 1 else x[0])
    np.testing.assert_allclose(folded(x), computed, rtol=1e-5, atol=1e-5)
    return [layer for layer in folded.layers if not isinstance(layer, kl.InputLayer)]


def chain(*layers, shape=IMAGE):
    x = entry = keras.Input(shape)
    for layer in layers:
        x = layer(x)
    return keras.Model(entry, x)


@pytest.mark.parametrize(
    "make",
    [
        lambda o: kl.Conv2D(2, 3, **o),
        lambda o: kl.Conv2D(4, 3, groups=2, **o),
        lambda o: kl.DepthwiseConv2D(3, depth_multiplier=2, **o),
        lambda o: kl.SeparableConv2D(2, 3, **o),
        lambda o: kl.MaxPooling2D(2, **o),
        lambda o: kl.AveragePooling2D((6, 5), **o),
        lambda o: kl.GlobalAveragePooling2D(**o),
        lambda o: kl.GlobalMaxPooling2D(keepdims=True, **o),
        lambda o: kl.UpSampling2D((2, 3), **o),
        lambda o: kl.ZeroPadding2D(((1, 0), (0, 2)), **o),
        lambda o: kl.Cropping2D(((1, 0), (0, 2)), **o),
        lambda o: kl.Flatten(**o),
    ],
)
def test_a_layer_with_the_channels_first_has_them_last(make):
    layers = require_same(chain(make({"data_format": "channels_first"})), [IMAGE])
    assert isinstance(layers[0], kl.Permute)
    assert not any(getattr(layer, "data_format", None) == "channels_first" for layer in layers)


def test_a_bias_that_keras_adds_along_the_width_is_refused():
    """Keras on TensorFlow takes the width for the channels where there are as many of both."""
    model = chain(kl.Conv2D(3, 3, data_format="channels_first", name="conv"))
    with pytest.raises(UnsupportedLayerError, match=r"layer 'conv' \(Conv2D\).*adds the bias along the width"):
        fold(model)
    require_same(chain(kl.Conv2D(3, 3, data_format="channels_first", use_bias=False)), [IMAGE])


def test_a_network_with_the_channels_first_moves_them_once():
    first = {"data_format": "channels_first"}
    entry = keras.Input(IMAGE)
    x = kl.Conv2D(4, 3, padding="same", use_bias=False, **first)(entry)
    x = kl.ReLU()(kl.BatchNormalization(axis=1)(x))
    x = kl.Add()([x, kl.Conv2D(4, 3, padding="same", **first)(x)])
    x = kl.GlobalAveragePooling2D(**first)(kl.MaxPooling2D(2, **first)(x))
    kinds = [type(layer).__name__ for layer in require_same(keras.Model(entry, kl.Dense(3)(x)), [IMAGE])]
    wanted = ["Permute", "Conv2D", "Activation", "Conv2D", "Add", "MaxPooling2D", "GlobalAveragePooling2D", "Dense"]
    assert kinds == wanted


def test_a_network_with_the_channels_first_gets_them_last_with_its_names_and_weights():
    first = {"data_format": "channels_first"}
    layers = [kl.Conv2D(2, 3, **first), kl.BatchNormalization(axis=1), kl.MaxPooling2D(2, **first)]
    model = with_weights(
        keras.Sequential([keras.Input(IMAGE), *layers, kl.Flatten(**first), kl.Dropout(0.1), kl.Dense(3)])
    )
    same, (x,) = with_channels_last(model), samples(IMAGE)
    assert {layer.name for layer in model.layers} <= {layer.name for layer in same.layers}
    assert not any(getattr(layer, "data_format", None) == "channels_first" for layer in same.layers)
    ours, theirs = named_weights(same), named_weights(model)
    assert {name: w.shape for name, w in ours.items()} == {name: w.shape for name, w in theirs.items()}
    np.testing.assert_allclose(same(x), tf.function(model, jit_compile=True)(x), rtol=1e-5, atol=1e-5)
    assert with_channels_last(same) is same


def test_named_inputs_and_outputs_keep_their_names_with_the_channels_last():
    entry, other = keras.Input(IMAGE, name="a"), keras.Input(IMAGE, name="b")
    x = kl.MaxPooling2D(2, data_format="channels_first")(kl.Add()([entry, other]))
    same = with_channels_last(keras.Model({"a": entry, "b": other}, {"pool": x, "flat": kl.Flatten()(x)}))
    assert set(same({name: samples(IMAGE)[0] for name in "ab"})) == {"pool", "flat"}
    assert [layer.data_format for layer in same.layers if isinstance(layer, kl.MaxPooling2D)] == ["channels_last"]


def test_a_network_whose_bias_is_along_the_width_keeps_its_channels_first():
    model = chain(kl.Conv2D(3, 3, data_format="channels_first"))
    assert with_channels_last(model) is model


def test_a_softmax_is_no_function_of_each_value():
    model = chain(kl.MaxPooling2D(2, data_format="channels_first"), kl.Activation("softmax"))
    assert [type(layer).__name__ for layer in require_same(model, [IMAGE])][-2:] == ["Permute", "Softmax"]


@pytest.mark.parametrize("axis", [1, 2, 3, -2, [1, 2], [1, 3], [2, 3], [1, 2, 3]])
def test_a_softmax_is_along_the_last_axis(axis):
    layers = require_same(chain(kl.Softmax(axis=axis)), [IMAGE])
    assert [layer.axis for layer in layers if isinstance(layer, kl.Softmax)] in ([-1], [3])


@pytest.mark.parametrize("axis", [1, 2])
def test_a_normalisation_of_another_axis_scales_each_element(axis):
    layers = require_same(chain(kl.BatchNormalization(axis=axis)), [IMAGE])
    assert [type(layer).__name__ for layer in layers] == ["Reshape", "BatchNormalization", "Reshape"]


@pytest.mark.parametrize("kind", [kl.Add, kl.Subtract, kl.Multiply, kl.Average, kl.Maximum, kl.Minimum])
@pytest.mark.parametrize(
    ("one", "other"),
    [
        *permutations([(4, 6, 5), (4, 6, 1)]), *permutations([(4, 6, 5), (1, 6, 5)]), ((4, 6, 5), (4, 1, 5)),
        ((4, 1, 5), (1, 6, 5)), ((1, 1, 5), (4, 6, 1)), ((6,), (1,)), ((1, 1, 1), (4, 6, 5)), ((6, 5), (4, 6, 5)),
        ((1, 6, 1), (4, 1, 5)),
    ],
)  # fmt: skip
def test_a_merge_has_one_shape_or_a_value_for_each_channel(kind, one, other):
    entries = [keras.Input(one), keras.Input(other)]
    layers = require_same(keras.Model(entries, kind()(entries)), [one, other])
    assert {tuple(tensor.shape[1:]) for tensor in layers[-1].input} <= {layers[-1].output.shape[1:], (1, 1, 5)}


@pytest.mark.parametrize("small", [(5,), (1, 1, 5)])
def test_a_vector_of_channels_is_repeated_by_the_merge_itself(small):
    entries = [keras.Input(IMAGE), keras.Input(small)]
    assert len(require_same(keras.Model(entries, kl.Add()(entries)), [IMAGE, small])) == 1


def test_keras_s_operation_of_two_shapes_is_a_merge():
    entries = [keras.Input((4, 6, 5)), keras.Input((4, 6, 1))]
    assert isinstance(
        require_same(keras.Model(entries, entries[0] * entries[1]), [(4, 6, 5), (4, 6, 1)])[-1], kl.Multiply
    )


def test_other_networks_stay_as_they_are():
    layers = require_same(chain(kl.Conv2D(3, 3), kl.BatchNormalization(), kl.Softmax()), [IMAGE])
    assert [type(layer).__name__ for layer in layers] == ["Conv2D", "Softmax"]
    model = chain(kl.Conv2D(2, 3, data_format="channels_first", name="conv"), kl.Flatten())
    x = samples(IMAGE)[0]
    design = fp.make_design(model, OURS, x, Precision(16, 16, 16))
    assert design["conv"].sources["weight"] == "conv/kernel"
