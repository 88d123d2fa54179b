"""Transposed convolutions as plain ones between layers that move values: Keras's own bits, few of them moved."""

import keras
import numpy as np
import pytest
from keras import layers

from fpgaprune.lowering import fold


def with_whole_numbers(model, rng):
    """Give `model` weights of which sums are exact."""
    for variable in model.weights:
        ones = variable.name == "moving_variance"
        variable.assign(np.ones(variable.shape) if ones else rng.integers(-7, 8, variable.shape) / 8)
    return model


@pytest.mark.parametrize("seed", range(24))
def test_any_kernel_stride_and_padding_gives_the_numbers_of_keras(seed):
    rng = np.random.default_rng(seed)
    axes = 1 + seed % 2
    kind = (layers.Conv1DTranspose, layers.Conv2DTranspose)[axes - 1]
    size, strides = (tuple(int(n) for n in rng.integers(1, high, axes)) for high in (6, 4))
    shape = (*(int(n) for n in rng.integers(1, 6, axes)), int(rng.integers(1, 4)))
    padding, bias = ("same", "valid")[int(rng.integers(2))], bool(rng.integers(2))
    made = kind(int(rng.integers(1, 4)), size, strides=strides, padding=padding, use_bias=bias, activation="relu")
    model = with_whole_numbers(keras.Sequential([keras.Input(shape), made]), rng)
    x = rng.integers(-8, 8, (3, *shape)).astype("float32")
    folded = fold(model)
    assert not any("Transpose" in type(layer).__name__ for layer in folded.layers)
    np.testing.assert_array_equal(folded([x]), model(x))


def kinds(model):
    return " ".join(type(layer).__name__ for layer in model.layers[1:])


def image(*stack):
    return with_whole_numbers(keras.Sequential([keras.Input((3, 4, 2)), *stack]), np.random.default_rng(0))


def test_what_follows_is_computed_before_values_move():
    up = layers.Conv2DTranspose(2, 2, strides=2)
    model = image(up, layers.BatchNormalization(epsilon=0.0), layers.ReLU())
    assert kinds(fold(model)) == "Conv2D Activation Reshape Permute Reshape"
    # A softmax reads all channels of a pixel, which are not together before.
    model = image(layers.Conv2DTranspose(2, 2, strides=2, activation="softmax"))
    assert kinds(fold(model)) == "Conv2D Reshape Permute Reshape Softmax"
    # A second reader takes the values as they are.
    entry = keras.Input((3, 4, 2))
    y = layers.Conv2DTranspose(2, 2, strides=2)(entry)
    model = keras.Model(entry, [layers.ReLU()(y), layers.Activation("tanh")(y)])
    assert kinds(fold(model)) == "Conv2D Reshape Permute Reshape Activation Activation"


def test_only_as_much_is_computed_as_stays():
    assert kinds(fold(image(layers.Conv2DTranspose(2, 3, padding="same")))) == "Conv2D"
    same = fold(image(layers.Conv2DTranspose(2, 3, strides=2, padding="same")))
    assert kinds(same) == "ZeroPadding2D Conv2D Reshape Permute Reshape"
    assert same.layers[2].output.shape[1:] == (3, 4, 8)


def test_a_cropping_comes_last():
    """Networks from PyTorch cut an edge off before their BatchNorm, which is folded all the same."""
    stack = layers.Cropping2D(((1, 0), (1, 0))), layers.BatchNormalization(epsilon=0.0), layers.ReLU()
    model = image(layers.Conv2DTranspose(2, 3, strides=2), *stack)
    folded = fold(model)
    assert kinds(folded) == "ZeroPadding2D Conv2D Activation Reshape Permute Reshape Cropping2D Cropping2D"
    x = np.random.default_rng(1).integers(-8, 8, (3, 3, 4, 2)).astype("float32")
    np.testing.assert_array_equal(folded([x]), model(x))
    # Behind a layer that mixes pixels it stays where it is.
    model = image(layers.Conv2DTranspose(2, 2, strides=2), layers.Cropping2D(1), layers.MaxPooling2D(2))
    assert kinds(fold(model)) == "Conv2D Reshape Permute Reshape Cropping2D MaxPooling2D"
