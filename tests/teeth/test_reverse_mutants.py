"""Faults in the module that reverses the steps of a sequence, which the comparison with the emulator must see."""

from __future__ import annotations

import numpy as np
import pytest

from fpgaprune.emulate import emulate
from fpgaprune.rtl import to_verilog
from tests.teeth.verilog_faults import gives, put
from tests.unit.rtl.networks import Net, samples

RUNS = [{}, {"stalls": 0.3}, {"stalls": (0.0, 0.95)}, {"stalls": (0.9, 0.0)}, {"stalls": (0.0, 0.5), "reset_after": 7}]


def made(folder):
    """Two sequences, of steps of one value and of three."""
    net = Net(np.random.default_rng(2))
    design = net.design(net.reverse(net.input(5, 3)), net.reverse(net.input(4, 1)))
    return design, to_verilog(design, folder)


def agrees(design, project):
    x = samples(design, 6, 0)
    return gives(project, x, list(emulate(design, x)), RUNS)


FAULTS = [
    ("read_at <= PLACES - BEATS;\n            write_beat", "read_at <= 0;\n            write_beat"),
    ("read_back <= 1'b1", "read_back <= 1'b0"),
    ("~whole | (write_at != read_at)", "1'b1"),
    ("whole & (m_ready | ~full)", "whole"),
    ("(read_back & read_turns) ? 1 - 2 * BEATS : 1", "read_back ? -1 : 1"),
    ("(write_back & write_turns) ? 1 - 2 * BEATS : 1", "1"),
    ("write_back <= write_back ^ write_ends", "write_back <= write_back"),
    ("(whole & ~(move & read_ends))", "whole"),
    ("(full & ~m_ready)", "full"),
    ("read_at <= read_back ? 0 : PLACES - BEATS", "read_at <= 0"),
]


@pytest.mark.slow
def test_verilog_without_a_fault_agrees(tmp_path):
    assert agrees(*made(tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS, ids=" ".join)
def test_a_fault_in_the_reversal_is_seen(fault, tmp_path):
    design, project = made(tmp_path)
    put(project, ("fp_reverse.v", *fault))
    assert not agrees(design, project)
