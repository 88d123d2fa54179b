"""Separable convolutions become two layers of hardware, and stay one layer of the masks."""

from __future__ import annotations

import keras
import numpy as np
import pytest
from keras import layers

import fpgaprune as fp
from fpgaprune.errors import FpgaPruneError
from fpgaprune.lowering import fold, lower, split_separable
from fpgaprune.values import named_weights
from tests.called import called

TARGET = fp.Target.of("xc7z020clg400-1", io_type="io_stream")
IMAGE, SERIES = (8, 8, 2), (9, 2)


def network(dims, **options):
    kind = layers.SeparableConv2D if dims == 2 else layers.SeparableConv1D
    given = keras.Input(IMAGE if dims == 2 else SERIES)
    x = kind(3, 3, padding="same", activation="relu", name="first", **options)(given)
    x = layers.BatchNormalization(name="norm")(kind(4, 3, use_bias=False, name="second")(x))
    model = keras.Model(given, layers.Dense(3, name="head")(layers.Flatten()(x)), name="separable")
    rng = np.random.default_rng(5)
    for path, weight in named_weights(model).items():
        values = rng.normal(size=weight.shape) * 0.5
        weight.assign(np.abs(values) + 0.5 if path.endswith(("variance", "gamma")) else values)
    return model, rng.normal(size=(12, *given.shape[1:])).astype("float32")


@pytest.mark.parametrize(("dims", "strides"), [(1, 1), (1, 2), (2, 1), (2, 2)])
def test_the_two_halves_compute_what_the_layer_does(dims, strides):
    model, x = network(dims, strides=strides)
    halves = split_separable(keras.Model(model.inputs, model.outputs))
    assert [layer.name for layer in halves.layers if "first" in layer.name] == ["first_depthwise", "first"]
    assert split_separable(halves) is halves
    wanted = called(model, x)
    np.testing.assert_allclose(called(halves, x), wanted, rtol=0, atol=1e-5)
    np.testing.assert_allclose(called(fold(model), x), wanted, rtol=0, atol=1e-5)


@pytest.mark.parametrize("dims", [1, 2])
def test_locks_of_both_halves_are_certified_in_the_written_project(dims, tmp_path):
    model, x = network(dims)
    chosen = [
        "first/depthwise_kernel[..., 1, 0]",
        "first/pointwise_kernel[..., 0, 2]",
        "second/pointwise_kernel[..., 3]",
    ]
    masks = fp.MaskSet.from_slices(model, chosen)
    model.compile("sgd", "mse")
    fp.lock(model, masks)
    project = fp.to_hls(model, TARGET, x, tmp_path / "hls")
    link = fp.certify(project, masks).require().links[0]
    assert link.locked == masks.locked_count
    assert {"first_depthwise", "first", "second_depthwise", "second"} <= {layer.layer for layer in link.layers}
    # A weight that is not zero is seen under the name that it has in Keras, whichever half holds it.
    for half in ("depthwise_kernel[0, ..., 0, 0]", "pointwise_kernel[..., 1, 1]"):
        with pytest.raises(FpgaPruneError, match=f"first/{half.partition('[')[0]}"):
            fp.certify(project, fp.MaskSet.from_slices(model, [f"first/{half}"])).require()
    folded = called(lower(model, TARGET, x, None, "network").folded, x)
    assert np.abs(fp.emulate(project.design, x) - folded).max() <= 0.05 * np.abs(folded).max()


@pytest.mark.slow
@pytest.mark.parametrize("dims", [1, 2])
def test_the_compiled_project_has_the_emulated_bits(dims, tmp_path):
    model, x = network(dims)
    project = fp.to_hls(model, TARGET, x, tmp_path / "hls")
    assert project.compile(600).predict(x).tobytes() == fp.emulate(project.design, x).tobytes()
