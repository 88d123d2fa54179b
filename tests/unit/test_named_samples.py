"""Samples may be named after a network's inputs, as Keras takes them."""

import keras
import numpy as np
import pytest

import fpgaprune as fp
from fpgaprune.errors import DataError


@pytest.fixture(scope="module")
def two_inputs():
    """A model whose inputs are not in the order of their names, and samples for them."""
    keras.utils.set_random_seed(2)
    right, left = keras.Input((3,), name="right"), keras.Input((5,), name="left")
    out = keras.layers.Dense(2, name="dense")(keras.layers.Concatenate(name="both")([right, left]))
    rng = np.random.default_rng(2)
    samples = {"left": rng.normal(size=(40, 5)), "right": rng.normal(size=(40, 3))}
    return keras.Model([right, left], out), {name: x.astype("float32") for name, x in samples.items()}


def test_names_stand_for_the_order_of_the_inputs(two_inputs, tmp_path):
    model, named = two_inputs
    ordered, target = [named["right"], named["left"]], fp.Target.of("tang-nano-9k")
    design = fp.make_design(model, target, named)
    other = fp.make_design(model, target, ordered)
    assert [layer.types for layer in design.layers] == [layer.types for layer in other.layers]
    np.testing.assert_array_equal(fp.emulate(design, named), fp.emulate(design, ordered))


@pytest.mark.parametrize("given", [{"left": 1}, {"left": 1, "rihgt": 1}])
def test_other_names_are_refused_with_those_of_the_inputs(two_inputs, given):
    model, named = two_inputs
    wrong = dict.fromkeys(given, named["left"])
    design = fp.make_design(model, fp.Target.of("tang-nano-9k"), named)
    wanted = rf"samples are named {', '.join(given)}; .* takes right, left"
    with pytest.raises(DataError, match=wanted):
        fp.make_design(model, fp.Target.of("tang-nano-9k"), wrong)
    with pytest.raises(DataError, match=wanted):
        fp.emulate(design, wrong)
