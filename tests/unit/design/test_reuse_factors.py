"""Reuse factors: hls4ml's own conditions, and the nearest to one that does not meet them."""

import math

import pytest

from fpgaprune.design import legal_reuse_factors, nearest_reuse_factor, neighbours, product_size, settle_reuse


def test_they_are_those_of_hls4ml():
    backend = pytest.importorskip("hls4ml").backends.get_backend("Vitis")
    for n_in in range(1, 28):
        for n_out in range(1, 13):
            assert list(legal_reuse_factors(n_in, n_out, "resource")) == backend.get_valid_reuse_factors(n_in, n_out)


@pytest.mark.parametrize(("n_in", "n_out"), [(16, 12), (24, 120), (75, 32), (7, 1), (1, 9), (288, 16)])
def test_they_meet_the_conditions_of_the_templates(n_in, n_out):
    def allowed(factor):  # FPGABackend._validate_reuse_factor, as a sentence
        limit = math.ceil(n_in * n_out / min(n_in, factor))
        return (
            (limit % n_out == 0 or factor >= n_in)
            and (factor % n_in == 0 or factor < n_in)
            and n_in * n_out % factor == 0
        )

    legal = legal_reuse_factors(n_in, n_out, "resource")
    assert list(legal) == [factor for factor in range(1, n_in * n_out + 1) if allowed(factor)]
    for wanted in (1, 5, 18, 1024, 10**6):
        assert abs(nearest_reuse_factor(legal, wanted) - wanted) == min(abs(factor - wanted) for factor in legal)


def test_latency_of_a_published_design_follows_from_them():
    # jdweitz/wa-hls4ml 80-24-120 at a requested reuse of 2047: 3,365 cycles are 1,920 + 1,440 and 5 more.
    factors = [nearest_reuse_factor(legal_reuse_factors(*size, "resource"), 2047) for size in ((80, 24), (24, 120))]
    assert factors == [1920, 1440]


def test_an_unrolled_layer_has_neither_one_nor_the_largest():
    assert legal_reuse_factors(9, 4, "resource") == (1, 3, 9, 18, 36)
    assert legal_reuse_factors(9, 4, "resource_unrolled") == (3, 9, 18)
    assert legal_reuse_factors(1, 1, "resource_unrolled") == ()


@pytest.mark.parametrize(("wanted", "found"), [(2, (1, 3)), (8, (3, 9)), (20, (18, 36)), (99, (36,)), (0, (1,))])
def test_the_nearest_stand_on_either_side(wanted, found):
    assert neighbours((1, 3, 9, 18, 36), wanted) == found


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
    assert reuse.factor in legal_reuse_factors(9, 12, "resource")
    assert reuse.factor in legal_reuse_factors(4, 12, "resource")
    assert settle_reuse([(1, 1)], "resource_unrolled", 1).factor is None


def test_sizes_are_counted_as_hls4ml_counts_them():
    assert product_size((3, 3, 2, 5), depthwise=False) == (18, 5)
    assert product_size((12, 5), depthwise=False) == (12, 5)
    assert product_size((3, 3, 4, 1), depthwise=True) == (36, 4)
