"""The cycles of layouts: those that a simulation counted, those of a layer by itself, and those that were chosen."""

from __future__ import annotations

from dataclasses import replace

import pytest

import fpgaprune as fp
from fpgaprune.design import Design, Input, VerilogLayout
from fpgaprune.errors import EstimateError
from fpgaprune.estimate import timed
from fpgaprune.rtl import cycles_of, da4ml_solver, plan_verilog
from fpgaprune.target import find_part
from tests.benchmarks.layout_networks import TWENTY, network_of, random_laid, stride_of_four, strided_add

# What Verilator counted for layouts of `random_laid`: interval and latency.
COUNTED = {
    0: (1234, 1783),
    1: (360, 482),
    2: (499, 540),
    3: (213, 270),
    4: (550, 699),
    5: (300, 342),
    6: (432, 525),
    7: (60, 79),
    8: (120, 128),
    9: (660, 668),
    10: (27, 80),
    11: (240, 319),
    # Near the break-even of bit by bit and at once: counted adders alone would choose the other way.
    93: (44, 134),
    107: (42, 109),
}


def chosen(build, **options):
    part, share = TWENTY[build]
    return fp.choose_layout(network_of(build), find_part(part), "xc7", share=share, **options)


@pytest.mark.parametrize("seed", COUNTED)
def test_the_price_has_the_cycles_that_a_simulation_counted(seed):
    """Strides, branches, borders, pools, pairs, sums bit by bit; to the cycle.

    Counted adders take two cycles more where the sum of the most adders is never clipped.
    """
    design, layout = random_laid(seed)
    made = fp.verilog_price(design, layout=layout)
    interval, latency = COUNTED[seed]
    assert (made.interval_cycles, made.latency_cycles) == (interval, latency + 2 * (seed == 10))


def test_a_price_never_runs_da4ml(monkeypatch):
    def refuse(*_):
        raise AssertionError("a price ran da4ml")

    monkeypatch.setattr(da4ml_solver, "solve", refuse)
    design, layout = random_laid(107)
    assert fp.verilog_price(design, layout=layout, adders="da4ml") == fp.verilog_price(design, layout=layout)


@pytest.mark.parametrize("seed", range(200, 240))
def test_a_scheduled_layer_by_itself_takes_the_cycles_that_its_beats_take(seed):
    design, layout = random_laid(seed)
    for name in layout.multipliers:
        layer = design[name]
        entry = replace(design[layer.inputs[0]], name="entry", inputs=(), operation=Input(), weights={})
        alone = Design("alone", (entry, replace(layer, inputs=("entry",))), (name,))
        own = VerilogLayout(multipliers={name: layout.multipliers[name]}, paired={name} & set(layout.paired))
        assert cycles_of(alone, alone[name], own) == timed(plan_verilog(alone, own)).interval


def test_values_that_complete_no_window_take_cycles_too():
    """16 x 16 pixels of 16 values come one a cycle, though 4 x 4 places are computed; then they wait in bursts."""
    design = network_of(stride_of_four)
    name = [layer.name for layer in design.layers if layer.kind.startswith("Conv2D")][1]
    fast, slow = (VerilogLayout(multipliers={name: number}) for number in (192, 32))
    assert (
        cycles_of(design, design[name], fast) == fp.verilog_price(design, layout=fast).interval_cycles == 16 * 16 * 16
    )
    assert cycles_of(design, design[name], slow) == fp.verilog_price(design, layout=slow).interval_cycles > 16 * 16 * 16


@pytest.mark.parametrize("build", [stride_of_four, strided_add])
def test_the_answer_is_the_price(build):
    found = chosen(build)
    assert found.interval == found.price.interval_cycles == pytest.approx(found.allowed, rel=0.03)
    made = fp.verilog_price(network_of(build), layout=VerilogLayout(**found.settings))
    assert made == found.price
    assert max(found.used.values()) <= found.share


def test_a_given_interval_is_kept_or_refused():
    least = chosen(stride_of_four).interval
    assert chosen(stride_of_four, interval=2 * least).interval <= 2 * least
    with pytest.raises(EstimateError, match="no layout of 'stride_of_four' with 300 cycles for each sample fits"):
        chosen(stride_of_four, interval=300)


def test_what_more_multipliers_bring_is_so():
    found, design = chosen(stride_of_four, faster=True), network_of(stride_of_four)
    slowest = found.slowest
    multipliers = {**found.settings["multipliers"], slowest.layer: slowest.multipliers + found.faster}
    more = VerilogLayout(**{**found.settings, "multipliers": multipliers})
    assert fp.verilog_price(design, layout=more).interval_cycles == found.then_cycles < found.interval


def test_where_two_layers_are_the_slowest_more_multipliers_for_one_bring_nothing():
    found = chosen(strided_add, faster=True)
    cycles = [row.cycles for row in found.layers]
    assert cycles.count(max(cycles)) == 2
    assert found.faster is None
