"""Batches of a user's function: read whole, or bounded where they have no end."""

import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf

from fpgaprune.errors import DataError
from fpgaprune.flow.engine import parse_config, read_data
from fpgaprune.flow.task import batched_data, load_data

X, Y = np.arange(20.0).reshape(10, 2), np.arange(10) % 2


def pairs():
    return tf.data.Dataset.from_tensor_slices((X, Y)).batch(4)


def endless():
    return ((X[:4] + number, Y[:4]) for number in itertools.count())


class Batches(keras.utils.PyDataset):
    def __init__(self, count, batch=(X[:4], Y[:4])):
        super().__init__()
        self.count, self.batch = count, batch

    @property
    def num_batches(self):
        return self.count

    def __getitem__(self, number):
        return self.batch


@pytest.fixture
def given(monkeypatch):
    """A function that makes `load_data` read what it gets."""

    def given(train, test=None, **more):
        found = {"train": train, "test": pairs() if test is None else test}
        monkeypatch.setattr("fpgaprune.flow.task.data.named_function", lambda *_: lambda: found)
        return load_data("mine:load", **more)

    return given


def unknown_length():
    signature = (tf.TensorSpec((4, 2), tf.float64), tf.TensorSpec((4,), tf.int64))
    return tf.data.Dataset.from_generator(endless, output_signature=signature)


@pytest.mark.parametrize("make", [unknown_length, endless, lambda: iter(unknown_length())])
def test_a_set_that_does_not_end_is_refused_within_a_bound(given, monkeypatch, make):
    monkeypatch.setattr(batched_data, "MOST_SAMPLES", 100)
    with pytest.raises(DataError, match=r"'train' has given 104 samples and goes on; .*\[data\] samples = 104"):
        given(make())


@pytest.mark.parametrize("make", [lambda: pairs().repeat(), lambda: Batches(None)])
def test_a_set_that_says_that_it_never_ends_is_refused_at_once(given, make):
    with pytest.raises(DataError, match=r"'train' never ends; .*\[data\] samples = 500000"):
        given(make())


def test_the_free_memory_bounds_what_is_read(given, monkeypatch):
    monkeypatch.setattr(batched_data, "available_bytes", lambda: 1000)
    with pytest.raises(DataError, match=r"'train' has given 4 samples of .* GiB, 30% of the free memory, and goes on"):
        given((np.zeros((4, 100)), np.zeros(4)))


@pytest.mark.parametrize(
    "make", [unknown_length, endless, lambda: pairs().repeat(), lambda: Batches(None), lambda: Batches(9)]
)
def test_the_first_samples_are_read_where_the_flow_says_how_many(given, make):
    data = given(make(), samples=10)
    assert data.x_train.shape == (10, 2)
    assert np.array_equal(data.x_train[:4], X[:4])
    assert data.y_train.tolist()[:4] == Y[:4].tolist()
    assert given(make(), samples=8).x_train.shape == (8, 2)


def test_fewer_samples_than_the_flow_says_are_all_of_them(given):
    assert given(pairs(), samples=1000).x_train.shape == (10, 2)
    assert load_data("digits", samples=50).x_test.shape == (50, 8, 8, 1)


@pytest.mark.parametrize("train", [lambda: Batches(2), lambda: [(X[:4], Y[:4]), (X[:4], Y[:4])]])
def test_other_sets_of_batches_are_read(given, train):
    assert np.array_equal(given(train()).x_train, np.concatenate([X[:4], X[:4]]))


def test_a_pair_of_arrays_is_one_batch(given):
    assert np.array_equal(given((X, Y), test=(X, Y)).x_test, X.astype("float32"))


def test_a_third_element_is_the_weight_of_each_sample(given):
    weights = np.linspace(0, 1, 10)
    data = given(tf.data.Dataset.from_tensor_slices((X, Y, weights)).batch(4))
    assert np.array_equal(data.sample_weight_train, weights.astype("float32"))
    assert data.sample_weight_test is None
    named = {"a": Y, "b": X}
    data = given(
        tf.data.Dataset.from_tensor_slices(({"one": X, "two": X}, named, {"b": weights})).batch(4),
        test=tf.data.Dataset.from_tensor_slices(({"one": X, "two": X}, named)).batch(4),
    )
    assert np.array_equal(data.sample_weight_train[0], np.ones(10))
    turned = data.in_order(["two", "one"], ["b", "a"])
    assert np.array_equal(turned.sample_weight_train[0], weights.astype("float32"))
    assert turned.first(3).sample_weight_train[1].tolist() == [1, 1, 1]
    assert (
        data.digest()
        != given(
            tf.data.Dataset.from_tensor_slices(({"one": X, "two": X}, named)).batch(4),
            test=tf.data.Dataset.from_tensor_slices(({"one": X, "two": X}, named)).batch(4),
        ).digest()
    )


@pytest.mark.parametrize(
    ("train", "message"),
    [
        ([(X[:4], Y[:4]), (X[:4, :1], Y[:4])], r"samples of shape \(1,\) and \(2,\); wanted one shape"),
        ([(X[:4], Y[:4]), (X[:4],)], r"elements of \[1, 2\] parts"),
        ([({"a": X[:4]}, Y[:4]), ({"b": X[:4]}, Y[:4])], "different parts"),
        ([(X[:0], Y[:0])], "a batch without samples"),
        (X, "is a ndarray; wanted a batched tf.data.Dataset, a PyDataset"),
        ("digits", "is a str; wanted"),
        (Batches(2, ([[1.0], [1.0, 2.0]], Y[:2])), "elements|different|samples|no array"),
    ],
)
def test_batches_that_do_not_fit_each_other_are_refused(given, train, message):
    with pytest.raises(DataError, match=message):
        given(train)


def test_reading_is_told(given, monkeypatch, tmp_path):
    monkeypatch.setattr(batched_data, "EVERY_S", 0.0)
    told = []

    class Progress:
        def stage(self, name, state, note="", seconds=None):
            told.append((name, state, note))

        def step(self, done, total, note=""):
            told.append((done, total, note))

    given((X, Y))
    read_data(parse_config({"data": {"source": "mine:load", "samples": 9}}, "test"), Progress())
    assert told[0] == ("data", "running", "")
    assert (4, 10, "4 samples of 'test' read") in told or (4, 12, "4 samples of 'test' read") in told
    assert told[-1] == ("data", "done", "9 training samples")
