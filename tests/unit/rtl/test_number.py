"""Numbers in circuits against the emulator's exact numbers, value by value."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fpgaprune.emulate import Exact
from fpgaprune.rtl import Circuit, Number, reciprocal, schedule
from fpgaprune.values import OVERFLOW_MODES, ROUNDING_MODES, FixedType

types = st.builds(
    FixedType,
    st.integers(1, 10),
    st.integers(-3, 12),
    st.booleans(),
    st.sampled_from(ROUNDING_MODES),
    st.sampled_from(OVERFLOW_MODES),
)


def every(kind):
    low = -(1 << (kind.width - 1)) if kind.signed else 0
    return np.arange(low, low + (1 << kind.width), dtype=np.int64)


def inputs(circuit, kind):
    raws = every(kind)
    return Number(circuit, circuit.input(kind.width, kind.signed, int(raws[0]), int(raws[-1])), kind.fraction), raws


def exact(raws, kind):
    return Exact(raws.astype(np.float64), kind.fraction, int(raws.min()), int(raws.max()))


@settings(derandomize=True, deadline=None, max_examples=300)
@given(types, types)
def test_a_cast_has_the_bits_of_the_emulator(source, target):
    circuit = Circuit()
    x, raws = inputs(circuit, source)
    circuit.output(x.into(target).place, target.width)
    assert (circuit.evaluate([raws])[0] == exact(raws, source).into(target).integers()).all()


@settings(derandomize=True, deadline=None, max_examples=100)
@given(types, types, types, st.integers(1, 30))
def test_arithmetic_has_the_bits_of_the_emulator(one, two, target, divisor):
    rng = np.random.default_rng(0)
    circuit = Circuit()
    (x, xs), (y, ys) = inputs(circuit, one), inputs(circuit, two)
    xs, ys = rng.choice(xs, 200), rng.choice(ys, 200)
    a = Exact(xs.astype(np.float64), one.fraction, x.low, x.high)
    b = Exact(ys.astype(np.float64), two.fraction, y.low, y.high)
    pairs = [(x + y, a + b), (x - y, a - b), (x * y, a * b), (x.quotient(divisor), a.quotient(divisor))]
    for number, _ in pairs:
        circuit.output(number.into(target).place, target.width)
    for found, (_, wanted) in zip(circuit.evaluate([xs, ys]), pairs, strict=True):
        assert (found == wanted.into(target).integers()).all()


@pytest.mark.parametrize("largest", [1, 7, 255, 4095])
def test_a_reciprocal_divides_every_number(largest):
    values = np.arange(largest + 1)
    for divisor in range(1, 70):
        multiplier, bits = reciprocal(divisor, largest)
        assert (values * multiplier >> bits == values // divisor).all()
        # One less is not enough for all of them.
        assert divisor & (divisor - 1) == 0 or divisor > largest or multiplier * divisor > 1 << bits
        # Nor is a product with a bit less.
        if bits and largest >= divisor:
            less = -(-(1 << bits - 1) // divisor)
            assert (values * less >> bits - 1 != values // divisor).any()


def test_the_larger_of_ranges_that_are_apart_or_of_one_node_costs_nothing():
    circuit = Circuit()
    x, y = circuit.input(4, False, 0, 9), circuit.input(4, False, 9, 15)
    before = len(circuit.nodes)
    assert [circuit.smaller(*pair) for pair in ((x, y), (y, x), (x, x))] == [x, x, x]
    assert [circuit.larger(*pair) for pair in ((x, y), (y, x), (y, y))] == [y, y, y]
    assert len(circuit.nodes) == before
    z = circuit.input(4, False, 8, 12)
    assert len({circuit.smaller(x, z), circuit.larger(x, z), x, z}) == 4


def test_equal_nodes_exist_once_and_zero_adds_nothing():
    circuit = Circuit()
    x = circuit.input(8, True, -128, 127)
    assert circuit.add(x, circuit.const(3)) == circuit.add(x, circuit.const(3))
    assert circuit.add(x, circuit.const(0)) == x
    assert circuit.wrap(x, 8, True) == x
    assert circuit.clip(x, -200, 200) == x
    assert circuit.nodes[circuit.clip(x, 0, 15)].width == 5


def test_a_schedule_reads_every_value_at_its_stage():
    circuit = Circuit()
    values = [circuit.input(8, True, -128, 127) for _ in range(9)]
    total = values[0]
    for value in values[1:]:
        total = circuit.add(total, value)
    circuit.output(total, 12)
    plan = schedule(circuit, 2)
    assert plan.depth == 4
    # The last input waits until the last addition.
    assert plan.delays[values[8]] == 3
    assert schedule(circuit, 8).depth == 1


def test_wiring_needs_no_clock():
    circuit = Circuit()
    circuit.output(circuit.wrap(circuit.input(8, True, -128, 127), 4, True), 4)
    assert schedule(circuit, 2).depth == 0
