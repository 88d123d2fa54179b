"""Faults in what loads weights that the comparison with the emulator must see."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fpgaprune.rtl import to_verilog, weights_stream
from fpgaprune.values import FixedType
from tests.integration.test_loads import retrained, together, with_whole_kernels
from tests.teeth.verilog_faults import gives, put
from tests.unit.rtl.networks import Net, samples, without_type_modes

RUNS = [{}, {"stalls": 0.3}, {"stalls": (0.0, 0.9)}, {"stalls": (0.8, 0.0)}, {"stalls": 0.2, "reset_after": 90}]


def made(folder):
    """Two inputs that meet behind a convolution each, one of them slow, and a Dense layer beside it with an output."""
    net = Net(np.random.default_rng(4))
    a, b = net.input(5, 5, 3), net.input(5, 5, 3)
    one, two = net.conv(a, 4), net.conv(b, 4)
    last = net.merge(one, two, "add")
    alone = net.dense(net.input(6), 3)
    design = without_type_modes(net.design(last, alone))
    kinds = {"accum": FixedType(40, 20), "result": FixedType(12, 8), "weight": FixedType(6, 3), "bias": FixedType(7, 4)}
    layers = [
        replace(la, types={**la.types, **{r: kinds[r] for r in la.types if r in kinds}}) if la.inputs else la
        for la in design.layers
    ]
    design = with_whole_kernels(replace(design, layers=tuple(layers)), (one, two, alone), 1)
    layout = {"multipliers": {one: 18, two: 2, alone: 1}, "loadable": True}
    return design, to_verilog(design, folder, **layout)


def agrees(design, project):
    x = samples(design, 8, 0)
    names = project.loads.layers
    new = [retrained(design, names, seed) for seed in (1, 2, 3)]
    loads = {0: new[0], 3: new[1], 4: new[2], 7: new[0]}
    streams = {number: weights_stream(other, project) for number, other in loads.items()}
    return gives(project, x, together(design, x, loads), RUNS, loads=streams)


FAULTS = [
    ("fp_load.v", "tap == TAPS - 1", "tap == TAPS - 2"),
    ("fp_load.v", "group << 1", "group"),
    ("fp_load.v", "LAST % STEPS", "(LAST + 1) % STEPS"),
    ("fp_load.v", "& ~weighing & ~biasing", "& ~weighing"),
    ("fp_load.v", "if (rst | l_end)", "if (rst)"),
    ("fp_load.v", "biasing <= number != BIASES - 1", "biasing <= number != BIASES - 2"),
    ("fp_load.v", "bias_at <= number", "bias_at <= 0"),
    ("fp_load.v", "kernel} >> W_WIDTH", "kernel}"),
    ("fp_biased.v", "number == OUTPUTS - 1", "number == OUTPUTS"),
    ("fp_biased.v", "(s_valid & m_ready)", "m_ready"),
    ("fp_gate.v", "(loading | (&even & &gone))", "1'b1"),
    ("fp_gate.v", "&even & &gone", "&even"),
    ("fp_gate.v", "within[i] | ", ""),
    ("fp_gate.v", " | (|fewer)", ""),
    ("fp_gate.v", "~(valid | loading)", "1'b1"),
    ("fp_gate.v", "~(valid | loading)", "~valid"),
    ("fp_gate.v", "~within[i]}", "1'b1}"),
    ("fp_gate.v", "~rst & ~arrived & (whole", "~rst & (whole"),
]


@pytest.mark.slow
def test_verilog_without_a_fault_agrees(tmp_path):
    assert agrees(*made(tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS, ids=" ".join)
def test_a_fault_in_what_loads_weights_is_seen(fault, tmp_path):
    design, project = made(tmp_path)
    put(project, fault)
    assert not agrees(design, project)
