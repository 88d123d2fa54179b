"""The table of scalar functions against Keras."""

import keras
import numpy as np
import pytest

from fpgaprune.design import FUNCTIONS, RECTIFIED, function_named

IN_KERAS = [name for name in FUNCTIONS if hasattr(keras.activations, name)]


def of_keras(name, x):
    return np.asarray(getattr(keras.activations, name)(keras.ops.convert_to_tensor(x, "float64")))


@pytest.mark.parametrize("name", [name for name in IN_KERAS if FUNCTIONS[name].values is not None])
def test_values_are_those_of_keras(name):
    x = np.linspace(-9, 9, 721)
    assert FUNCTIONS[name].values(x) == pytest.approx(of_keras(name, x), abs=1e-7)


@pytest.mark.parametrize("name", [name for name in IN_KERAS if FUNCTIONS[name].at_zero is not None])
def test_the_value_at_zero_is_that_of_keras(name):
    assert FUNCTIONS[name].at_zero == pytest.approx(float(of_keras(name, np.zeros((1, 1)))[0, 0]), abs=1e-12)


@pytest.mark.parametrize("name", [name for name, f in FUNCTIONS.items() if f.table and f.table.form == RECTIFIED])
def test_a_table_beside_x_is_within_a_step_of_the_function_at_every_number(name):
    function, size = FUNCTIONS[name], 1024
    x = np.linspace(-50, 50, 100001)
    found = (
        np.maximum(x, 0)
        + function.values(function.table.places(size))[
            np.minimum(np.abs(x) * size // function.table.reach, size - 1).astype(int)
        ]
    )
    assert np.abs(found - function.values(x)).max() <= function.table.reach / size


def test_a_function_is_found_in_each_of_its_spellings():
    assert function_named("LeakyReLU") is function_named("leaky_relu") is FUNCTIONS["leaky_relu"]
    assert function_named("wobble") is None


def test_what_a_design_holds_has_values_or_parameters():
    # A table without values cannot be made.
    assert all(f.values is not None for f in FUNCTIONS.values() if f.table is not None)
