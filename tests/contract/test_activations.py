"""Each activation, however it is written, computes the same everywhere: hardware, ONNX, removal, rounded training.

A function of the user's own called as one of Keras's is copied as it is, and no hardware is made of it.
"""

import functools
from itertools import product

import keras
import numpy as np
import onnxruntime
import pytest
import tensorflow as tf
from keras import layers

import fpgaprune as fp
from fpgaprune.errors import ExportError, UnsupportedLayerError
from tests.quick import quick

TARGET = fp.Target.of("xc7z020clg400-1")
PRECISION = fp.Precision(16, 16, 24)
X = np.random.default_rng(0).normal(size=(64, 6)).astype("float32")
# What the steps of a table may add to a result, beside what its type rounds.
TABLES = {
    "silu",
    "swish",
    "gelu",
    "selu",
    "elu",
    "celu",
    "softplus",
    "softsign",
    "sigmoid",
    "tanh",
    "softmax",
    "exponential",
    "mish",
}


def own(name, compute=lambda x: 0.5 * x + 0.25):
    """A function of the user's own called `name`."""

    def function(x):
        return compute(x)

    function.__name__ = function.__qualname__ = name
    return function


def partial(name, **settings):
    return functools.partial(getattr(keras.activations, name), **settings)


WORKING = {
    **{name: lambda name=name: name for name in ("relu", "relu6", "leaky_relu", "linear", "celu", *sorted(TABLES))},
    "LeakyReLU": lambda: layers.LeakyReLU(negative_slope=0.3),
    "ReLU(6)": lambda: layers.ReLU(6),
    "ReLU(slope)": lambda: layers.ReLU(negative_slope=0.1),
    "ReLU(threshold)": lambda: layers.ReLU(threshold=0.3),
    "ELU": lambda: layers.ELU(alpha=0.5),
    "Softmax": lambda: layers.Softmax(),
    "Activation": lambda: layers.Activation("tanh"),
    "partial relu6": lambda: partial("relu", max_value=6),
    "partial leaky_relu": lambda: partial("leaky_relu", negative_slope=0.4),
    "partial elu": lambda: partial("elu", alpha=0.7),
    "keras.ops.relu": lambda: keras.ops.relu,
    "tf.nn.relu": lambda: tf.nn.relu,
    "tf.nn.swish": lambda: tf.nn.swish,
}
# Several layers compute these in hardware.
EXPANDED = {
    "ReLU(4)": lambda: layers.ReLU(4),
    "ReLU(1)": lambda: layers.ReLU(1),
    "ReLU(6, slope)": lambda: layers.ReLU(6, negative_slope=0.1),
    "ReLU(3, slope, threshold)": lambda: layers.ReLU(3, negative_slope=0.1, threshold=0.5),
    "ReLU(slope, threshold)": lambda: layers.ReLU(negative_slope=0.1, threshold=0.5),
    "ReLU(2, threshold)": lambda: layers.ReLU(2, threshold=0.5),
    "hard_sigmoid": lambda: "hard_sigmoid",
    "hard_swish": lambda: "hard_swish",
    "hard_tanh": lambda: "hard_tanh",
}
UNKNOWN = {
    **{f"own {name}": lambda name=name: own(name) for name in ("relu", "tanh", "linear", "sigmoid", "relu6", "silu")},
    "lambda": lambda: lambda x: 3.0 * x,
    "PReLU": lambda: layers.PReLU(),
    "partial gelu": lambda: partial("gelu", approximate=True),
    "log_softmax": lambda: "log_softmax",
}


def network(activation, after=False):
    """A network that applies `activation`: in a Dense layer, or after it as a layer of its own."""
    keras.utils.set_random_seed(1)
    inside = [layers.Dense(5, name="hidden"), layers.Activation(activation, name="function")]
    hidden = inside if after else [layers.Dense(5, activation=activation, name="hidden")]
    return keras.Sequential([keras.Input((6,)), *hidden, layers.Dense(3, name="end")])


def error(found, model, x=X):
    wanted = np.asarray(model(x))
    return float(np.abs(np.asarray(found) - wanted).max() / np.abs(wanted).max())


AFTER = ("relu6", "leaky_relu", "swish", "LeakyReLU", "partial elu")


@pytest.mark.parametrize(("name", "after"), [*((name, False) for name in WORKING), *((name, True) for name in AFTER)])
def test_hardware_computes_what_keras_computes(name, after):
    model = network(WORKING[name](), after)
    design = fp.make_design(model, TARGET, X, PRECISION)
    rough = name in TABLES or name in ("ELU", "Softmax", "Activation", "partial elu", "tf.nn.swish")
    assert error(fp.emulate(design, X), model) < (0.02 if rough else 2e-4)


@pytest.mark.parametrize(
    ("name", "after"),
    quick([*((name, False) for name in EXPANDED), ("hard_swish", True)], product(EXPANDED, [False, True])),
)
def test_several_layers_compute_what_one_of_keras_does(name, after):
    model = network(EXPANDED[name](), after)
    design = fp.make_design(model, TARGET, X, PRECISION)
    assert error(fp.emulate(design, X), model) < 1e-3


# Each is computed in another way: by comparing, by a slope, by a table, by two tables, by several layers.
KINDS = ["relu", "relu6", "leaky_relu", "tanh", "softmax", "partial elu", "hard_sigmoid", "ReLU(3, slope, threshold)"]


@pytest.mark.parametrize("name", quick(KINDS, [*WORKING, *EXPANDED]))
def test_a_rounded_network_gives_the_bits_of_its_hardware(name):
    model = network((WORKING | EXPANDED)[name]())
    rounded = fp.quantize(model, TARGET, X, fp.Precision(8, 8, 16))
    found = fp.emulate(fp.make_design(rounded, TARGET, X), X)
    np.testing.assert_array_equal(found, np.asarray(rounded([X])))


# As `KINDS`, and the ways in which a function of another is told from one of Keras's.
EVERY_WAY = [
    *(*KINDS, "celu", "swish", "gelu", "LeakyReLU", "ReLU(threshold)", "keras.ops.relu", "tf.nn.swish", "hard_swish"),
    *("own relu", "own linear", "own sigmoid", "lambda", "PReLU", "partial gelu", "log_softmax"),
]
every_way = pytest.mark.parametrize("name", quick(EVERY_WAY, [*WORKING, *EXPANDED, *UNKNOWN]))


@every_way
def test_onnx_computes_what_keras_computes(name, tmp_path):
    model = network({**WORKING, **EXPANDED, **UNKNOWN}[name]())
    if name == "celu":
        with pytest.raises(ExportError, match=r"'hidden' .*another layer or activation"):
            fp.export_onnx(model, tmp_path / "model.onnx")
        return
    fp.export_onnx(model, tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(str(tmp_path / "model.onnx"))
    assert error(session.run(None, {session.get_inputs()[0].name: X})[0], model) < 2e-6


@every_way
def test_removal_keeps_what_keras_computes(name):
    model = network({**WORKING, **EXPANDED, **UNKNOWN}[name]())
    if name == "PReLU":
        model(X)
    kernel, bias, *more = model.get_layer("hidden").get_weights()
    kernel[:, :2], bias[:] = 0.0, 0.5
    model.get_layer("hidden").set_weights([kernel, bias, *more])
    plan = fp.plan_removal(model)
    small = fp.apply_removal(model, plan)
    elementwise = name in WORKING and name not in ("softmax", "Softmax")
    assert small.get_layer("hidden").units == (3 if elementwise or name in ELEMENTWISE else 5)
    assert error(small(X), model) < 1e-6
    exact = fp.apply_removal(model, plan, dtype="float64")
    fp.equivalence(model, exact, X).require()


# Removal knows them, though no hardware does.
ELEMENTWISE = {"hard_sigmoid", "hard_swish", "hard_tanh", "mish"}


@pytest.mark.parametrize("name", UNKNOWN)
def test_no_hardware_is_made_of_what_is_not_known(name):
    model = network(UNKNOWN[name]())
    with pytest.raises(UnsupportedLayerError, match="layer 'hidden'") as refused:
        fp.make_design(model, TARGET, X, PRECISION)
    assert "\n" not in str(refused.value)
    with pytest.raises(UnsupportedLayerError, match="layer 'hidden'"):
        fp.quantize(model, TARGET, X)


@pytest.mark.parametrize(
    ("what", "cell"),
    quick(
        [("activation", layers.GRU), ("recurrent_activation", layers.LSTM)],
        product(["activation", "recurrent_activation"], [layers.GRU, layers.LSTM]),
    ),
)
def test_a_recurrent_layer_applies_the_functions_that_it_has(cell, what, tmp_path):
    x = np.random.default_rng(1).normal(size=(8, 5, 4)).astype("float32")
    keras.utils.set_random_seed(2)
    options = {what: own("sigmoid", lambda x: 0.5 * keras.ops.tanh(x))}
    model = keras.Sequential([keras.Input((5, 4)), cell(3, name="hidden", **options), layers.Dense(2, name="end")])
    fp.export_onnx(model, tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(str(tmp_path / "model.onnx"))
    found = session.run(None, {session.get_inputs()[0].name: x})[0]
    np.testing.assert_allclose(found, np.asarray(model(x)), atol=2e-6)
    copy = fp.apply_removal(model, fp.plan_removal(model))
    np.testing.assert_allclose(np.asarray(copy(x)), np.asarray(model(x)), atol=2e-6)
    with pytest.raises(UnsupportedLayerError, match=f"its {what} is 'sigmoid', a function of"):
        fp.make_design(model, TARGET, x, PRECISION)


def test_a_batch_norm_is_not_folded_through_a_function_called_linear(tmp_path):
    keras.utils.set_random_seed(3)
    model = keras.Sequential(
        [
            keras.Input((6,)),
            layers.Dense(5, activation=own("linear", keras.ops.square), name="hidden"),
            layers.BatchNormalization(name="norm"),
            layers.Dense(3, name="end"),
        ]
    )
    model.get_layer("norm").set_weights([np.full(5, value) for value in (2.0, 0.5, 0.1, 0.7)])
    fp.export_onnx(model, tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(str(tmp_path / "model.onnx"))
    assert error(session.run(None, {session.get_inputs()[0].name: X})[0], model) < 2e-6
    with pytest.raises(UnsupportedLayerError, match="layer 'hidden'"):
        fp.make_design(model, TARGET, X, PRECISION)


class Plain(layers.Dense):
    """Computes what a Dense does."""

    def __init__(self, units, **options):
        super().__init__(units, activation="relu", **options)


class Doubled(layers.Dense):
    def call(self, inputs, training=None):
        return 2 * super().call(inputs, training)


class ReLU(layers.ReLU):
    def call(self, inputs):
        return 3 * inputs


class Weighted(layers.Dense):
    def __init__(self, units, **options):
        super().__init__(units, **options)
        self.more = self.add_weight(shape=(3,), name="more")


def test_a_subclass_that_changes_nothing_becomes_hardware():
    keras.utils.set_random_seed(4)
    model = keras.Sequential([keras.Input((6,)), Plain(5, name="hidden"), layers.Dense(3, name="end")])
    assert error(fp.emulate(fp.make_design(model, TARGET, X, PRECISION), X), model) < 2e-4
    rounded = fp.quantize(model, TARGET, X)
    np.testing.assert_array_equal(fp.emulate(fp.make_design(rounded, TARGET, X), X), np.asarray(rounded([X])))
    kernel, bias = model.get_layer("hidden").get_weights()
    kernel[:, :2] = 0.0
    model.get_layer("hidden").set_weights([kernel, bias])
    small = fp.apply_removal(model, fp.plan_removal(model))
    assert small.get_layer("hidden").units == 3
    assert error(small(X), model) < 1e-6


@pytest.mark.parametrize("layer", [Doubled(5, name="hidden"), ReLU(name="hidden"), Weighted(5, name="hidden")])
def test_a_layer_that_computes_something_else_does_not(layer, tmp_path):
    model = keras.Sequential([keras.Input((6,)), layer, layers.Dense(3, name="end")])
    with pytest.raises(UnsupportedLayerError, match=r"'hidden'.* of your own"):
        fp.make_design(model, TARGET, X, PRECISION)
    fp.export_onnx(model, tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(str(tmp_path / "model.onnx"))
    assert error(session.run(None, {session.get_inputs()[0].name: X})[0], model) < 2e-6
