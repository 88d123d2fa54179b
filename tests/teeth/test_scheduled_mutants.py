"""Faults in the modules of a scheduled layer that the comparison with the emulator must see."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fpgaprune.emulate import emulate
from fpgaprune.rtl import to_verilog
from fpgaprune.values import FixedType
from tests.teeth.verilog_faults import gives, put
from tests.unit.rtl.networks import Net, samples, without_type_modes

RUNS = [{}, {"stalls": 0.3}, {"stalls": (0.0, 0.95)}, {"stalls": (0.0, 0.5), "reset_after": 27}]


def made(folder):
    """Two convolutions: an odd number of places, two at once, and an output without kernels; and parts of kernels."""
    net = Net(np.random.default_rng(2))
    one = net.conv(net.input(5, 5, 3), 6)
    two = net.conv(one, 3, (2, 2))
    design = without_type_modes(net.design(two))
    kinds = {
        "accum": FixedType(40, 20),
        "result": FixedType(8, 5, overflow="SAT"),
        "weight": FixedType(6, 3),
        "bias": FixedType(6, 3),
    }
    layers = [replace(la, types={**la.types, **{r: kinds[r] for r in la.types if r in kinds}}) for la in design.layers]
    layers[0] = replace(layers[0], types={"result": FixedType(6, 3)})
    weight = layers[1].weights["weight"] | 1
    weight[..., 1] = 0
    layers[1] = replace(layers[1], weights={**layers[1].weights, "weight": weight})
    design = replace(design, layers=tuple(layers))
    return design, to_verilog(design, folder, multipliers={one: 18, two: 2}, paired=[one], in_luts=[two])


def agrees(design, project):
    x = samples(design, 8, 0)
    return gives(project, x, [emulate(design, x)], RUNS)


FAULTS = [
    ("fp_channel_window.v", "m_ready | ~whole", "1'b1"),
    ("fp_channel_window.v", "last_column ? KW - 1", "last_column ? KW"),
    ("fp_channel_window.v", "columns[(c*KH+r)*WIDTH", "columns[(c*KH)*WIDTH"),
    ("fp_scheduled.v", "filled != SIDES", "1'b1"),
    ("fp_scheduled.v", "(room != 0)", "1'b1"),
    ("fp_scheduled.v", "(waiting != 0)", "1'b1"),
    ("fp_scheduled.v", "whole - fetch_last", "whole - came"),
    ("fp_scheduled.v", "value | (left == 0)", "value"),
    ("fp_scheduled.v", "2 : TOGETHER) + 4", "2 : TOGETHER) + 3"),
    ("fp_group.v", "at + gap + 1'b1", "at + gap"),
    ("fp_group.v", "first ? START", "first ? 0"),
    ("fp_group.v", "piece <= at[PIECE-1:0]", "piece <= 0"),
    ("fp_group.v", "weights[TAPS*W_WIDTH]}", "1'b0}"),
    ("fp_group.v", "stores_first ? 0 : next_slot", "next_slot"),
    ("fp_group.v", "{stores_at, slot}", "{{BUFFER{1'b0}}, slot}"),
    ("fp_products.v", "+ {{(WIDTH-1){1'b0}}, product[WIDTH-1]}", ""),
    ("fp_products.v", "{WIDTH{one[X_WIDTH]}}", "{WIDTH{1'b0}}"),
    ("fp_product.v", "? three : one <<< 1", "? three : one"),
    ("fp_product.v", "given + (given <<< 1)", "given"),
    ("fp_product.v", "{PART{negative}}, negative}", "{PART{negative}}, 1'b0}"),
    ("fp_product.v", "? one <<< 1 : (bits[2*DIGITS-2]", "? one : (bits[2*DIGITS-2]"),
    ("fp_product.v", "<<< (2 * (UPPER - 1))", "<<< 1"),
    ("fp_total.v", "begins ? root : sum + root", "sum + root"),
    ("fp_total.v", "added <= one + two", "added <= one - two"),
    ("fp_turns.v", "named[GROUP+1] ? 0 :", ""),
    ("fp_turns.v", "(fresh ? 0 : sum)", "sum"),
    ("fp_turns.v", "buffer + known_last", "buffer"),
    ("fp_turns.v", "value | (left == 0)", "1'b1"),
    ("fp_turns.v", "m_ready | ~full", "1'b1"),
    ("fp_memory.v", "memory[write_at] <=", "memory[0] <="),
]


@pytest.mark.slow
def test_verilog_without_a_fault_agrees(tmp_path):
    assert agrees(*made(tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS, ids=" ".join)
def test_a_fault_in_a_scheduled_layer_is_seen(fault, tmp_path):
    design, project = made(tmp_path)
    put(project, fault)
    assert not agrees(design, project)
