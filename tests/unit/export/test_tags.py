"""Tags stand for elements of weights: they are exchanged for these, and say which weight and which order of axes."""

import numpy as np
import pytest

from fpgaprune.errors import ExportError
from fpgaprune.export import Place, Tags, can_be_tagged

RNG = np.random.default_rng(0)


def two_equal():
    tags = Tags()
    zeros = np.zeros((2, 3, 1, 4), dtype="float32")
    return tags, tags.add("a", zeros), tags.add("b", zeros)


def test_equal_arrays_have_other_tags():
    tags, a, b = two_equal()
    assert len(np.unique([a, b])) == a.size + b.size
    assert tags.knows(a)
    assert tags.knows(b)
    assert tags.place(b) == Place("b", (0, 1, 2, 3))


def test_an_array_that_comes_twice_keeps_its_tags():
    tags, array, other = Tags(), np.float32([[1, 2], [3, 4]]), np.float32([5, 6, 7])
    first, between = tags.add("a", array), tags.add("b", other)
    assert np.array_equal(tags.add("a", array.copy()), first)
    assert np.array_equal(tags.values(first), array)
    assert np.array_equal(tags.values(between), other)
    assert tags.place(first) == Place("a", (0, 1))
    assert np.array_equal(tags.values(tags.add("c", other)), other)


@pytest.mark.parametrize("other", [np.ones((2, 2), "float32"), np.zeros(4, "float32"), np.zeros((2, 2))])
def test_another_array_of_the_same_name_is_refused(other):
    tags = Tags()
    tags.add("a", np.zeros((2, 2), np.float32))
    with pytest.raises(ExportError, match="two weights of the model are called 'a'"):
        tags.add("a", other)


@pytest.mark.parametrize("order", [(3, 2, 0, 1), (2, 3, 0, 1), (0, 1, 2, 3)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_moved_tags_are_exchanged_for_moved_elements(order, dtype):
    tags = Tags()
    tags.add("other", RNG.normal(size=(5,)).astype(dtype))
    weight = RNG.normal(size=(2, 3, 1, 4)).astype(dtype)
    moved = np.transpose(tags.add("weight", weight), order)
    assert tags.place(moved) == Place("weight", order)
    assert tags.values(moved).tobytes() == np.transpose(weight, order).tobytes()
    assert tags.values(moved.reshape(-1)).tobytes() == np.transpose(weight, order).reshape(-1).tobytes()


def test_a_part_of_a_weight_is_no_weight_but_has_its_values():
    tags, a, b = two_equal()
    weight = RNG.normal(size=(6, 4)).astype("float32")
    c = tags.add("c", weight)
    assert tags.place(c[:3]) is None
    assert tags.place(np.concatenate([a, b])) is None
    assert tags.place(np.concatenate([c[:3], c[:3]])) is None
    assert tags.values(c[2:4]).tobytes() == weight[2:4].tobytes()


def test_what_is_no_tag_stays():
    tags, *_ = two_equal()
    plain = np.array([0.0, -0.0, 1.5, -3e9 / 2**10, np.inf, -np.inf], dtype="float32")
    assert tags.values(plain).tobytes() == plain.tobytes()
    assert not tags.knows(plain)
    assert tags.place(plain) is None
    whole = np.arange(4)
    assert tags.values(whole) is whole
    assert not can_be_tagged(whole)


@pytest.mark.parametrize("change", [lambda t: t * np.float32(0.5), lambda t: -t, lambda t: t * np.float32(16)])
def test_numbers_that_were_computed_from_tags_are_an_error(change):
    tags, a, _ = two_equal()
    with pytest.raises(ExportError, match="tf2onnx computed with weights"):
        tags.values(change(a))
