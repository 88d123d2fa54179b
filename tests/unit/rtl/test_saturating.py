"""Saturating additions joined in a tree: the bits of one after another, in a depth that grows as the logarithm."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from fpgaprune.emulate import emulate
from fpgaprune.errors import RtlError
from fpgaprune.rtl import Circuit, Number, Run, saturated, schedule, summed, sums, to_verilog
from fpgaprune.values import OVERFLOW_MODES, ROUNDING_MODES, FixedType
from tests.unit.rtl.networks import Net

KINDS = st.builds(
    FixedType,
    st.integers(2, 9),
    st.integers(2, 4),
    st.booleans(),
    overflow=st.sampled_from(["SAT", "SAT_SYM"]),
)


def totals(kind, start, columns):
    """One after another, by NumPy."""
    total = np.full(len(columns[0]), start)
    for column in columns:
        total = np.clip(total + column, kind.raw_min, kind.raw_max)
    return total


def tree(kind, start, widths, sharing=1):
    circuit = Circuit()
    addends = [
        Number(circuit, circuit.input(w, True, -(1 << (w - 1)), (1 << (w - 1)) - 1), kind.fraction) for w in widths
    ]
    total = saturated(Number.constant(circuit, start, kind.fraction), addends, kind, sharing)
    assert kind.raw_min <= total.low
    assert total.high <= kind.raw_max
    circuit.output(total.place, kind.width)
    return circuit


FIXED = settings(max_examples=60, deadline=None, derandomize=True, database=None)
DRAWN = (KINDS, st.lists(st.integers(1, 10), min_size=1, max_size=40), st.integers(0, 3), st.integers(0, 10**6))


@FIXED
@given(*DRAWN)
def test_a_tree_gives_the_bits_of_one_after_another(kind, widths, sharing, seed):
    rng = np.random.default_rng(seed)
    start = int(rng.integers(kind.raw_min, kind.raw_max + 1))
    columns = [rng.integers(-(1 << (w - 1)), 1 << (w - 1), 64) for w in widths]
    # Runs of one sign push a total against its bounds and back.
    columns = [np.abs(c) - 1 if rng.random() < 0.2 else c for c in columns]
    found = tree(kind, start, widths, sharing).evaluate(columns)[0]
    assert (found == totals(kind, start, columns)).all()


def refuted():
    check = test_a_tree_gives_the_bits_of_one_after_another.hypothesis.inner_test
    with pytest.raises(AssertionError):
        settings(FIXED, phases=[Phase.generate])(given(*DRAWN)(check))()


@pytest.mark.parametrize(
    ("method", "mutant"),
    [
        ("then", lambda self, later: Run(self.addend + later.addend, self.low, self.high)),
        ("then", lambda self, later: Run(self.addend + later.addend, later.low, later.after(self.high))),
        ("then", lambda self, later: Run(later.addend, later.after(self.low), later.after(self.high))),
        ("after", lambda self, total: total.between(self.low, self.high)),
    ],
)
def test_runs_that_are_joined_otherwise_are_seen(method, mutant, monkeypatch):
    monkeypatch.setattr(Run, method, mutant)
    refuted()


def test_runs_in_another_order_are_seen(monkeypatch):
    then = Run.then
    monkeypatch.setattr(Run, "then", lambda self, later: then(later, self))
    refuted()


def test_depth_and_registers_grow_with_the_additions_and_not_with_their_square():
    kind = FixedType(12, 12, overflow="SAT")
    small, large = (tree(kind, 0, [8] * count) for count in (100, 800))
    one, other = schedule(small, 1), schedule(large, 1)
    assert one.depth < 30
    assert other.depth < 40
    assert other.register_bits(large) < 9 * one.register_bits(small)


def test_the_more_sums_read_the_same_inputs_the_more_follow_one_another():
    kind = FixedType(12, 12, overflow="SAT")

    def adders(sharing):
        circuit = tree(kind, 0, [8] * 200, sharing)
        return sum(circuit.nodes[place].op in ("add", "min", "max") for place in circuit.alive())

    assert adders(1) > adders(4) > adders(16) == adders(100)
    assert schedule(tree(kind, 0, [8] * 200, 100), 1).depth < 2 * sums._LONGEST_ROW + 10


@pytest.mark.parametrize("overflow", OVERFLOW_MODES)
@pytest.mark.parametrize("rounding", ROUNDING_MODES)
@pytest.mark.parametrize("fraction", [0, 3])
def test_sums_of_other_fractions_give_the_bits_of_the_accumulator(overflow, rounding, fraction):
    """Whether they are rounded first and joined in a tree, or one after another."""
    kind = FixedType(8, 7, rounding=rounding, overflow=overflow)
    circuit = Circuit()
    addends = [Number(circuit, circuit.input(7, True, -64, 63), fraction) for _ in range(24)]
    total = summed(addends, kind, tree=False)
    circuit.output(total.at_fraction(kind.fraction).place, kind.width)
    rng = np.random.default_rng(fraction)
    columns = [rng.integers(-64, 64, 100) for _ in addends]
    wanted = np.zeros(100, np.int64)
    for column in columns:
        real = wanted * kind.lsb + column * 2.0**-fraction
        wanted = kind.to_raw(real)
    assert (circuit.evaluate(columns)[0] == wanted).all()


@pytest.mark.parametrize("rounding", [mode for mode in ROUNDING_MODES if mode not in sums.TOWARDS_A_SIDE])
def test_rounding_by_the_sign_before_the_sum_is_seen(rounding, monkeypatch):
    monkeypatch.setattr(sums, "TOWARDS_A_SIDE", ROUNDING_MODES)
    with pytest.raises(AssertionError):
        test_sums_of_other_fractions_give_the_bits_of_the_accumulator("SAT", rounding, 3)


def test_an_average_of_many_pixels_is_a_tree_though_it_is_rounded():
    circuit = Circuit()
    addends = [Number(circuit, circuit.input(8, True, -128, 127), 6) for _ in range(600)]
    circuit.output(summed(addends, FixedType(16, 12), tree=False).place, 16)
    assert schedule(circuit, 1).depth == 10


def saturating_dense(inputs, outputs, overflow):
    net = Net(np.random.default_rng(5))
    x = net.flatten(net.add("Input", (), (inputs, 1, 1), {"result": FixedType(6, 3)}))
    design = net.design(net.dense(x, outputs))
    narrow = FixedType(9, 5, overflow=overflow)
    layers = [
        replace(la, types={**la.types, **({"accum": narrow} if "accum" in la.types else {})}) for la in design.layers
    ]
    return replace(design, layers=tuple(layers))


def test_a_layer_of_many_saturating_sums_is_short_text(tmp_path):
    design = saturating_dense(900, 2, "SAT")
    project = to_verilog(design, tmp_path, adders="plain")
    assert sum((project.path / name).stat().st_size for name in project.files) < 3_000_000
    assert emulate(design, np.zeros((1, 900, 1, 1))).shape == (1, 2)


def test_more_sums_that_are_set_to_zero_than_can_follow_one_another_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("fpgaprune.rtl.sums.LONGEST_CHAIN", 40)
    with pytest.raises(
        RtlError, match=r"^layer 'dense2' \(Dense\): \d+ numbers are added one after another, because the"
    ):
        to_verilog(saturating_dense(100, 1, "SAT_ZERO"), tmp_path)
    to_verilog(saturating_dense(100, 1, "SAT"), tmp_path)
