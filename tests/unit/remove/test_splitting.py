"""Convolutions that fall into independent groups of kernels."""

import keras
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from keras import layers

import fpgaprune as fp
from fpgaprune.errors import RemovalError
from fpgaprune.remove import find_groups, split_groups


def network(owner_in, owner_out, padding="same", data=0, **options):
    """A convolution in which input i reaches output o only if both have one owner."""
    keras.utils.set_random_seed(data)
    x = keras.Input((5, 5, len(owner_in)), name="x")
    y = layers.Conv2D(len(owner_out), 3, padding=padding, name="c", **options)(x)
    model = keras.Model(x, layers.Conv2D(2, 1, name="d")(y), name="net")
    kernel = np.random.default_rng(data).normal(size=model.get_layer("c").kernel.shape)
    kernel[:, :, np.not_equal.outer(owner_in, owner_out)] = 0.0
    model.get_layer("c").kernel.assign(kernel)
    return model


def test_even_groups_become_one_grouped_convolution():
    model = network([0, 1, 0, 1], [1, 0, 0, 1, 1, 0], activation="relu")
    (found,) = find_groups(model)
    assert found.path == "c"
    assert found.inputs == ((0, 2), (1, 3))
    assert found.outputs == ((1, 2, 5), (0, 3, 4))
    assert found.even
    assert found.multiplications == (25 * 9 * 24, 25 * 9 * 12)
    assert found.saved == 25 * 9 * 12
    small = split_groups(model)
    assert small.get_layer("c").groups == 2
    assert [layer.name for layer in small.layers] == ["x", "c_inputs", "c", "c_outputs", "d"]
    fp.equivalence(model, small, tolerance=1e-14).require()


def test_groups_in_order_need_no_selection():
    model = network([0, 0, 1, 1], [0, 1], use_bias=False)
    assert [layer.name for layer in split_groups(model).layers] == ["x", "c", "d"]


def test_uneven_groups_become_convolutions_side_by_side(tmp_path):
    model = network([0, 1, 0, 2, 0], [2, 0, 1, 0, 9])  # output 4 reads nothing
    (found,) = find_groups(model)
    assert not found.even
    assert found.outputs == ((1, 3, 4), (2,), (0,))
    small = split_groups(model)
    assert [small.get_layer(f"c_group{k}").filters for k in range(3)] == [3, 1, 1]
    fp.equivalence(model, small, tolerance=1e-14).require()
    small.save(tmp_path / "small.keras")
    again = keras.saving.load_model(tmp_path / "small.keras")
    fp.equivalence(small, again, tolerance=0).require()


@settings(max_examples=5, deadline=None, derandomize=True)
@given(
    st.lists(st.integers(0, 3), min_size=2, max_size=6),
    st.lists(st.integers(0, 3), min_size=2, max_size=6),
    st.booleans(),
)
def test_every_split_keeps_the_function(owner_in, owner_out, grouped):
    model = network(owner_in, owner_out, data=len(owner_in))
    found = find_groups(model)
    assert all(group.saved > 0 for group in found)
    fp.equivalence(model, split_groups(model, grouped=grouped), tolerance=1e-13).require()


def test_a_mixing_activation_is_left_alone():
    assert find_groups(network([0, 1], [0, 1], activation="softmax")) == ()


def test_groups_of_other_weights_are_refused():
    model = network([0, 1], [0, 1])
    found = find_groups(model)
    model.get_layer("c").kernel.assign(np.ones((3, 3, 2, 2)))
    with pytest.raises(RemovalError, match="find the groups again"):
        split_groups(model, found)


def test_a_group_that_swallows_a_kernel_is_caught():
    """The comparison is what stands between a wrong block and the user."""
    model = network([0, 1], [0, 1])
    small = split_groups(model)
    kernel = np.asarray(small.get_layer("c").kernel).copy()
    kernel[0, 0, 0, 0] = 0.0
    small.get_layer("c").kernel.assign(kernel)
    assert not fp.equivalence(model, small, tolerance=1e-9).ok
