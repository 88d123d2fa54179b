"""What a change costs in words, and the width that most layers have."""

from types import SimpleNamespace

import pytest

from fpgaprune.advice import cost_text
from fpgaprune.advice.narrower import _most


def prediction(latency, interval):
    return SimpleNamespace(latency_cycles=latency, interval_cycles=interval)


@pytest.mark.parametrize(
    ("latency", "said"),
    [
        (150, "latency x1.50 (100 to 150 cycles)"),
        (995, "latency x9.95 (100 to 995 cycles)"),
        (1_000, "latency x10.0 (100 to 1,000 cycles)"),
        (9_940, "latency x99.4 (100 to 9,940 cycles)"),
        (10_000, "latency x100 (100 to 10,000 cycles)"),
        (123_400, "latency x1,234 (100 to 123,400 cycles)"),
        (100, "the same latency and interval"),
    ],
)
def test_a_cost_is_a_factor_of_three_digits_and_both_counts(latency, said):
    assert cost_text(prediction(100, 5), prediction(latency, 5), True) == f"{said}; the function stays the same"


def test_both_times_are_said_and_an_accuracy_that_may_change():
    assert cost_text(prediction(10, 4), prediction(20, 2), False) == (
        "latency x2.00 (10 to 20 cycles), interval x0.50 (4 to 2 cycles); measure the accuracy again"
    )


@pytest.mark.parametrize(
    ("widths", "most"), [({}, 8), ({"a": 6}, 6), ({"a": 4, "b": 6, "c": 4}, 4), ({"a": 4, "b": 6, "c": 5}, 6)]
)
def test_the_width_of_most_layers_is_the_larger_of_two_as_frequent(widths, most):
    assert _most(widths) == most
