"""Known-bad designs and emulations: each must be noticed."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from fpgaprune.backends import as_built
from fpgaprune.design import Design
from fpgaprune.emulate import Exact, emulate, first_difference, trace
from fpgaprune.hls import layer_of
from fpgaprune.values import OVERFLOW_MODES, ROUNDING_MODES, FixedType

KIND = FixedType(10, 5, True, "RND", "SAT")
EXACT = FixedType(24, 14)
X = np.random.default_rng(4).uniform(-8, 8, (200, 4))


def network(weights: np.ndarray, accum: FixedType = EXACT, reuse: int = 1) -> Design:
    types = {"result": KIND, "weight": KIND, "bias": KIND, "accum": accum}
    arrays = {"weight": weights, "bias": np.array([3, -5, 7])}
    strategy = "resource" if reuse > 1 else "latency"
    dense = layer_of("fc", "Dense", ("x",), (3,), types, arrays, reuse_factor=reuse, strategy=strategy)
    relu = layer_of("relu", "Activation", ("fc",), (3,), {"result": KIND}, {}, {}, {"activation": "relu"})
    return as_built(Design("net", (layer_of("x", "Input", (), (4,), {"result": KIND}), dense, relu), ("relu",)))


WEIGHTS = np.random.default_rng(5).integers(-60, 61, (4, 3))


@pytest.mark.parametrize("place", list(np.ndindex(4, 3)))
def test_one_place_in_one_weight_is_noticed_and_found_in_its_layer(place):
    tampered = WEIGHTS.copy()
    tampered[place] += 1
    found = first_difference(network(tampered), X, trace(network(WEIGHTS), X))
    assert found is not None
    assert found.layer == "fc"


@pytest.mark.parametrize(("mode", "other"), list(itertools.combinations(ROUNDING_MODES, 2)))
def test_no_two_rounding_modes_are_the_same(mode, other):
    value = Exact(np.arange(-64.0, 64.0), 4, -64, 63)
    kind = FixedType(12, 10, True, mode)
    assert value.into(kind).raw.tolist() != value.into(replace(kind, rounding=other)).raw.tolist()


@pytest.mark.parametrize(("mode", "other"), list(itertools.combinations(OVERFLOW_MODES, 2)))
def test_no_two_overflow_modes_are_the_same(mode, other):
    value = Exact(np.arange(-64.0, 64.0), 0, -64, 63)
    kind = FixedType(5, 5, True, "TRN", mode)
    assert value.into(kind).raw.tolist() != value.into(replace(kind, overflow=other)).raw.tolist()


def test_a_saturating_accumulator_shows_the_order_of_addition():
    narrow = FixedType(10, 5, True, "TRN", "SAT")
    assert not np.array_equal(emulate(network(WEIGHTS, narrow), X), emulate(network(WEIGHTS, narrow, 2), X))


def test_a_wrapping_accumulator_hides_it():
    narrow = FixedType(14, 5, True, "TRN", "WRAP")
    assert np.array_equal(emulate(network(WEIGHTS, narrow), X), emulate(network(WEIGHTS, narrow, 2), X))
