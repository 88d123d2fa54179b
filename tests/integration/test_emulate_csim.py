"""The emulator against hls4ml's compiled C simulation: every bit of every output."""

from __future__ import annotations

import shutil
from dataclasses import replace

import numpy as np
import pytest
from keras import layers as kl

from fpgaprune.design import FUNCTIONS
from fpgaprune.emulate import Exact, emulate, products
from fpgaprune.target import Target
from fpgaprune.values import FixedType

pytest.importorskip("hls4ml")
if shutil.which("g++") is None:
    pytest.skip("g++ is not on PATH: the C simulation cannot be compiled", allow_module_level=True)

from . import emulate_networks
from .emulate_branches import all_branches, chain
from .emulate_networks import written

# Few enough that their project compiles in seconds.
QUICK = {
    "io_stream": ("conv2d", "batch_norm_flat", "average_pool", "flat_dense", "softmax", "tanh", "reshape", "relu6"),
    "io_parallel": (
        "conv1d",
        "dense_relu",
        "max_pool_padded",
        "elu",
        "maximum",
        "depthwise2d",
        "softmax_axis",
        "softmax_whole",
    ),
}
# (backend, io type, strategy, reuse factor, seed): some 55 cases each.
MATRIX = [
    ("Vitis", "io_stream", "latency", 1, 2),
    ("Vitis", "io_parallel", "latency", 1, 1),
    ("Vitis", "io_stream", "resource", 2, 3),
    ("Vitis", "io_parallel", "resource", 2, 4),
    ("Vivado", "io_stream", "latency", 1, 5),
    ("Vivado", "io_parallel", "latency", 1, 6),
]

# Backends whose numbers are ac_fixed, with the cases that their templates cannot compute or that are not emulated.
AC_MATRIX = [
    ("Catapult", "io_parallel", "latency", 33),
    ("Catapult", "io_stream", "latency", 34),
]
NOT_AC = (
    "average",
    "global_average",
    "crop",
    "depthwise",
    "elu",
    "selu",
    "gelu",
    "silu",
    "exponential",
    "sigmoid",
    "tanh",
    "soft",
    "hard",
)
NOT_STREAMED = ("maximum", "minimum", "permute", "concatenate_flat")


def differing(names: list[str], wanted: tuple[np.ndarray, ...], got: tuple[np.ndarray, ...]) -> list[str]:
    """The cases of which any output bit differs."""
    assert len(wanted) == len(got) == len(names)
    pairs = zip(names, wanted, got, strict=True)
    return [name for name, a, b in pairs if a.shape != b.shape or a.tobytes() != b.tobytes()]


def target(io_type: str, strategy: str = "latency", reuse: int = 1, backend: str = "Vitis") -> Target:
    return Target.of("xc7z020clg400-1", io_type=io_type, strategy=strategy, reuse_factor=reuse, backend=backend)


@pytest.mark.parametrize(
    ("io_type", "seed", "parts"),
    [
        pytest.param("io_stream", 7, ("rounding", "overflow", "order"), marks=pytest.mark.slow),
        ("io_parallel", 23, ("rounding", "overflow")),
    ],
)
def test_a_few_kinds_give_the_bits_of_the_c_simulation(io_type, seed, parts, tmp_path, monkeypatch):
    rng = np.random.default_rng(seed)
    available = all_branches(rng, io_type, "latency")
    names = [name for name in QUICK[io_type] if name in available]
    project = written([available[name] for name in names], rng, target(io_type), tmp_path / "hls")
    simulated = project.compiled().predict(project.inputs)
    assert differing(names, simulated, emulate(project.design, project.inputs)) == []
    assert all(len(np.unique(values)) > 1 for values in simulated)
    # The comparison has teeth: it sees an emulator that never rounds, never saturates, or adds the wrong way round.
    into, order = Exact.into, products.input_order
    broken = {
        "rounding": (Exact, "into", lambda self, kind: into(self, replace(kind, rounding="TRN"))),
        "overflow": (Exact, "into", lambda self, kind: into(self, replace(kind, overflow="WRAP"))),
        "order": (products, "input_order", lambda step, inputs: order(step, inputs)[::-1]),
    }
    for part in parts:
        owner, name, mutant = broken[part]
        with monkeypatch.context() as patched:
            patched.setattr(owner, name, mutant)
            found = emulate(project.design, project.inputs)
            assert differing(names, simulated, found), f"nothing noticed a wrong {part}"


@pytest.mark.parametrize("io_type", ["io_stream", pytest.param("io_parallel", marks=pytest.mark.slow)])
def test_tables_of_our_own_templates_give_the_bits_of_the_c_simulation(io_type, tmp_path):
    # The types that this seed draws leave many values of each table.
    rng = np.random.default_rng(15)
    names = [name for name, function in FUNCTIONS.items() if function.has_exact_table]
    branches = [chain((6,), kl.Activation(name)) for name in names]
    project = written(branches, rng, target(io_type), tmp_path / "hls")
    simulated = project.compiled().predict(project.inputs)
    simulated = simulated if isinstance(simulated, tuple) else (simulated,)
    found = emulate(project.design, project.inputs)
    assert differing(names, simulated, found if isinstance(found, tuple) else (found,)) == []
    assert all(len(np.unique(values)) > 8 for values in simulated)


def test_depthwise_convolutions_in_one_and_in_two_dimensions_compile_together(tmp_path):
    """In hls4ml 1.3.0, their headers have one include guard."""
    branches = [chain((5, 4, 2), kl.DepthwiseConv2D(2)), chain((6, 2), kl.DepthwiseConv1D(2))]
    project = written(branches, np.random.default_rng(2), target("io_stream"), tmp_path / "hls")
    simulated = project.compiled().predict(project.inputs)
    assert differing(["depthwise2d", "depthwise1d"], simulated, emulate(project.design, project.inputs)) == []


@pytest.mark.slow
@pytest.mark.parametrize(("backend", "io_type", "strategy", "reuse", "seed"), MATRIX)
def test_every_kind_with_random_types_gives_the_bits_of_the_c_simulation(
    backend, io_type, strategy, reuse, seed, tmp_path
):
    rng = np.random.default_rng(seed)
    branches = all_branches(rng, io_type, strategy)
    assert len(branches) >= 50
    project = written(list(branches.values()), rng, target(io_type, strategy, reuse, backend), tmp_path / "hls")
    simulated = project.compiled().predict(project.inputs)
    assert differing(list(branches), simulated, emulate(project.design, project.inputs)) == []
    telling = sum(len(np.unique(values)) > 1 for values in simulated)
    assert telling >= 45, f"only {telling} of {len(branches)} cases give more than one number"


@pytest.mark.slow
@pytest.mark.parametrize(("backend", "io_type", "strategy", "seed"), AC_MATRIX)
def test_kinds_with_ac_fixed_types_give_the_bits_of_the_c_simulation(
    backend, io_type, strategy, seed, tmp_path, monkeypatch
):
    monkeypatch.setattr(emulate_networks, "ROUNDING_MODES", ("TRN", "RND"))
    monkeypatch.setattr(emulate_networks, "OVERFLOW_MODES", ("WRAP", "SAT"))
    plain = emulate_networks.role_type

    def role_type(rng, role, kind):
        # The order of addition of their templates is not known: sums must be exact. Softmax reads signed numbers.
        if role == "accum":
            return FixedType(40, 20)
        if role in ("exp_table", "inv_table"):
            return emulate_networks.centred_type(rng, (10, 18), (2, 8), signed=True)
        if (role, kind) == ("result", "Dense"):
            return emulate_networks.centred_type(rng, (5, 14), (1, 6), signed=True)
        return plain(rng, role, kind)

    monkeypatch.setattr(emulate_networks, "role_type", role_type)
    rng = np.random.default_rng(seed)
    available = all_branches(rng, io_type, strategy, second="leaky_relu")
    left_out = (*NOT_AC, *NOT_STREAMED) if (backend, io_type) == ("Catapult", "io_stream") else NOT_AC
    branches = {name: branch for name, branch in available.items() if not name.startswith(left_out)}
    assert len(branches) >= 30
    project = written(list(branches.values()), rng, target(io_type, strategy, 1, backend), tmp_path / "hls")
    simulated = project.compiled().predict(project.inputs)
    assert differing(list(branches), simulated, emulate(project.design, project.inputs)) == []
    telling = sum(len(np.unique(values)) > 1 for values in simulated)
    assert telling >= 25, f"only {telling} of {len(branches)} cases give more than one number"
