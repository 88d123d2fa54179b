"""Reuse factors: hls4ml's own conditions, and the nearest to one that does not meet them."""

import pytest

from fpgaprune.hls.reuse import nearest, product_size, reuse_problem, valid_reuse_factors


def test_they_are_those_of_hls4ml():
    backend = pytest.importorskip("hls4ml").backends.get_backend("Vitis")
    for n_in in range(1, 28):
        for n_out in range(1, 13):
            assert list(valid_reuse_factors(n_in, n_out, "resource")) == backend.get_valid_reuse_factors(n_in, n_out)


def test_an_unrolled_layer_has_neither_one_nor_the_largest():
    assert valid_reuse_factors(9, 4, "resource") == (1, 3, 9, 18, 36)
    assert valid_reuse_factors(9, 4, "resource_unrolled") == (3, 9, 18)
    assert valid_reuse_factors(1, 1, "resource_unrolled") == ()


@pytest.mark.parametrize(("wanted", "found"), [(2, (1, 3)), (8, (3, 9)), (20, (18, 36)), (99, (36,)), (0, (1,))])
def test_the_nearest_stand_on_either_side(wanted, found):
    assert nearest((1, 3, 9, 18, 36), wanted) == found


@pytest.mark.parametrize(
    ("strategy", "wanted", "problem"),
    [
        ("latency", 7, None),
        ("resource", 3, None),
        ("resource", 2, "9 inputs, 4 outputs: 1 or 3"),
        ("resource_unrolled", 1, "9 inputs, 4 outputs: 3"),
        ("distributed_arithmetic", 1, None),
        ("distributed_arithmetic", 3, "9 inputs, 4 outputs: 1"),
    ],
)
def test_a_problem_names_the_nearest(strategy, wanted, problem):
    assert reuse_problem(9, 4, strategy, wanted) == problem


def test_sizes_are_counted_as_hls4ml_counts_them():
    assert product_size((3, 3, 2, 5), depthwise=False) == (18, 5)
    assert product_size((12, 5), depthwise=False) == (12, 5)
    assert product_size((3, 3, 4, 1), depthwise=True) == (36, 4)
