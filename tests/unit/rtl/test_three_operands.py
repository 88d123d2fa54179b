"""Adders of three operands: the same values, about half as many adders, in fewer levels."""

import numpy as np
import pytest
from hypothesis import given, settings

from fpgaprune.design import VerilogLayout
from fpgaprune.errors import RtlError
from fpgaprune.rtl import Circuit, operands_of, schedule, with_three_operands

from .circuits import circuits
from .networks import parallel_design

FIXED = settings(max_examples=120, deadline=None, derandomize=True, database=None)


def values(circuit, count=40):
    rng = np.random.default_rng(1)
    return [rng.integers(-(1 << width - 1), 1 << width - 1, count) for width, _ in circuit.inputs]


@FIXED
@given(circuits(three=True))
def test_every_output_has_the_same_values_within_bounds_no_wider(circuit):
    made = with_three_operands(circuit)
    given = values(circuit)
    assert all(np.array_equal(a, b) for a, b in zip(circuit.evaluate(given), made.evaluate(given), strict=True))
    for (old, width), (new, as_wide) in zip(circuit.outputs, made.outputs, strict=True):
        assert width == as_wide
        assert circuit.nodes[old].low <= made.nodes[new].low
        assert made.nodes[new].high <= circuit.nodes[old].high


def total(count, signs=(1,), bias=0):
    """The sum of `count` inputs of six bits and a bias, as a tree of adders of two."""
    circuit = Circuit()
    found = [circuit.input(6, True, -32, 31) for _ in range(count)]
    turned = iter([signs[number % len(signs)] for number in range(count)] * 2)
    while len(found) > 1:
        a, b, *rest = found
        found = [*rest, circuit.add(a, b) if next(turned) > 0 else circuit.sub(a, b)]
    circuit.output(circuit.add(found[0], circuit.const(bias)), 16)
    return circuit


def adders(circuit):
    return [circuit.nodes[place].op for place in circuit.alive() if circuit.nodes[place].op in ("add", "sub", "sum")]


@pytest.mark.parametrize(
    ("count", "bias", "wanted", "depth"),
    [(9, 0, ["sum"] * 4, 2), (3, 0, ["sum"], 1), (2, 5, ["sum"], 1), (3, 5, ["sum", "add"], 2), (8, 7, ["sum"] * 4, 2)],
)
@pytest.mark.parametrize("signs", [(1,), (1, -1), (-1,)])
def test_n_numbers_take_about_half_as_many_adders(count, bias, wanted, depth, signs):
    circuit = total(count, signs, bias)
    made = with_three_operands(circuit)
    assert len(adders(made)) == len(wanted)
    assert sorted(set(adders(made)) - {"sub"}) == sorted(set(wanted))
    assert schedule(made, 1).depth <= schedule(circuit, 1).depth
    assert schedule(made, 1).depth == depth
    given = values(circuit)
    assert np.array_equal(circuit.evaluate(given)[0], made.evaluate(given)[0])


def test_a_sum_that_several_read_is_made_once():
    circuit = Circuit()
    a, b, c, d = (circuit.input(6, True, -32, 31) for _ in range(4))
    shared = circuit.add(a, b)
    circuit.output(circuit.add(shared, c), 8)
    circuit.output(circuit.sub(shared, d), 8)
    assert sorted(adders(with_three_operands(circuit))) == ["add", "add", "sub"]


def test_a_sum_joins_another_one_through_a_shift_that_nothing_else_reads():
    circuit = Circuit()
    a, b, c = (circuit.input(6, True, -32, 31) for _ in range(3))
    shifted = circuit.shl(circuit.add(a, b), 2)
    circuit.output(circuit.sub(circuit.const(5), circuit.sub(c, shifted)), 12)
    made = with_three_operands(circuit)
    assert adders(made) in (["sum", "add"], ["sum", "sub"])
    given = values(circuit)
    assert np.array_equal(circuit.evaluate(given)[0], made.evaluate(given)[0])


@pytest.mark.parametrize(
    ("part", "asked", "operands"),
    [("xc7z020clg400-1", None, 3), ("xc7z020clg400-1", 2, 2), ("gw1nr-9", None, 2), ("gw1nr-9", 3, 3), (None, None, 2)],
)
def test_the_part_says_how_many_operands_an_adder_has(part, asked, operands):
    design = parallel_design(3, 4)
    assert operands_of(design.__class__(**{**vars(design), "part": part}), VerilogLayout(operands=asked)) == operands


def test_other_numbers_are_refused():
    with pytest.raises(RtlError, match=r"operands of an adder are 4; wanted 2 or 3, or None"):
        VerilogLayout(operands=4)
