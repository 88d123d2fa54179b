"""The stages that need the fewest registers: valid, as deep as before, and fewer there are not."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st

from fpgaprune.rtl import COSTS, Circuit, Number, Schedule, Timing, pipelining, schedule, with_small_tables
from fpgaprune.values import FixedType
from tests.unit.rtl.circuits import circuits, faults, register_bits

LEVELS = st.integers(1, 4)
FIXED = settings(max_examples=80, deadline=None, derandomize=True, database=None)


def early(circuit, levels):
    timing = Timing.of(circuit, levels)
    return Schedule.of(circuit, dict(timing.first), timing.depth)


def chain(count, kind, width=8):
    """The products of `count` inputs with 3, one after another added to a total that saturates."""
    circuit = Circuit()
    total = Number.constant(circuit, 1, 0)
    for _ in range(count):
        x = circuit.input(width, True, -(1 << (width - 1)), (1 << (width - 1)) - 1)
        total = (total + Number(circuit, circuit.add(x, x, 1), 0)).into(kind)
    circuit.output(total.place, kind.width)
    return circuit


@FIXED
@given(circuits(), LEVELS)
def test_every_value_is_there_when_it_is_read_and_no_stage_is_longer_than_asked(circuit, levels):
    plan = schedule(circuit, levels)
    assert faults(circuit, plan.stage, plan.depth, levels) == []
    assert plan.register_bits(circuit) == register_bits(circuit, plan.stage, plan.depth)


@FIXED
@given(circuits(), LEVELS)
def test_it_is_as_deep_as_the_earliest_and_never_takes_more_register_bits(circuit, levels):
    plan, before = schedule(circuit, levels), early(circuit, levels)
    assert faults(circuit, before.stage, before.depth, levels) == []
    assert plan.depth == before.depth
    assert plan.register_bits(circuit) <= before.register_bits(circuit)


@FIXED
@given(circuits(), LEVELS)
def test_more_bits_than_32_bits_count_give_the_same_stages(circuit, levels):
    """The joined outputs of a layer of 640 had; the cut of a sum that wrapped around never ended."""
    lives = pipelining.Lives.of(circuit, Timing.of(circuit, levels))
    assume(lives.width.size)
    much = replace(lives, width=lives.width << 31)
    assert pipelining.fewest_registers(much).tolist() == pipelining.fewest_registers(lives).tolist()


def fewest(circuit, depth, levels):
    """Register bits of the best of all schedules, tried one by one."""
    places = [p for p in circuit.alive() if circuit.nodes[p].op not in ("input", "const")]
    fixed = dict.fromkeys(circuit.alive(), 0)
    leaving = {place for place, _ in circuit.outputs}
    best = None
    for choice in itertools.product(range(depth + 1), repeat=len(places)):
        stage = {**fixed, **dict(zip(places, choice, strict=True))}
        if any(circuit.nodes[p].op == "rom" and stage[p] > depth - 2 for p in leaving):
            continue
        if not faults(circuit, stage, depth, levels):
            bits = register_bits(circuit, stage, depth)
            best = bits if best is None else min(best, bits)
    return best


@FIXED
@given(circuits(operations=6, inputs=2))
def test_no_other_stages_take_fewer_register_bits(circuit):
    plan = schedule(circuit, 1)
    moving = [p for p in circuit.alive() if circuit.nodes[p].op not in ("input", "const")]
    assume(plan.depth > 0 and (plan.depth + 1) ** len(moving) <= 1500)
    assume(not any(circuit.nodes[p].op == "rom" and plan.stage[p] > plan.depth - 2 for p, _ in circuit.outputs))
    assert plan.register_bits(circuit) == fewest(circuit, plan.depth, 1)


def refuted(test, *drawn):
    """A drawn example fails `test`; the smallest one is not looked for."""
    check = test.hypothesis.inner_test
    with pytest.raises(AssertionError):
        settings(FIXED, phases=[Phase.generate])(given(*drawn)(check))()


def nothing(self, stage):
    return np.zeros(len(stage), np.bool_)


def alone(self, stage):
    """Values move only where it pays for themselves, whatever else reads their operands."""
    whole = best_to_move(self, stage)
    return whole if whole.sum() == 1 else np.zeros(len(stage), np.bool_)


best_to_move = pipelining.Lives.best_to_move


def test_values_move_together_where_that_alone_pays():
    circuit = Circuit()
    x, late = circuit.input(8, True, -128, 127), circuit.input(8, True, -128, 127)
    one, other = circuit.add(x, x, 1), circuit.add(x, x, 3)
    product = circuit.add(one, other)
    for _ in range(5):
        late = circuit.clip(circuit.add(late, circuit.const(3)), -128, 127)
    total = circuit.add(circuit.add(late, product), x)
    circuit.output(total, circuit.nodes[total].width)
    plan = schedule(circuit, 1)
    # Two operands of the product are wider than itself, but x waits for the end whatever they do.
    assert (plan.depth, plan.stage[one], plan.stage[other], plan.stage[product]) == (12, 8, 8, 9)


@pytest.mark.parametrize("mutant", [nothing, alone])
def test_a_search_that_ends_too_early_is_seen(mutant, monkeypatch):
    monkeypatch.setattr(pipelining.Lives, "best_to_move", mutant)
    with pytest.raises(AssertionError):
        test_values_move_together_where_that_alone_pays()


@pytest.mark.parametrize(
    "mutant",
    [
        lambda timing: replace(timing, gaps=dict.fromkeys(timing.gaps, 0)),
        lambda timing: replace(timing, last=dict.fromkeys(timing.first, timing.depth)),
    ],
)
def test_stages_that_keep_to_no_gap_or_end_are_seen(mutant, monkeypatch):
    kept = Timing.of
    monkeypatch.setattr(pipelining.Timing, "of", lambda circuit, levels: mutant(kept(circuit, levels)))
    refuted(test_every_value_is_there_when_it_is_read_and_no_stage_is_longer_than_asked, circuits(), LEVELS)


def test_steps_that_are_too_long_are_seen(monkeypatch):
    alike, steps = pipelining.Lives.stages_alike, itertools.count()

    def longer(self, stage, later):
        # Such a search may never end, which is seen too.
        assert next(steps) < 20_000
        return alike(self, stage, later) + 1

    monkeypatch.setattr(pipelining.Lives, "stages_alike", longer)
    refuted(test_every_value_is_there_when_it_is_read_and_no_stage_is_longer_than_asked, circuits(), LEVELS)


def test_in_a_chain_the_inputs_wait_and_not_the_products():
    circuit = chain(40, FixedType(12, 12, overflow="SAT"))
    plan, before = schedule(circuit, 1), early(circuit, 1)
    products = [p for p in circuit.alive() if circuit.nodes[p].op == "add" and len(set(circuit.nodes[p].args)) == 1]
    assert len(products) == 40
    # A product is 10 bits wide and its input 8.
    assert all(plan.delays[p] == 1 for p in products)
    assert plan.register_bits(circuit) < 0.82 * before.register_bits(circuit)


def test_every_operation_that_takes_levels_is_drawn():
    seen = set()

    @FIXED
    @given(circuits(three=True))
    def look(circuit):
        for one in (circuit, with_small_tables(circuit, 6)):
            seen.update(one.nodes[place].op for place in one.alive())

    look()
    assert set(COSTS) <= seen
