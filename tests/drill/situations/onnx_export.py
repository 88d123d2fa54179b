"""ONNX files that run, tolerances that know the scale, and models of unusual kinds at every door."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import onnxruntime
import tensorflow as tf
from keras import layers

import fpgaprune as fp
from fpgaprune.export import run_onnx
from fpgaprune.flow.stages import onnx_error
from fpgaprune.target import find_part

from ...unit.remove.test_own_layers import around
from ._asking import command, refused


class _Own(layers.Layer):
    """Reads a tensor that is no weight of its own."""

    def call(self, x: Any) -> Any:
        return x * tf.constant(np.linspace(1, 2, x.shape[-1]), tf.float32)

    def compute_output_shape(self, shape: Any) -> Any:
        return shape


class _Net(keras.Model):
    """A network whose graph only its own code knows."""

    def __init__(self) -> None:
        super().__init__(name="net")
        self.first, self.last = layers.Dense(8, activation="relu", name="first"), layers.Dense(3, name="last")

    def call(self, x: Any) -> Any:
        return self.last(self.first(x))


class _Doubled(keras.Model):
    """A functional model whose own `call` computes something else than its graph."""

    def call(self, x: Any) -> Any:
        return 2 * super().call(x)


def _samples(shape: tuple[int, ...], largest: float = 1.0) -> Any:
    return (np.random.default_rng(1).random((32, *shape)) * largest).astype("float32")


def _outputs(model: Any, x: Any) -> Any:
    made = model.predict(x, verbose=0)
    return tuple(made) if isinstance(made, list) else made


def _same(model: Any, folder: Path, x: Any) -> None:
    """The file takes the inputs of `model` and nothing else, and gives its outputs."""
    path = fp.export_onnx(model, folder / "model.onnx")
    assert len(onnxruntime.InferenceSession(path).get_inputs()) == len(model.inputs)
    onnx_error(model, x, _outputs(model, x), run_onnx(path, x))


def _image(*front: Any, **options: Any) -> Any:
    stack = [layers.Conv2D(4, 3, name="conv", **options), layers.BatchNormalization(**options), layers.ReLU(**options)]
    return keras.Sequential(
        [keras.Input((8, 8, 2)), *front, *stack, layers.Flatten(), layers.Dense(3, name="head", **options)],
        name="image",
    )


def normalization_first(folder: Path) -> None:
    """A tutorial's network begins with an adapted Normalization, before layers that fold: its file runs and agrees."""
    norm = layers.Normalization()
    norm.adapt(_samples((8, 8, 2), 255))
    _same(_image(norm), folder, _samples((8, 8, 2), 255))


def tensors_that_a_model_captured(folder: Path) -> None:
    """A tensor times the input, in the graph, in a Lambda and in a layer of hers: each is a constant of the file."""
    row = tf.constant(np.linspace(1, 2, 6), tf.float32)
    x = keras.Input((6,))
    _same(keras.Model(x, layers.Dense(2)(x * row + np.arange(6, dtype="float32"))), folder, _samples((6,)))
    for layer in (layers.Lambda(lambda x: x / row), _Own()):
        _same(keras.Sequential([keras.Input((6,)), layer, layers.Dense(2)]), folder, _samples((6,)))


def the_number_of_samples_as_a_float(folder: Path) -> None:
    """A Lambda divides by the number of samples: the file computes it, and holds no number of an export."""
    model = keras.Sequential([keras.Input((4,)), layers.Lambda(lambda x: x / tf.cast(tf.shape(x)[0], tf.float32))])
    _same(model, folder, _samples((4,)))


def other_precisions(folder: Path) -> None:
    """Networks of float64, bfloat16 and mixed_float16 are exported as float32 files that onnxruntime runs."""
    for policy in ("float64", "bfloat16", "mixed_float16"):
        _same(_image(dtype=policy), folder, _samples((8, 8, 2)))


def pixels_of_every_size(folder: Path) -> None:
    """Inputs of 0..255, 0..65535 and 1e-6 pass the comparison with Keras, and one weight changed by 1 % does not."""
    model = _image()
    kernel = model.get_layer("head").kernel
    for largest in (255, 65535, 1e-6):
        x = _samples((8, 8, 2), largest)
        _same(model, folder, x)
        wanted, whole = model.predict(x, verbose=0), kernel.numpy()
        changed = whole.copy()
        changed.flat[np.abs(whole).argmax()] *= 1.01
        kernel.assign(changed)
        found = model.predict(x, verbose=0)
        kernel.assign(whole)
        if largest > 1:
            refused(lambda w=wanted, f=found, x=x: onnx_error(model, x, w, f), "differs from Keras", "another network")


def targets_of_a_million(folder: Path) -> None:
    """A regression with targets of 1e6 beside a probability: each output is compared at its own scale."""
    x = keras.Input((6,))
    shared = layers.Dense(16, activation="relu")(x)
    price = layers.Dense(1, kernel_initializer=keras.initializers.RandomNormal(stddev=1e6))(shared)
    model = keras.Model(x, [price, layers.Dense(1, activation="sigmoid")(shared)])
    given = _samples((6,))
    _same(model, folder, given)
    large, small = model.predict(given, verbose=0)
    refused(lambda: onnx_error(model, given, (large, small), (large, small + np.float32(1e-4))), "differs from Keras")


def a_subclassed_model_at_every_door(folder: Path) -> None:
    """A subclassed model is selected, locked, tuned and certified; one line says where a graph is needed."""
    model = _Net()
    model(np.zeros((1, 6), np.float32))
    model.compile("adam", "mse")
    masks = fp.select(model, sparsity=0.5, granularity="weight")
    fp.finetune(model, masks, _samples((6,)), np.zeros((32, 3), np.float32))
    fp.certify(model, masks).require()
    target = fp.Target(find_part("xc7z020"), "xc7z020clg400-1")
    doors: list[Callable[[], Any]] = [
        lambda: fp.plan_removal(model),
        lambda: fp.export_onnx(model, folder / "model.onnx"),
        lambda: fp.make_design(model, target, _samples((6,))),
        lambda: fp.quantize(model, target, _samples((6,))),
    ]
    for door in doors:
        refused(door, "'net' is a _Net", r"keras\.Model\(x, model\.call\(x\)\)")
    assert not list(folder.iterdir())
    # As the line says.
    x = keras.Input((6,))
    functional = keras.Model(x, model.call(x))
    _same(functional, folder, _samples((6,)))
    fp.certify(functional, masks).require()


def a_call_that_differs_from_the_graph(folder: Path) -> None:
    """A functional model with a `call` of its own is not exported as its graph alone, which computes something else."""
    x = keras.Input((6,))
    model = _Doubled(x, layers.Dense(3)(x), name="doubled")
    target = fp.Target(find_part("xc7z020"), "xc7z020clg400-1")
    refused(lambda: fp.export_onnx(model, folder / "model.onnx"), "'doubled' is a _Doubled")
    refused(lambda: fp.make_design(model, target, _samples((6,))), "'doubled' is a _Doubled")


def removal_around_layers_of_hers(folder: Path) -> None:
    """Filters leave before a Lambda and before a layer of hers that reads a tensor; the rest computes the same."""
    row = tf.constant([1.0, 2.0, 3.0, 4.0])
    for middle in (layers.Lambda(lambda x: x * row), _Own()):
        model = around(middle)
        plan = fp.plan_removal(model)
        before, after = plan.channel_counts
        assert after < before
        fp.equivalence(model, fp.apply_removal(model, plan, dtype="float64")).require()
        _same(fp.apply_removal(model, plan), folder, _samples((8, 8, 2)))


def a_layer_that_keeps_a_state(folder: Path) -> None:
    """A stateful GRU is refused by the export, the comparison and the design, each in a line that says what to do."""
    model = keras.Sequential([keras.Input((5, 3), batch_size=1), layers.GRU(4, stateful=True), layers.Dense(2)])
    target = fp.Target(find_part("xc7z020"), "xc7z020clg400-1")
    refused(lambda: fp.export_onnx(model, folder / "model.onnx"), "is stateful", "stateful=False")
    refused(lambda: fp.equivalence(model, model), "is stateful", "stateful=False")
    refused(lambda: fp.make_design(model, target, _samples((5, 3))), "keeps its state", "stateful=False")
    assert not list(folder.iterdir())


def a_run_that_cannot_export_ends_before_its_training(folder: Path) -> None:
    """A flow of a network that can become neither hardware nor an ONNX file says so at once, and writes nothing."""
    stack = [layers.Flatten(), layers.Discretization(bin_boundaries=[0.5], name="bins"), layers.Dense(10)]
    keras.Sequential([keras.Input((8, 8, 1)), *stack]).save(folder / "net.keras")
    (folder / "flow.toml").write_text('[train]\nmodel = "net.keras"\n[export]\n')
    said = command(folder, "run", "flow.toml", "--out", "out", status=2)
    assert "bins" in said
    assert not (folder / "out").exists()
