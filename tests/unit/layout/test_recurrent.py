"""Layouts of networks with a recurrent layer: at once in a large part, by a schedule in a small one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fpgaprune as fp
from fpgaprune.design import VerilogLayout
from fpgaprune.measure import AT_ONCE, SCHEDULED
from fpgaprune.rtl import plan_verilog, to_verilog
from fpgaprune.target import find_part
from fpgaprune.values import FixedType
from tests.unit.rtl.networks import Net


def network(kept=1.0):
    """A GRU and a Dense layer, whose accumulators hold every sum; of both matrices a part is kept."""
    rng = np.random.default_rng(4)
    net = Net(rng)
    gru = net.recurrent(net.input(8, 6), "GRU", 12, sequences=False)
    design = net.design(net.dense(gru, 3))
    wide = {"accum": FixedType(28, 8), "result": FixedType(10, 2, True, "RND", "SAT"), "weight": FixedType(8, 2)}
    layers = []
    for layer in design.layers:
        weights = {
            role: np.where(rng.random(w.shape) < kept, w | 1, 0) if "weight" in role else w
            for role, w in layer.weights.items()
        }
        types = {**layer.types, **{role: kind for role, kind in wide.items() if role in layer.types}}
        layers.append(replace(layer, types=types, weights=weights))
    return replace(design, layers=tuple(layers)), gru


def part(**there):
    return replace(find_part("gw2ar-18"), name="part", **there)


SMALL = {"lut": 3000, "ff": 4500, "dsp": 10, "bram18": 10}
LARGE = {"lut": 90_000, "ff": 90_000, "dsp": 48, "bram18": 46}


def test_a_small_part_gets_a_schedule_and_a_large_one_all_sums_at_once():
    design, gru = network()
    small, large = (fp.choose_layout(design, part(**there), "gowin") for there in (SMALL, LARGE))
    ways = [next(row for row in chosen.layers if row.layer == gru).way for chosen in (small, large)]
    assert ways == [SCHEDULED, AT_ONCE]
    assert small.interval > large.interval
    for chosen in (small, large):
        layout = VerilogLayout(**chosen.settings)
        assert fp.verilog_price(design, "gowin", layout=layout) == chosen.price
        assert max(chosen.used.values()) <= 0.8


def test_its_cycles_are_those_of_the_layer_alone_and_locked_weights_take_none():
    chosen = [fp.choose_layout(network(kept)[0], part(**SMALL), "gowin") for kept in (1.0, 0.3)]
    rows = [next(row for row in one.layers if row.cycles and row.multipliers and "gru" in row.layer) for one in chosen]
    assert rows[0].cycles == pytest.approx(chosen[0].interval, rel=0.01)
    assert rows[1].cycles < rows[0].cycles


def test_where_weights_are_loaded_the_cycles_say_how_it_is_laid_out(tmp_path):
    design, gru = network()
    chosen = fp.choose_layout(design, part(**SMALL), "gowin", layout=VerilogLayout(loadable=True))
    assert gru not in chosen.settings["multipliers"]
    layout = VerilogLayout(loadable=True, **chosen.settings)
    assert plan_verilog(design, layout).layers
    notes = {layer.layer: layer.note for layer in to_verilog(design, tmp_path, layout=layout).layers}
    assert notes[gru].startswith("scheduled: ")
