"""Activations and layers are known by what they are, not by what they are called."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import keras
import numpy as np
import onnxruntime
import tensorflow as tf
from keras import layers

import fpgaprune as fp
from fpgaprune.network import save_keras

from ._asking import refused

_TARGET = fp.Target.of("xc7z020clg400-1")
_PRECISION = fp.Precision(16, 16, 24)
_X = np.random.default_rng(0).normal(size=(64, 6)).astype("float32")


def _network(*hidden: Any) -> Any:
    keras.utils.set_random_seed(0)
    return keras.Sequential([keras.Input((6,)), *hidden, layers.Dense(3, name="end")])


def _named(name: str) -> Any:
    def function(x: Any) -> Any:
        return 0.5 * x + 0.3

    function.__name__ = function.__qualname__ = name
    return function


def _onnx(model: Any, folder: Path, x: Any = _X) -> Any:
    fp.export_onnx(model, folder / "model.onnx")
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"))
    return session.run(None, {session.get_inputs()[0].name: x})[0]


def _same(found: Any, model: Any, bound: float, x: Any = _X) -> None:
    wanted = np.asarray(model(x))
    assert np.abs(np.asarray(found) - wanted).max() <= bound * np.abs(wanted).max()


def _everywhere(activation: Any, folder: Path, bound: float) -> None:
    """What a model with `activation` computes, in hardware, rounded, in ONNX and smaller."""
    model = _network(layers.Dense(8, activation=activation, name="hidden"))
    fp.select(model, sparsity=0.5, granularity="filter")
    design = fp.make_design(model, _TARGET, _X, _PRECISION)
    _same(fp.emulate(design, _X), model, bound)
    assert fp.to_verilog(design, folder / "verilog")
    assert fp.estimate(design, _TARGET)
    rounded = fp.quantize(model, _TARGET, _X, _PRECISION)
    _same(rounded([_X]), model, bound)
    _same(_onnx(model, folder), model, 2e-6)
    kernel, bias = model.get_layer("hidden").get_weights()
    kernel[:, :3], bias[:] = 0.0, 0.4
    model.get_layer("hidden").set_weights([kernel, bias])
    small = fp.apply_removal(model, fp.plan_removal(model))
    assert small.get_layer("hidden").units == 5
    _same(small(_X), model, 1e-6)


def a_function_of_hers_called_as_keras_calls_one(folder: Path) -> None:
    """No hardware is made of a function of hers called `tanh`, `relu`, `sigmoid`, `silu`, `relu6` or `linear`."""
    for name in ("tanh", "relu", "sigmoid", "silu", "relu6", "linear"):
        model = _network(layers.Dense(8, activation=_named(name), name="hidden"))
        refused(lambda model=model: fp.make_design(model, _TARGET, _X), rf"layer 'hidden'.*'{name}', a function of")
        refused(lambda model=model: fp.quantize(model, _TARGET, _X), rf"layer 'hidden'.*'{name}', a function of")
        _same(_onnx(model, folder), model, 2e-6)
        small = fp.apply_removal(model, fp.plan_removal(model))
        _same(small(_X), model, 1e-6)


def a_recurrent_layer_with_a_function_of_hers(folder: Path) -> None:
    """A GRU and an LSTM whose gate is a function of hers called `sigmoid` keep it in ONNX."""
    x = np.random.default_rng(1).normal(size=(16, 5, 4)).astype("float32")
    for cell in (layers.GRU, layers.LSTM):
        keras.utils.set_random_seed(0)
        recurrent = cell(6, recurrent_activation=_named("sigmoid"), activation=_named("tanh"), name="hidden")
        model = keras.Sequential([keras.Input((5, 4)), recurrent, layers.Dense(2)])
        _same(_onnx(model, folder, x), model, 5e-6, x)
        refused(lambda model=model: fp.make_design(model, _TARGET, x), r"'hidden'.*'tanh', a function of")


def a_batch_norm_behind_a_function_called_linear(folder: Path) -> None:
    """A BatchNorm behind a function of hers called `linear`, which squares, is not folded through it in ONNX."""
    square = _named("linear")
    square = functools.wraps(square)(lambda x: x * x)
    model = _network(layers.Dense(8, activation=square, name="hidden"), layers.BatchNormalization(name="norm"))
    model.get_layer("norm").set_weights([np.full(8, value) for value in (2.0, 0.5, 0.1, 0.7)])
    _same(_onnx(model, folder), model, 5e-6)


def a_leaky_relu_as_activation(folder: Path) -> None:
    """`Dense(8, activation=LeakyReLU(0.2))` works in selection, rounding, removal, hardware and ONNX."""
    _everywhere(layers.LeakyReLU(negative_slope=0.2), folder, 3e-4)


def a_partial_of_relu(folder: Path) -> None:
    """`functools.partial(keras.activations.relu, max_value=6)` works everywhere as relu6."""
    _everywhere(functools.partial(keras.activations.relu, max_value=6), folder, 3e-4)


def an_elu_of_her_alpha(folder: Path) -> None:
    """`activation=ELU(alpha=0.5)` works everywhere, with its alpha."""
    _everywhere(layers.ELU(alpha=0.5), folder, 0.02)


def names_that_users_write(folder: Path) -> None:
    """`relu6`, `leaky_relu`, `elu`, `swish`, `exponential` as strings work everywhere, but for what types round."""
    for name, bound in (("relu6", 3e-4), ("leaky_relu", 3e-4), ("elu", 0.02), ("swish", 0.02), ("exponential", 0.02)):
        _everywhere(name, folder / name, bound)


def a_function_of_tensorflow(folder: Path) -> None:
    """`activation=tf.nn.relu` is Keras's relu."""
    _everywhere(tf.nn.relu, folder, 3e-4)


def settings_that_hardware_does_not_have(folder: Path) -> None:
    """A PReLU inside a layer, a lambda and `log_softmax` are refused in a line before any training."""
    for activation, said in (
        (layers.PReLU(), "put that after it as a layer of its own"),
        (lambda x: 3 * x, "'<lambda>', a function of"),
        ("log_softmax", "no activation 'log_softmax'"),
    ):
        model = _network(layers.Dense(8, activation=activation, name="hidden"))
        refused(lambda model=model: fp.make_design(model, _TARGET, _X), "layer 'hidden'", said)
        assert fp.plan_removal(model) is not None


def a_layer_of_hers_called_dense(folder: Path) -> None:
    """A layer of hers called `Dense`, and a subclass of `Dense` with another `call`, are refused by their name."""

    class Dense(layers.Layer):
        def build(self, shape: Any) -> None:
            self.kernel = self.add_weight(shape=(shape[-1], 8), name="kernel")

        def call(self, inputs: Any) -> Any:
            return keras.ops.sin(inputs @ self.kernel)

    class Doubled(layers.Dense):
        def call(self, inputs: Any, training: Any = None) -> Any:
            return 2 * super().call(inputs, training)

    for layer in (Dense(name="hidden"), Doubled(8, name="hidden")):
        model = _network(layer)
        refused(lambda model=model: fp.make_design(model, _TARGET, _X), "'hidden' is a D.*, a layer of your own")
        _same(_onnx(model, folder), model, 2e-6)


def a_subclass_that_changes_nothing(folder: Path) -> None:
    """A subclass of `Dense` that only sets its activation becomes hardware as a Dense, and shrinks as one."""

    class Hidden(layers.Dense):
        def __init__(self, units: int, **options: Any) -> None:
            super().__init__(units, activation="relu", **options)

    model = _network(Hidden(8, name="hidden"))
    _same(fp.emulate(fp.make_design(model, _TARGET, _X, _PRECISION), _X), model, 3e-4)
    kernel, bias = model.get_layer("hidden").get_weights()
    kernel[:, :3] = 0.0
    model.get_layer("hidden").set_weights([kernel, bias])
    small = fp.apply_removal(model, fp.plan_removal(model))
    assert small.get_layer("hidden").units == 5
    _same(small(_X), model, 1e-6)


def a_function_that_a_file_would_lose(folder: Path) -> None:
    """A model whose file would name Keras's `tanh` for hers is not saved, and nothing is left behind."""
    model = _network(layers.Dense(8, activation=_named("tanh"), name="hidden"))
    refused(lambda: save_keras(model, folder / "model.keras"), "layer 'hidden' has as activation 'tanh', a function of")
    assert not list(folder.iterdir())
