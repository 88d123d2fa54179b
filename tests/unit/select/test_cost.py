"""Scores for each adder: what is divided by what, and what that changes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fpgaprune.errors import MaskError
from fpgaprune.network import PLAIN
from fpgaprune.rtl import share
from fpgaprune.select import Adders, Named, parse_cost, select
from fpgaprune.values import FixedType, MaskSet, signed_digits

from .fakes import fake_model, random_arrays


@settings(derandomize=True, deadline=None, max_examples=40)
@given(st.integers(0, 99), st.integers(2, 32), st.sampled_from([0.0, 1.0, 2.0, 3.5]))
def test_a_score_is_divided_by_the_digits_of_its_unit(seed, bits, power):
    weight = random_arrays(seed)["conv1/kernel"]
    partition = Named("kernel").partition("conv1/kernel", weight.shape, PLAIN)
    scores = np.abs(weight).mean((0, 1)).ravel().astype(np.float64)
    found = Adders(bits, power).divided(scores, "conv1/kernel", weight, partition)
    kind = next(
        kind
        for kind in (FixedType(bits, integer, True, "RND", "SAT") for integer in range(-20, 20))
        if np.round(np.abs(weight).max() / kind.lsb) <= kind.raw_max
    )
    digits = np.vectorize(lambda raw: len(signed_digits(int(raw))))(kind.to_raw(weight)).mean((0, 1)).ravel()
    assert found == pytest.approx(scores / (digits + 0.1) ** power, rel=1e-12)


def test_of_units_that_matter_alike_the_one_with_most_adders_is_locked():
    values = [21 / 32, 3 / 8, 1 / 2, 7 / 8]  # three digits, two, one, two

    def alike(_model, _data):
        return {"conv/kernel": np.ones(1)}

    model = fake_model({"conv/kernel": np.broadcast_to(np.float32(values), (3, 3, 1, 4))})
    for sparsity, free in ((0.25, [False, True, True, True]), (0.75, [False, False, True, False])):
        masks = select(model, sparsity, criterion=alike, cost="adders(8)")
        assert masks["conv/kernel"].all(axis=(0, 1, 2)).tolist() == free


def test_what_is_left_takes_fewer_adders_than_a_selection_by_size_leaves():
    arrays = random_arrays(3, (8, 16, 16))
    model = fake_model(arrays)
    left = {}
    for cost in ("none", "adders(6)"):
        masks = select(model, 0.75, cost=cost)
        adders = 0
        for path, weight in arrays.items():
            if path not in masks:
                continue
            raw = FixedType.holding(float(np.abs(weight).max()), 6).to_raw(weight * masks[path])
            adders += len(share(raw.reshape(-1, raw.shape[-1]), search=False).sums)
        left[cost] = adders
    assert left["adders(6)"] < 0.9 * left["none"]


@pytest.mark.parametrize("granularity", ["weight", "kernel", "filter", "block(1, 1, 2, 2)", "2:4"])
def test_the_power_0_and_a_scale_of_the_weights_change_nothing(granularity):
    arrays = random_arrays(5, (4, 8))
    sparsity = None if ":" in granularity else 0.5
    plain = select(fake_model(arrays), sparsity, granularity)
    assert same(plain, select(fake_model(arrays), sparsity, granularity, cost=Adders(6, 0)))
    costed = select(fake_model(arrays), sparsity, granularity, cost="adders(6)")
    assert not same(plain, costed)
    larger = {path: weight * 8 for path, weight in arrays.items()}
    assert same(costed, select(fake_model(larger), sparsity, granularity, cost="adders(6)"))


def test_a_unit_at_zero_costs_what_the_others_do():
    weight = np.array([[0.0, 0.75, 0.5]], np.float32)
    partition = Named("weight").partition("dense/kernel", weight.shape, PLAIN)
    found = Adders(8, 1.0).divided(np.ones(3), "dense/kernel", weight, partition)
    assert found == pytest.approx([1 / 1.6, 1 / 2.1, 1 / 1.1])
    assert np.isfinite(Adders(8).divided(np.ones(3), "dense/kernel", weight * 0, partition)).all()


def test_scores_below_zero_are_refused():
    model = fake_model(random_arrays(0))

    def negative(_model, _data):
        return {"conv1/kernel": -np.ones(1), "conv2/kernel": np.ones(1)}

    with pytest.raises(MaskError, match="'conv1/kernel' is -1; wanted none below 0"):
        select(model, 0.5, criterion=negative, cost="adders(6)")
    assert isinstance(select(model, 0.5, criterion=negative), MaskSet)


@pytest.mark.parametrize("text", ["adders", "adders()", "adders(6,)", "adders(6, -1)", "luts(6)", "adders(six)", 6])
def test_other_costs_are_refused_with_the_forms(text):
    with pytest.raises(MaskError, match="wanted none, or adders"):
        parse_cost(text)


@pytest.mark.parametrize(("bits", "power"), [(1, 2.0), (33, 2.0), (True, 2.0), (6.0, 2.0), (6, -1), (6, float("nan"))])
def test_impossible_numbers_are_refused(bits, power):
    with pytest.raises(MaskError, match=r"wanted 2 to 32 bits|wanted a number from 0 on"):
        Adders(bits, power)


def test_costs_as_text():
    assert parse_cost("none") is None
    assert parse_cost(" adders( 6 ) ") == Adders(6, 2.0)
    assert parse_cost("adders(6, 2.5)") == Adders(6, 2.5)


def same(one, other):
    return all(np.array_equal(one[path], other[path]) for path in one)
