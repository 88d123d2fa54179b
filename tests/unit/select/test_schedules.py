"""Schedules: the published numbers, and what they refuse."""

from itertools import pairwise

import pytest

from fpgaprune.errors import MaskError
from fpgaprune.select import ConstantSparsity, PolynomialDecay


def test_constant_sparsity_is_due_every_so_many_steps():
    schedule = ConstantSparsity(0.5, begin_step=3, end_step=9, frequency=3)
    assert [step for step in range(20) if schedule(step)[0]] == [3, 6, 9]
    assert schedule(3)[1] == 0.5
    assert ConstantSparsity(0.5, 0, frequency=4)(4000)[0]


def test_polynomial_decay_starts_fast_and_ends_at_the_goal():
    schedule = PolynomialDecay(0.2, 0.8, begin_step=0, end_step=100, power=3, frequency=10)
    values = [schedule(step)[1] for step in range(0, 101, 10)]
    assert values[0] == pytest.approx(0.2)
    assert values[5] == pytest.approx(0.8 - 0.6 * 0.5**3)
    assert values[-1] == 0.8
    gains = [b - a for a, b in pairwise(values)]
    assert gains == sorted(gains, reverse=True)
    assert schedule(500)[0] is False


def test_a_schedule_that_names_no_frequency_is_due_every_hundred_steps():
    for schedule in (ConstantSparsity(0.5, 50), PolynomialDecay(0.1, 0.5, 50, 999)):
        assert [step for step in range(400) if schedule(step)[0]] == [50, 150, 250, 350]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ConstantSparsity(50, 0), "ConstantSparsity has sparsity 50; wanted a fraction"),
        (lambda: ConstantSparsity(0.5, -1), "runs from step -1"),
        (lambda: ConstantSparsity(0.5, 5, 4), "to 4 every 100; wanted"),
        (lambda: PolynomialDecay(0.1, 0.9, 5, 5), "ends at step 5; wanted one after"),
        (lambda: PolynomialDecay(0.1, 0.9, 0, 5, frequency=0), "every 0; wanted"),
    ],
)
def test_bad_schedules_are_named(make, message):
    with pytest.raises(MaskError, match=message):
        make()
