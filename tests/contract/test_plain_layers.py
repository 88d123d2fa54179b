"""Layers that hardware has no operation for, but that are sums of what it has: the design computes what Keras does.

Each row is a network whose design is emulated with types so wide that only rounding is left, and becomes Verilog.
"""

import keras
import numpy as np
import pytest

import fpgaprune as fp
from fpgaprune.hls import check_model
from fpgaprune.values import named_weights
from tests.called import called
from tests.quick import quick

L = keras.layers
TARGET = fp.Target.of("xc7z020clg400-1", clock_ns=10.0)
IMAGE, STEPS, NUMBERS = (8, 8, 3), (6, 4), (6,)


def adapted(shape, axis):
    layer = L.Normalization(axis=axis)
    layer.adapt(np.random.default_rng(1).normal(3, 2, (64, *shape)) * np.linspace(1, 3, shape[-1]))
    return layer


def encoder():
    parts = [keras.Input(IMAGE), L.Conv2D(4, 3, name="conv"), L.BatchNormalization(), L.ReLU(), L.Dropout(0.2)]
    return keras.Sequential(parts, name="encoder")


def functional():
    entry = keras.Input((36,))
    return keras.Model(entry, L.Add()([L.Dense(4, name="a")(entry), L.Dense(4, name="b")(entry)]), name="head")


def conv(padding="same"):
    return [L.Conv2D(3, 3, padding=padding, name="conv"), L.Flatten(), L.Dense(2, name="out")]


ROWS = {
    "normalization": (NUMBERS, lambda: [adapted(NUMBERS, -1), L.Dense(3, activation="relu", name="out")]),
    "normalization and dropout": (NUMBERS, lambda: [adapted(NUMBERS, -1), L.Dropout(0.1), L.Dense(3, name="out")]),
    "normalization of all": (NUMBERS, lambda: [adapted(NUMBERS, None), L.Dense(3, name="out")]),
    "normalization, given": (NUMBERS, lambda: [L.Normalization(mean=2.0, variance=9.0), L.Dense(3, name="out")]),
    "normalization, inverted": (
        NUMBERS,
        lambda: [L.Dense(3, name="out"), L.Normalization(mean=[1.0, 2, 3], variance=[4.0, 1, 9], invert=True)],
    ),
    # The shift must not reach the zeros of the padding.
    "normalization before padding": (IMAGE, lambda: [adapted(IMAGE, -1), *conv()]),
    "normalization of rows": (IMAGE, lambda: [adapted(IMAGE, 1), *conv()]),
    "normalization of pixels": (IMAGE, lambda: [adapted(IMAGE, (1, 2, 3)), *conv()]),
    "normalization after a convolution": (
        IMAGE,
        lambda: [L.Conv2D(2, 3), L.Normalization(mean=[1.0, 2.0], variance=[4.0, 9.0]), *conv()],
    ),
    "normalization without spread": (
        NUMBERS,
        lambda: [L.Normalization(mean=[3.0] * 6, variance=[4.0] * 5 + [1.0]), L.Dense(3, name="out")],
    ),
    "rescaling": (IMAGE, lambda: [L.Rescaling(1 / 127.5, offset=-1.0), *conv()]),
    "rescaling of pixels": (IMAGE, lambda: [L.Rescaling(np.linspace(0.5, 1, 8)[:, None, None].tolist()), *conv()]),
    "augmentations": (
        IMAGE,
        lambda: [
            *(L.RandomFlip(), L.RandomRotation(0.1), L.RandomZoom(0.1), L.RandomContrast(0.2), *conv()[:1]),
            *(L.RandomTranslation(0.1, 0.1), L.GaussianNoise(0.1), L.AlphaDropout(0.1), L.SpatialDropout2D(0.2)),
            *conv()[1:],
        ],
    ),
    "augmentations in a model of their own": (IMAGE, lambda: [keras.Sequential([L.RandomFlip()]), *conv()]),
    "nested": (IMAGE, lambda: [encoder(), L.Flatten(), L.Dense(3, name="conv"), L.Dense(2, name="out")]),
    "nested twice": (
        IMAGE,
        lambda: [keras.Sequential([encoder(), L.MaxPooling2D()]), L.Flatten(), functional(), L.Dense(2, name="out")],
    ),
    "repeated": (NUMBERS, lambda: [L.Dense(4), L.RepeatVector(3), L.Conv1D(2, 2), L.Flatten(), L.Dense(2, name="out")]),
    "every step": (
        STEPS,
        lambda: [
            *(L.Conv1D(4, 3, name="conv"), L.TimeDistributed(L.Dense(3, activation="relu", name="step"))),
            *(
                L.TimeDistributed(L.BatchNormalization()),
                L.TimeDistributed(L.Dropout(0.2)),
                L.Flatten(),
                L.Dense(2, name="out"),
            ),
        ],
    ),
}


def built(row):
    shape, layers = ROWS[row]
    keras.utils.set_random_seed(3)
    return keras.Sequential([keras.Input(shape), *layers()]), np.random.default_rng(2).normal(3, 2, (48, *shape))


@pytest.mark.parametrize("row", ROWS)
def test_hardware_computes_what_keras_does(row, tmp_path):
    model, x = built(row)
    design = fp.make_design(model, TARGET, x, fp.Precision(18, 18, 24))
    wanted = called(model, x)
    assert np.abs(fp.emulate(design, x).reshape(wanted.shape) - wanted).max() < 2e-4 * np.abs(wanted).max()
    assert check_model(model, TARGET).problems == ()
    fp.to_verilog(design, tmp_path)
    # Each kernel is known by the path of its weight, so that its locks can be certified.
    kernels = {path for path in named_weights(model) if path.endswith("/kernel")}
    assert kernels == {layer.sources["weight"] for layer in design.layers if "weight" in layer.sources}


# Removal has one rule for all of these.
ALIKE = {row for row in ROWS if row.startswith(("normalization of", "normalization,", "rescaling of"))}


@pytest.mark.parametrize("row", quick(ROWS.keys() - ALIKE, ROWS))
def test_removal_keeps_the_function(row):
    model, x = built(row)
    double = keras.models.clone_model(model, clone_function=_in_double)
    for path, variable in named_weights(model).items():
        values = variable.numpy()
        if path.endswith(("conv/kernel", "conv/bias")):
            values[..., 1] = 0
        named_weights(double)[path].assign(values)
    for layer in double.layers:
        if isinstance(layer, L.Normalization):
            layer.finalize_state()  # it computes with copies of its weights
    small = fp.apply_removal(double, fp.plan_removal(double))
    assert np.abs(called(small, x) - called(double, x)).max() < 1e-9
    if row == "every step":
        # The channel that the convolution no longer makes leaves, and the Dense of every step no longer reads it.
        kernels = [weight for path, weight in named_weights(small).items() if path.endswith("step/kernel")]
        assert [tuple(kernel.shape) for kernel in kernels] == [(3, 3)]


def _in_double(layer):
    if isinstance(layer, keras.Sequential):
        return keras.models.clone_model(layer, clone_function=_in_double)
    if isinstance(layer, keras.Model):
        return keras.models.clone_model(layer, clone_function=_in_double)
    return type(layer).from_config({**layer.get_config(), "dtype": "float64"})


def test_a_locked_kernel_of_a_model_inside_is_certified_in_the_project(tmp_path):
    model, x = built("nested")
    masks = fp.MaskSet.from_slices(model, ["encoder/conv/kernel[:, :, 1, 2]"])
    model.compile("sgd", "mse")
    fp.lock(model, masks)
    project = fp.to_hls(model, TARGET, x, tmp_path / "project")
    fp.certify(project, masks).require()
