"""Reuse factors: hls4ml's own conditions, and the nearest to one that does not meet them."""

import pytest

from fpgaprune.hls.reuse import nearest, product_size, settle_reuse, valid_reuse_factors


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
    ("strategy", "wanted", "factor", "near"),
    [
        ("latency", 7, 7, (7,)),
        ("resource", 3, 3, (1, 3)),
        ("resource", 2, 1, (1, 3)),
        ("resource", 7, 9, (3, 9)),
        ("resource", 99, 36, (36,)),
        ("resource_unrolled", 1, 3, (3,)),
        ("distributed_arithmetic", 1, 1, (1,)),
        ("distributed_arithmetic", 3, 1, (1,)),
    ],
)
def test_the_nearest_is_taken_and_of_two_the_smaller(strategy, wanted, factor, near):
    reuse = settle_reuse([(9, 4)], strategy, wanted)
    assert (reuse.wanted, reuse.factor, reuse.size) == (wanted, factor, "9 inputs, 4 outputs")
    assert set(near) <= set(reuse.near)


def test_two_products_of_a_layer_have_one_factor_or_none():
    reuse = settle_reuse([(9, 12), (4, 12)], "resource", 3)
    assert reuse.size == "9 inputs, 12 outputs, and 4 inputs of the same outputs"
    assert reuse.factor in valid_reuse_factors(9, 12, "resource")
    assert reuse.factor in valid_reuse_factors(4, 12, "resource")
    assert settle_reuse([(1, 1)], "resource_unrolled", 1).factor is None


def test_sizes_are_counted_as_hls4ml_counts_them():
    assert product_size((3, 3, 2, 5), depthwise=False) == (18, 5)
    assert product_size((12, 5), depthwise=False) == (12, 5)
    assert product_size((3, 3, 4, 1), depthwise=True) == (36, 4)
