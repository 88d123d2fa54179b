"""Random networks that round in Keras give the bits of their hardware, also with weights that training has moved."""

import keras
import numpy as np
import pytest
from keras import layers

import fpgaprune as fp
from tests.quick import quick

TARGETS = (fp.Target.of("xc7z020clg400-1", io_type="io_parallel"), fp.Target.of("tang-nano-20k"))
FUNCTIONS = ("relu", "relu6", "sigmoid", "tanh", "selu", "elu", "gelu", "silu", "hard_sigmoid", "hard_swish", "linear")
MERGES = (layers.Average, layers.Add, layers.Subtract, layers.Multiply, layers.Maximum, layers.Minimum)


def chosen(rng, *those):
    return those[rng.integers(len(those))]


def activation(rng):
    return chosen(
        rng,
        layers.Activation(chosen(rng, *FUNCTIONS)),
        layers.LeakyReLU(float(rng.uniform(0.01, 1.5))),
        layers.ELU(float(rng.uniform(0.1, 2.0))),
        layers.PReLU(),
    )


def of_an_image(rng):
    """Layers of one input or two that a map may go through next."""
    channels, size, stride = (int(number) for number in rng.integers(1, 4, 3))
    return chosen(
        rng,
        layers.Conv2D(channels, size, strides=stride, padding="same"),
        layers.DepthwiseConv2D(size, padding="same"),
        layers.AveragePooling2D((size, channels), stride, padding="same"),
        layers.MaxPooling2D(2, padding="same"),
        layers.BatchNormalization(),
        layers.PReLU(shared_axes=chosen(rng, [1, 2], [1], [2], [1, 2, 3])),
        chosen(rng, *MERGES)(),
        activation(rng),
    )


def of_steps(rng):
    """Layers that a row of steps may go through next."""
    units, size, stride = (int(number) for number in rng.integers(1, 6, 3))
    settings = {
        "return_sequences": True,
        "use_bias": bool(rng.integers(2)),
        "bias_initializer": "glorot_uniform",
        "activation": chosen(rng, "tanh", "relu", "sigmoid"),
        "recurrent_activation": chosen(rng, "tanh", "sigmoid"),
    }
    return chosen(
        rng,
        layers.GRU(units, **settings),
        layers.LSTM(units, **settings),
        layers.Conv1D(units, size, padding=chosen(rng, "same", "causal")),
        layers.AveragePooling1D(size, stride, padding="same"),
        layers.PReLU(shared_axes=[1]),
        activation(rng),
    )


def network(rng):
    if rng.integers(2):
        shape, following, last = (7, 5, 2), of_an_image, (layers.GlobalAveragePooling2D(), layers.Flatten())
    else:
        shape, following, last = (9, 3), of_steps, (layers.GlobalAveragePooling1D(), layers.Flatten(), layers.GRU(3))
    value = entry = keras.Input(shape)
    for layer in [following(rng) for _ in range(rng.integers(2, 6))]:
        value = layer([value, activation(rng)(value)]) if isinstance(layer, MERGES) else layer(value)
    value = layers.Dense(3)(chosen(rng, *last)(value))
    model = keras.Model(entry, chosen(rng, layers.Softmax(), layers.Activation("softmax"), activation(rng))(value))
    for layer in model.layers:
        if isinstance(layer, layers.PReLU):
            layer.alpha.assign(rng.uniform(-1, 3, layer.alpha.shape))
        elif isinstance(layer, layers.BatchNormalization):
            layer.set_weights([0.1 + np.abs(rng.normal(size=weight.shape)) for weight in layer.weights])
    return model


# Together they have every kind of layer that the others have.
SEEDS = [0, 1, 4, 9, 12, 13]


@pytest.mark.parametrize("seed", quick(SEEDS, range(14)))
def test_a_network_that_rounds_gives_the_bits_of_its_hardware(seed):
    rng = np.random.default_rng(seed)
    keras.utils.set_random_seed(seed)
    model = network(rng)
    x = rng.normal(size=(40, *model.input_shape[1:])).astype("float32")
    precision = fp.Precision(*(int(rng.integers(2, most)) for most in (11, 13)), int(rng.integers(6, 21)))
    rounded = fp.quantize(model, chosen(rng, *TARGETS), x, precision)
    for variable in rounded.trainable_variables:
        values = np.asarray(variable)
        variable.assign(values + 0.3 * np.abs(values).mean() * rng.normal(size=values.shape))
    design = fp.make_design(rounded, chosen(rng, *TARGETS), x)
    np.testing.assert_array_equal(fp.emulate(design, x), rounded.predict(x, verbose=0))
