"""The emulator against hls4ml's compiled C simulation: every bit of every output."""

from __future__ import annotations

import shutil
from dataclasses import replace

import numpy as np
import pytest

from fpgaprune.emulate import emulate, products
from fpgaprune.emulate.exact import Exact
from fpgaprune.target import Target

pytest.importorskip("hls4ml")
if shutil.which("g++") is None:
    pytest.skip("g++ is not on PATH: the C simulation cannot be compiled", allow_module_level=True)

from .emulate_branches import all_branches
from .emulate_networks import written

# Few enough that their project compiles in seconds.
QUICK = {
    "io_stream": ("conv2d", "batch_norm_flat", "average_pool", "flat_dense", "softmax", "tanh", "reshape"),
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


def differing(names: list[str], wanted: tuple[np.ndarray, ...], got: tuple[np.ndarray, ...]) -> list[str]:
    """The cases of which any output bit differs."""
    assert len(wanted) == len(got) == len(names)
    pairs = zip(names, wanted, got, strict=True)
    return [name for name, a, b in pairs if a.shape != b.shape or a.tobytes() != b.tobytes()]


def target(io_type: str, strategy: str = "latency", reuse: int = 1, backend: str = "Vitis") -> Target:
    return Target.of("xc7z020clg400-1", io_type=io_type, strategy=strategy, reuse_factor=reuse, backend=backend)


@pytest.mark.parametrize(
    ("io_type", "seed", "parts"),
    [("io_stream", 7, ("rounding", "overflow", "order")), ("io_parallel", 23, ("rounding", "overflow"))],
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
