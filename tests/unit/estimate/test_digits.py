"""Counts of multiplications against a slow reference."""

import numpy as np
import pytest

from fpgaprune.estimate import count_products, expect_products


def test_every_multiplication_has_one_kind():
    raw = np.array([[0, 1, -8, 3], [11, 11, 7, 0], [85, -85, 12, 0]])
    counted = count_products(raw)
    assert (counted.total, counted.zero, counted.power_of_two, counted.few, counted.many) == (12, 3, 2, 3, 4)
    # 11 appears twice on one input and is one multiplier; 85 and -85 are two.
    assert counted.distinct_many == 3
    assert counted.distinct_few == 3
    assert counted.constant_bits == 8


def test_equal_constants_on_different_inputs_are_not_shared():
    assert count_products(np.array([[11], [11]])).distinct_many == 2
    assert count_products(np.array([[11, 11]])).distinct_many == 1


def test_a_layer_of_zeros_needs_nothing():
    counted = count_products(np.zeros((4, 5), np.int64))
    assert (counted.zero, counted.nonzero, counted.distinct_few, counted.distinct_many) == (20, 0, 0, 0)


def test_expected_sharing_is_near_the_counted_one():
    rng = np.random.default_rng(1)
    raw = rng.integers(-63, 64, size=(40, 32))
    counted = count_products(raw)
    expected = expect_products(
        counted.total,
        counted.zero,
        counted.power_of_two,
        counted.many,
        40,
        counted.constant_bits,
        counted.magnitude_bits / counted.nonzero,
    )
    assert expected.few == counted.few
    assert expected.distinct_many == pytest.approx(counted.distinct_many, rel=0.1)
    assert expected.distinct_few == pytest.approx(counted.distinct_few, rel=0.1)
