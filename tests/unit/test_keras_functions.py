"""An activation is known by what it is: a function of another library or of the user's is not Keras's of that name."""

import functools
import json
import zipfile

import keras
import pytest
import tensorflow as tf
from keras import layers

from fpgaprune.errors import UnsupportedLayerError
from fpgaprune.network import (
    Activation,
    activation_in,
    activation_of,
    described,
    keras_class,
    read_keras_weights,
    save_keras,
)

NAMES = ("linear", "relu", "relu6", "sigmoid", "tanh", "silu", "gelu", "selu", "softplus", "softsign", "softmax")


def tanh(x):
    return 0.5 * x


def own(name):
    """A function of the user's own called `name`."""

    def function(x):
        return 2.0 * x

    function.__name__ = function.__qualname__ = name
    return function


@pytest.mark.parametrize("name", NAMES)
def test_a_function_is_known_and_another_of_its_name_is_not(name):
    assert activation_of(keras.activations.get(name)) == Activation(name)
    assert activation_of(own(name)) is None
    assert activation_of(lambda x: x) is None


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (None, Activation("linear")),
        (keras.activations.swish, Activation("silu")),
        (keras.activations.hard_swish, Activation("hard_silu")),
        (keras.activations.leaky_relu, Activation("leaky_relu", 0.2)),
        (keras.activations.elu, Activation("elu", 1.0)),
        (keras.activations.celu, Activation("elu", 1.0)),
        (keras.activations.exponential, Activation("exponential")),
        (keras.activations.soft_shrink, Activation("soft_shrink")),
        (keras.activations.threshold, None),
        (keras.ops.relu, Activation("relu")),
        (keras.ops.exp, Activation("exponential")),
        (keras.ops.gelu, None),  # it approximates unless it is told not to
        (functools.partial(keras.ops.gelu, approximate=False), Activation("gelu")),
        (functools.partial(keras.activations.gelu, approximate=True), None),
        (tf.nn.relu, Activation("relu")),
        (tf.nn.swish, Activation("silu")),
        (tf.nn.leaky_relu, Activation("leaky_relu", 0.2)),
        (tf.nn.softmax, Activation("softmax")),
        (functools.partial(keras.activations.relu, max_value=6), Activation("relu6")),
        (functools.partial(keras.activations.relu, negative_slope=0.1), Activation("leaky_relu", 0.1)),
        (functools.partial(keras.activations.relu, threshold=0.5), Activation("thresholded_relu", 0.5)),
        (functools.partial(keras.activations.relu, max_value=6, threshold=0.5), None),
        (functools.partial(keras.activations.relu, max_value=4), None),
        (functools.partial(keras.activations.elu, alpha=0.5), Activation("elu", 0.5)),
        (functools.partial(keras.activations.celu, alpha=0.5), None),
        (functools.partial(keras.activations.softmax, axis=1), None),
        (functools.partial(tanh), None),
        (layers.ReLU(), Activation("relu")),
        (layers.ReLU(6), Activation("relu6")),
        (layers.ReLU(6, 0.1), None),
        (layers.LeakyReLU(negative_slope=0.2), Activation("leaky_relu", 0.2)),
        (layers.LeakyReLU(negative_slope=0.0), Activation("relu")),
        (layers.ELU(alpha=0.5), Activation("elu", 0.5)),
        (layers.PReLU(), Activation("prelu")),
        (layers.Softmax(), Activation("softmax")),
        (layers.Softmax(axis=1), None),
        (layers.Activation("tanh"), Activation("tanh")),
        (layers.Activation(tanh), None),
        (layers.Dropout(0.1), None),
        (3, None),
    ],
)
def test_what_an_activation_computes(given, wanted):
    assert activation_of(given) == wanted


def test_a_layer_is_an_activation_or_applies_one():
    assert activation_in(layers.Dense(2)) == Activation("linear")
    assert activation_in(layers.Dense(2, activation=layers.LeakyReLU(negative_slope=0.3))) == Activation(
        "leaky_relu", 0.3
    )
    assert activation_in(layers.ReLU()) == Activation("relu")
    assert activation_in(layers.Dense(2, activation=tanh)) is None


def test_what_is_unknown_is_described():
    assert described(tanh).startswith(f"'tanh', a function of {__name__} and not of Keras")
    assert described(functools.partial(keras.activations.relu, max_value=4)) == "relu(max_value=4)"
    assert described(layers.ReLU(4)) == "ReLU(max_value=4, negative_slope=0.0, threshold=0.0)"
    assert described(keras.activations.relu) == "'relu'"


class Dense(layers.Layer):
    """Of the user's own, called as Keras's."""


class Plain(layers.Dense):
    """Computes what a Dense does."""

    def __init__(self, units, **options):
        super().__init__(units, activation="relu", **options)

    def get_config(self):
        return {"units": self.units}

    def tell(self):
        return "hello"


class Doubled(layers.Dense):
    def call(self, inputs, training=None):
        return 2 * super().call(inputs, training)


class Clipped(layers.Dense):
    @property
    def kernel(self):
        return keras.ops.clip(super().kernel, -1, 1)


class Reused(Plain):
    """Computes what a Dense does, as its parent."""


@pytest.mark.parametrize(
    ("layer", "wanted"),
    [
        (layers.Dense(2), layers.Dense),
        (Plain(2), layers.Dense),
        (Reused(2), layers.Dense),
        (Doubled(2), None),
        (Clipped(2), None),
        (layers.RNN(layers.GRUCell(2)), layers.RNN),
    ],
)
def test_a_subclass_is_of_keras_while_it_changes_nothing(layer, wanted):
    assert keras_class(layer) is wanted


def test_a_layer_of_her_own_is_none_of_keras():
    assert keras_class(Dense()) is not layers.Dense


def test_a_layer_whose_call_was_replaced_is_none_of_keras():
    layer = layers.Dense(2)
    object.__setattr__(layer, "call", lambda inputs: inputs)
    assert keras_class(layer) is None


def saved(activation, folder):
    model = keras.Sequential([keras.Input((3,)), layers.Dense(2, activation=activation)])
    return save_keras(model, folder / "model.keras")


@pytest.mark.parametrize("activation", [tanh, own("relu"), functools.partial(keras.activations.relu, max_value=6)])
def test_a_function_that_keras_would_save_as_another_one_is_not_saved(activation, tmp_path):
    with pytest.raises(
        UnsupportedLayerError, match=r"has as activation .*which Keras cannot save, or saves as another"
    ):
        saved(activation, tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("activation", ["tanh", keras.ops.relu, tf.nn.relu, layers.LeakyReLU(negative_slope=0.2)])
def test_a_function_that_keras_reads_back_is_saved(activation, tmp_path):
    loaded = keras.saving.load_model(saved(activation, tmp_path))
    assert activation_in(loaded.layers[0]) == activation_in(layers.Dense(2, activation=activation))


@pytest.mark.parametrize(
    ("changes", "read"),
    [
        ({}, True),
        ({"registered_name": "mine>Dense", "module": "mine"}, False),
        ({"registered_name": "mine>Dense"}, False),
        ({"module": "mine.layers"}, False),
    ],
)
def test_the_weights_of_a_layer_of_hers_called_dense_are_not_read_as_those_of_keras(changes, read, tmp_path):
    model = keras.Sequential([keras.Input((3,)), layers.Dense(2, name="one")], name="model")
    path = save_keras(model, tmp_path / "model.keras")
    with zipfile.ZipFile(path) as source:
        parts = {name: source.read(name) for name in source.namelist()}
    document = json.loads(parts["config.json"])
    document["config"]["layers"][1] |= changes
    parts["config.json"] = json.dumps(document).encode()
    with zipfile.ZipFile(path, "w") as target:
        for name, data in parts.items():
            target.writestr(name, data)
    assert set(read_keras_weights(path)) == ({"one/kernel", "one/bias"} if read else set())
