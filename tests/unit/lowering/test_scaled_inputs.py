"""An input of unlike columns that is normalised first keeps every column, however few bits an activation has."""

import keras
import numpy as np
import pytest

import fpgaprune as fp
from fpgaprune.errors import FpgaPruneError
from fpgaprune.lowering import Precision, finer, quantize
from fpgaprune.values import FixedType
from tests.called import called

TARGET = fp.Target.of("xc7z020clg400-1", clock_ns=10.0)


@pytest.mark.parametrize("trained", [False, True])
def test_each_column_of_a_table_counts(trained):
    rng = np.random.default_rng(0)
    # As in a table of cars: cylinders, displacement, horsepower, weight, acceleration, origin.
    x = rng.normal([5.5, 194, 104, 2977, 15.5, 0.5], [1.7, 104, 38, 849, 2.8, 0.3], (400, 6)).astype("float32")
    norm = keras.layers.BatchNormalization() if trained else keras.layers.Normalization()
    model = keras.Sequential([keras.Input((6,)), norm, keras.layers.Dense(1, kernel_initializer="ones")])
    if trained:
        norm.set_weights([np.ones(6), np.zeros(6), x.mean(axis=0), x.var(axis=0)])
    else:
        norm.adapt(x)
    design = fp.make_design(model, TARGET, x)
    wanted = called(model, x)
    assert np.abs(fp.emulate(design, x).reshape(wanted.shape) - wanted).max() < 0.1
    assert design.layers[0].types["result"].width > 8


def test_pixels_of_whole_numbers_stay_as_wide():
    x = np.random.default_rng(0).integers(0, 256, (64, 4, 4, 3)).astype("float32")
    layers = [keras.layers.Normalization(mean=120.0, variance=3600.0), keras.layers.Conv2D(2, 3)]
    design = fp.make_design(keras.Sequential([keras.Input((4, 4, 3)), *layers]), TARGET, x)
    assert design.layers[0].types["result"].width == 8


def test_a_type_gets_finer_only_as_far_as_needed():
    kind = FixedType(8, 8)
    assert finer(kind, 2.0, 1 / 32) == FixedType(14, 8)
    assert finer(kind, 2.0, 1 / 32, np.arange(5.0)) == kind
    assert finer(kind, 0.0, 1 / 32) == kind
    assert finer(kind, 1e12, 1.0).width == 32


@pytest.mark.parametrize(
    ("scales", "make"),
    [
        ((1e-8, 1e8), lambda model, x: fp.make_design(model, TARGET, x)),
        ((1.0, 1e8), lambda model, x: quantize(model, TARGET, x, Precision(8, 8))),
    ],
)
def test_columns_too_unlike_for_one_type_are_refused_with_what_to_do(scales, make):
    x = (np.random.default_rng(0).normal(size=(400, 2)) * scales).astype("float32")
    norm = keras.layers.Normalization(name="norm")
    norm.adapt(x)
    model = keras.Sequential([keras.Input((2,)), norm, keras.layers.Dense(1)])
    with pytest.raises(
        FpgaPruneError, match=r"layer 'norm' scales .* bits, more than (the )?\d+.*: scale the columns of the da"
    ):
        make(model, x)
    alike = ((x - x.mean(axis=0)) / x.std(axis=0)).astype("float32")
    norm.adapt(alike)
    make(model, alike)
