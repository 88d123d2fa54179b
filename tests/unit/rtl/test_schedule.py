"""In which clock each value of a circuit is computed, and what its registers cost."""

from __future__ import annotations

import re

import numpy as np
import pytest

from fpgaprune.rtl import Circuit, schedule, to_verilog
from tests.unit.rtl.networks import Net


def summed(count, width=8):
    """The sum of `count` inputs as a balanced tree."""
    circuit = Circuit()
    row = [circuit.input(width, True, -(1 << (width - 1)), (1 << (width - 1)) - 1) for _ in range(count)]
    while len(row) > 1:
        row = [circuit.add(a, b) for a, b in zip(row[::2], row[1::2], strict=True)]
    circuit.output(row[0], circuit.nodes[row[0]].width)
    return circuit


@pytest.mark.parametrize(("levels", "depth"), [(1, 4), (2, 2), (3, 2), (4, 1)])
def test_so_many_adders_lie_between_two_registers(levels, depth):
    assert schedule(summed(16), levels).depth == depth


def test_registers_are_counted_in_bits():
    # Two sums of nine bits, then one of ten; each is in one register.
    circuit = summed(4)
    plan = schedule(circuit, 1)
    assert plan.register_bits(circuit) == 9 + 9 + 10


@pytest.mark.parametrize("levels", [1, 2, 3])
def test_what_comes_from_a_table_has_two_registers(levels):
    circuit = Circuit()
    found = circuit.rom(circuit.input(4, False, 0, 15), [v * v for v in range(16)])
    total = circuit.add(found, circuit.const(3))
    circuit.output(total, circuit.nodes[total].width)
    plan = schedule(circuit, levels)
    assert plan.stage[total] == plan.stage[found] + 2
    assert plan.delays[found] == 2


def test_each_part_is_reset_a_clock_after_the_one_that_feeds_it(tmp_path):
    net = Net(np.random.default_rng(3))
    x = net.input(5, 4, 2)
    design = net.design(net.merge(x, net.conv(x, 2, pads=(1, 1, 1, 1)), "add"))
    project = to_verilog(design, tmp_path)
    text = (tmp_path / "rtl" / f"{project.top}.v").read_text()
    chain = re.findall(r"^ +(reset_\w+) <= (\w+);$", text, re.M)
    names = [name for name, _ in chain]
    assert [before for _, before in chain] == ["rst", *names[:-1]]
    assert sorted(re.findall(r"\.rst\((\w+)\)", text)) == sorted(names)
    assert ".rst(rst)" not in text
    assert names.index("reset_input0_fork0") < names.index("reset_conv2d2") < names.index("reset_merge3_fifo1")
    assert names[-1] == "reset_m_axis"
