"""The emulator against hls4ml's compiled C simulation, for GRU and LSTM: every bit of every output."""

from __future__ import annotations

import shutil
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from keras import layers as kl

from fpgaprune.emulate import Exact, emulate, recurrent
from fpgaprune.target import Target

pytest.importorskip("hls4ml")
if shutil.which("g++") is None:
    pytest.skip("g++ is not on PATH: the C simulation cannot be compiled", allow_module_level=True)

from .emulate_networks import Branch, written

# (backend, io type, strategy, reuse factor, seed)
MATRIX = [
    ("Vitis", "io_stream", "latency", 1, 41),
    ("Vitis", "io_parallel", "resource", 2, 42),
    ("Vivado", "io_stream", "resource", 4, 43),
    ("Vivado", "io_parallel", "latency", 2, 44),
]


def branches() -> dict[str, Branch]:
    """Case to input shape and network."""

    def network(*layers: Any) -> Branch:
        def build(x: Any) -> Any:
            for layer in layers:
                x = layer(x)
            return x

        return ((5, 4), build)

    return {
        "gru": network(kl.GRU(8)),
        "gru_sequences": network(kl.GRU(4, return_sequences=True)),
        "gru_no_bias": network(kl.GRU(4, use_bias=False)),
        "gru_relu": network(kl.GRU(4, activation="relu", recurrent_activation="tanh", return_sequences=True)),
        "gru_stacked": network(kl.GRU(4, return_sequences=True), kl.GRU(4)),
        "gru_after_lstm": network(kl.LSTM(4, return_sequences=True), kl.GRU(4), kl.Dense(4)),
        "lstm": network(kl.LSTM(8)),
        "lstm_sequences": network(kl.LSTM(4, return_sequences=True)),
        "lstm_no_bias": network(kl.LSTM(4, use_bias=False, return_sequences=True)),
        "lstm_relu": network(kl.LSTM(4, activation="relu", return_sequences=True)),
        "lstm_sigmoid": network(kl.LSTM(4, activation="sigmoid", recurrent_activation="tanh", return_sequences=True)),
        "one_step": ((1, 4), lambda x: kl.GRU(4, return_sequences=True)(x)),
    }


def differing(names: list[str], wanted: tuple[np.ndarray, ...], got: tuple[np.ndarray, ...]) -> list[str]:
    """The cases of which any output bit differs."""
    pairs = zip(names, wanted, got, strict=True)
    return [name for name, a, b in pairs if a.shape != b.shape or a.tobytes() != b.tobytes()]


def target(backend: str, io_type: str, strategy: str, reuse: int) -> Target:
    return Target.of("xc7z020clg400-1", io_type=io_type, strategy=strategy, reuse_factor=reuse, backend=backend)


def test_gru_and_lstm_give_the_bits_of_the_c_simulation(tmp_path, monkeypatch):
    rng = np.random.default_rng(7)
    chosen = {name: branches()[name] for name in ("gru", "lstm_sequences")}
    project = written(list(chosen.values()), rng, target("Vitis", "io_stream", "latency", 1), tmp_path / "hls")
    simulated = project.compiled().predict(project.inputs)
    names = list(chosen)
    assert differing(names, simulated, emulate(project.design, project.inputs)) == []
    assert all(len(np.unique(values)) > 2 for values in simulated)
    # The comparison has teeth: it sees gates in another order, and states that round otherwise.
    gate, into = recurrent._gate, Exact.into
    broken = (
        (recurrent, "_gate", lambda step, x, place: gate(step, x, (1, 0, 2, 3)[place])),
        (Exact, "into", lambda self, kind: into(self, replace(kind, rounding="TRN"))),
    )
    for owner, name, mutant in broken:
        with monkeypatch.context() as patched:
            patched.setattr(owner, name, mutant)
            assert differing(names, simulated, emulate(project.design, project.inputs)) == names, name


@pytest.mark.slow
@pytest.mark.parametrize(("backend", "io_type", "strategy", "reuse", "seed"), MATRIX)
def test_every_variant_with_random_types_gives_the_bits_of_the_c_simulation(
    backend, io_type, strategy, reuse, seed, tmp_path
):
    rng = np.random.default_rng(seed)
    cases = branches()
    project = written(list(cases.values()), rng, target(backend, io_type, strategy, reuse), tmp_path / "hls")
    simulated = project.compiled().predict(project.inputs)
    assert differing(list(cases), simulated, emulate(project.design, project.inputs)) == []
    telling = sum(len(np.unique(values)) > 1 for values in simulated)
    assert telling >= 8, f"only {telling} of {len(cases)} cases give more than one number"
