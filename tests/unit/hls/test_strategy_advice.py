"""What zeros save in each strategy, counted by hand."""

from dataclasses import replace

import numpy as np
import pytest

import fpgaprune as fp
from fpgaprune.hls import StrategyWarning, advise_strategy, warn_of_idle_zeros

from ..emulate.designs import EIGHT, WIDE, design, layer

# Two outputs of four inputs each: with two weights a multiplier, one multiplier of the second output has only zeros.
WEIGHTS = np.array([[1, 0], [0, 0], [0, 5], [7, 3]])


def made(strategy, reuse, weights=WEIGHTS, io_type="io_stream"):
    types = {"weight": EIGHT, "bias": EIGHT, "accum": WIDE}
    raws = {"weight": weights, "bias": np.zeros(2, np.int64)}
    entry = layer("x", "Input", None, (4,))
    dense = layer("fc", "Dense", "x", (2,), types=types, weights=raws, strategy=strategy, reuse_factor=reuse)
    target = fp.Target.of("xc7z020clg400-1", io_type=io_type, strategy=strategy, reuse_factor=reuse)
    return design(entry, dense, io_type=io_type), target


@pytest.mark.parametrize(
    ("strategy", "reuse", "multipliers", "saved"),
    [
        ("latency", 1, 8, 4),
        ("latency", 2, 4, 2),
        ("distributed_arithmetic", 1, 8, 4),
        ("resource", 1, 8, 4),
        ("resource", 2, 4, 0),
        ("resource_unrolled", 2, 4, 1),
        ("resource_unrolled", 4, 2, 0),
    ],
)
def test_what_zeros_save(strategy, reuse, multipliers, saved):
    found = advise_strategy(*made(strategy, reuse)).layers[0]
    assert (found.weights, found.zeros, found.multipliers, found.saved) == (8, 4, multipliers, saved)


def test_a_strategy_in_which_zeros_save_nothing_is_warned_of_with_the_figures():
    advice = advise_strategy(*made("resource", 2))
    assert advice.recommended == "resource_unrolled"
    assert advice.text == (
        "strategy 'resource' with reuse factor 2 saves 0 of 4 multipliers by the 4 zero weights of fc; "
        "'resource_unrolled' would leave out 1 multipliers at the same reuse factor"
    )
    with pytest.warns(StrategyWarning, match="saves 0 of 4 multipliers"):
        warn_of_idle_zeros(advice)


def test_latency_is_recommended_where_unrolling_frees_nothing():
    advice = advise_strategy(*made("resource", 4))
    assert advice.recommended == "latency"
    assert "'latency' would leave out the multiplications of all 4 zeros" in advice.text


def test_a_backend_without_latency_is_told_of_reuse_one():
    made_design, target = made("resource", 2)
    advice = advise_strategy(made_design, replace(target, backend="oneAPI"))
    assert advice.recommended == "resource"
    assert "only reuse factor 1 leaves them out" in advice.text


@pytest.mark.parametrize("strategy", ["latency", "resource_unrolled"])
def test_nothing_is_said_where_zeros_save(strategy):
    assert advise_strategy(*made(strategy, 1 if strategy == "latency" else 2)).text == ""


def test_nothing_is_said_where_there_are_no_zeros():
    advice = advise_strategy(*made("resource", 2, np.ones((4, 2), np.int64)))
    assert advice.text == ""
    warn_of_idle_zeros(advice)
