"""More zeros never cost more LUTs, flip-flops, DSPs or block RAM."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fpgaprune.estimate import build, calibration, design_features, estimate, stage_figures, total_hardware
from fpgaprune.target import Target
from tests.unit.estimate.designs import cnn, mlp

TARGETS = [Target.of("xc7z020clg400-1", clock_ns=clock) for clock in (2.5, 5.0, 10.0)]


def figures(design, target):
    whole = total_hardware(build(design_features(design, target)))
    found = stage_figures(whole, calibration().rates)
    return found["csynth"], found["synth"]


def more_zeros(design, rng, share):
    layers = []
    for layer in design.layers:
        arrays = dict(layer.weights)
        for role in ("weight", "scale"):
            if role in arrays:
                arrays[role] = np.where(rng.random(arrays[role].shape) < share, 0, arrays[role])
        layers.append(replace(layer, weights=arrays))
    return replace(design, layers=tuple(layers))


@settings(derandomize=True, deadline=None, max_examples=150)
@given(
    make=st.sampled_from(["stream", "parallel", "mlp"]),
    strategy=st.sampled_from(["latency", "resource"]),
    reuse=st.sampled_from([1, 2, 4]),
    backend=st.sampled_from(["Vivado", "Vitis"]),
    width=st.integers(2, 16),
    share=st.sampled_from([0.02, 0.3, 0.8]),
    seed=st.integers(0, 2**16),
    target=st.sampled_from(TARGETS),
)
def test_more_zeros_never_cost_more(make, strategy, reuse, backend, width, share, seed, target):
    rest = {"strategy": strategy, "reuse": reuse, "backend": backend, "width": width, "seed": seed, "zeros": 0.2}
    design = mlp(**rest) if make == "mlp" else cnn(f"io_{make}", **rest)
    pruned = more_zeros(design, np.random.default_rng(seed), share)
    for before, after in zip(figures(design, target), figures(pruned, target), strict=True):
        for resource in before:
            assert after[resource] <= before[resource] + 1e-9, resource


@pytest.mark.parametrize("reuse", [1, 4])
def test_latency_never_grows_with_zeros_where_no_multiplier_is_shared(reuse):
    for seed in range(10):
        design = mlp(reuse, "resource", seed=seed) if reuse > 1 else mlp(1, seed=seed)
        pruned = more_zeros(design, np.random.default_rng(seed), 0.5)
        assert estimate(pruned, TARGETS[1]).latency_cycles <= estimate(design, TARGETS[1]).latency_cycles


@pytest.mark.parametrize("reuse", [1, 2, 100])
@pytest.mark.parametrize("target", TARGETS, ids=lambda t: f"{t.clock_ns:g} ns")
def test_pruning_a_chain_into_a_tree_never_costs_more(reuse, target):
    """Vitis HLS sums long rows one by one and short ones in trees: the step between is no dearer either."""
    rng = np.random.default_rng(0)
    design = mlp(reuse, zeros=0.0, width=8, backend="Vitis")
    wide = replace(design.layers[1], weights={**design.layers[1].weights, "weight": rng.integers(1, 128, (96, 64))})
    layers = (replace(design.layers[0], output_shape=(96,)), replace(wide, output_shape=(64,)))
    design = replace(design, layers=layers, outputs=("fc1",))
    before = figures(design, target)
    for _ in range(12):
        design = more_zeros(design, rng, 0.1)
        after = figures(design, target)
        for stage, last in zip(after, before, strict=True):
            assert all(stage[name] <= last[name] + 1e-9 for name in last)
        before = after
