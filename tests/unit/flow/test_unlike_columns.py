"""Columns of an input that differ by so much that one type of few bits leaves some of them nothing are named."""

import keras
import numpy as np
import pytest

from fpgaprune.flow import unlike_columns

LAYERS = keras.layers
RNG = np.random.default_rng(0)


def network(width, *first):
    return keras.Sequential([keras.Input((width,), name="entry"), *first, LAYERS.Dense(2)])


@pytest.mark.parametrize(
    ("scales", "flat"),
    [
        # Values within +-127: steps of 1 in 8 bits.
        ((127.0, 4.1, 1.9), 1),
        ((127.0, 1.9, 0.0), 1),
        ((127.0, 3.9, 2.1), 0),
        ((1.0, 1.0, 1.0), 0),
        ((1e4, 1e-3, 1.0), 2),
        ((0.0, 0.0, 0.0), 0),
    ],
)
def test_columns_with_fewer_than_four_steps_are_counted(scales, flat):
    x = np.array([[1.0, -1.0, 1.0], [-1.0, 1.0, -1.0]]) * 0.99 * scales
    said = unlike_columns(network(3), x)
    assert len(said) == bool(flat)
    assert all(line.startswith("input 'entry' holds values up to ") for line in said)
    assert all(
        f", and {flat} of its 3 columns have fewer than 4 steps of one type of 8 bits: " in line for line in said
    )


@pytest.mark.parametrize("first", [LAYERS.Normalization, LAYERS.BatchNormalization])
def test_an_input_that_is_scaled_first_is_left_out(first):
    x = RNG.normal(size=(20, 3)) * [1e4, 1.0, 1e-3]
    assert unlike_columns(network(3, LAYERS.Dense(3)), x)
    assert not unlike_columns(network(3, first()), x)
    inner = keras.Sequential([keras.Input((3,)), first(), LAYERS.Dense(2)])
    assert not unlike_columns(network(3, inner), x)


def test_places_of_a_text_pixels_and_a_few_borders_are_no_such_columns():
    tokens = np.stack([RNG.integers(0, 5000, 20), RNG.integers(0, 3, 20)], 1)
    assert not unlike_columns(network(2, LAYERS.Embedding(5000, 4), LAYERS.Flatten()), tokens)
    image = keras.Sequential([keras.Input((4, 4, 1)), LAYERS.Conv2D(2, 3), LAYERS.Flatten(), LAYERS.Dense(2)])
    assert not unlike_columns(image, RNG.integers(0, 255, (20, 4, 4, 1)).astype("uint8"))
    borders = np.where(np.arange(40) < 3, 0.01, 1.0) * RNG.random((20, 40))
    assert not unlike_columns(network(40), borders)
