"""Faults in the module that leads the steps of a recurrent layer, which the comparison with the emulator must see."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fpgaprune.emulate import emulate
from fpgaprune.rtl import to_verilog
from fpgaprune.values import FixedType
from tests.teeth.verilog_faults import gives, put
from tests.unit.rtl.networks import Net, samples

RUNS = [{}, {"stalls": 0.3}, {"stalls": (0.0, 0.95)}, {"stalls": (0.0, 0.5), "reset_after": 7}]


def made(folder):
    """A GRU whose steps leave, by a schedule, and an LSTM whose last step does."""
    net = Net(np.random.default_rng(2))
    one = net.recurrent(net.input(5, 3), "GRU", 4)
    design = net.design(net.recurrent(one, "LSTM", 3, sequences=False))
    kinds = {"accum": FixedType(40, 20), "result": FixedType(10, 2, True, "RND", "SAT"), "table": FixedType(10, 2)}
    layers = [replace(la, types={**la.types, **{r: kinds[r] for r in la.types if r in kinds}}) for la in design.layers]
    layers[0] = replace(layers[0], types={"result": FixedType(12, 1)})
    design = replace(design, layers=tuple(layers))
    return design, to_verilog(design, folder, multipliers={one: 3})


def agrees(design, project):
    x = samples(design, 6, 0)
    return gives(project, x, [emulate(design, x)], RUNS)


FAULTS = [
    ("x_first ? {X_WIDTH{1'b0}} : h_wide", "h_wide"),
    ("feeds ? x_first | h_valid", "feeds ? 1'b1"),
    ("n_first ? {H_WIDTH{1'b0}} : k_data", "k_data"),
    ("r_data[R_WIDTH-1:R_WIDTH-H_WIDTH]", "r_data[H_WIDTH-1:0]"),
    ("assign h_wide = $signed(h_data)", "assign h_wide = h_data"),
    ("x_first <= x_step == STEPS - 1", "x_first <= x_step == STEPS - 2"),
    ("n_first <= n_step == STEPS - 1", "n_first <= 1'b0"),
    ("(r_step == STEPS - 2)", "(r_step == STEPS - 1)"),
    ("m_ready | ~leaves", "1'b1"),
    ("(SEQUENCES != 0) | r_last", "1'b1 | r_last"),
    ("r_moves & ~r_last", "r_moves"),
    ("x_ready & ~feeds", "x_ready"),
    ("UNITS - 1 : INPUTS - 1", "INPUTS - 1 : INPUTS - 1"),
    ("n_moves & ~n_first", "n_moves"),
]


@pytest.mark.slow
def test_verilog_without_a_fault_agrees(tmp_path):
    assert agrees(*made(tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS, ids=" ".join)
def test_a_fault_in_the_loop_is_seen(fault, tmp_path):
    design, project = made(tmp_path)
    put(project, ("fp_recurrent.v", *fault))
    assert not agrees(design, project)
