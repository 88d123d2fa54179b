"""The pieces of the MNIST hardware benchmark that could lie: conversions, counted costs, what stands in for what."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fpgaprune as fp
from fpgaprune.rtl.adders import share

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
with pytest.MonkeyPatch.context() as patched:
    patched.syspath_prepend(str(BENCHMARKS))
    import bench_mnist_hardware as bench
    from mnist_cost import graph_cost, luts_of_cost, total
    from mnist_designs import hgq_design, highest_power, power_of_two
    from mnist_network import SHAPES, Arrays

READS = {"conv1": (0, 1, 5), "conv2": (0, 2, 3), "out": (0, 3, 2)}


@settings(deadline=None, derandomize=True, max_examples=200)
@given(st.floats(-8, 8, allow_subnormal=False), st.integers(-6, 0), st.integers(1, 5))
def test_a_power_of_two_is_the_nearest(value: float, lowest: int, count: int) -> None:
    got = float(power_of_two(np.array([value]), lowest, lowest + count)[0])
    powers = 2.0 ** np.arange(lowest, lowest + count + 1)
    if value == 0:
        assert got == 0
    else:
        assert abs(abs(value) - abs(got)) == np.abs(abs(value) - powers).min()
        assert got * value > 0


def test_the_highest_power_is_that_of_the_largest_weight() -> None:
    assert highest_power(np.array([0.0, -1.4, 0.3])) == 0
    assert highest_power(np.array([0.0, -1.6, 0.3])) == 1


@pytest.mark.parametrize(
    ("weights", "cost"),
    [
        ([[4], [0]], 0),  # wiring
        ([[3], [0]], 7),  # 4x - x, bounded as if its operands were not one
        ([[1], [1]], 5),  # 0..30
        ([[1], [-1]], 5),  # -15..15
        ([[-1], [2]], 6),  # 2b - a: no bit of -a is wiring
    ],
)
def test_the_cost_is_the_full_adders(weights: list[list[int]], cost: int) -> None:
    assert graph_cost(share(np.array(weights)), 0, 15) == cost


def layer(name: str, cost: int | None, lut: int | None) -> dict[str, object]:
    cells = None if lut is None else {"lut": lut, "ff": 1, "dsp": 0, "bram18": 0}
    return {"layer": name, "kept": None, "cost": cost, "cells": cells, "seconds": 1.0}


def test_what_did_not_end_is_never_counted_as_nothing() -> None:
    rows = [layer("conv1", 100, 110), layer("conv2", 1000, None), layer("relu1", None, 7)]
    assert luts_of_cost(rows) == (1.1, 1.1, 1.1)
    assert total(rows, "lut", 1.1) == (pytest.approx(110 + 1100 + 7), True)
    assert total(rows, "lut", None) == (None, False)
    assert total(rows, "ff", 1.1) == (None, False)
    assert total([rows[0], rows[2]], "lut", None) == (117, False)
    assert total([rows[0], layer("pool1", None, None)], "lut", 1.1) == (None, False)
    assert total([], "lut", 1.1) == (None, False)


def test_a_way_that_is_too_inaccurate_wins_nothing() -> None:
    accuracies = {"unpruned": 99.0, "fpgaprune a": 98.6, "fpgaprune b": 98.4, "tfmot 90": 98.7, "tfmot 95": 98.5}
    luts = {"unpruned": 9000.0, "fpgaprune a": 1000.0, "fpgaprune b": 10.0, "tfmot 90": 2000.0, "tfmot 95": 1.0}
    text = "\n".join(bench.goals(accuracies, luts))
    assert "fpgaprune a, 1,000" in text
    assert "unpruned: 9.00 times" in text
    assert "tfmot 90: 2.00 times the LUTs (goal 1.5)." in text
    assert "tfmot 95" not in text
    del luts["tfmot 90"]
    assert "less accurate: 98.50 %" in "\n".join(bench.goals(accuracies, luts))


def test_the_table_marks_what_stands_in() -> None:
    row = {"way": "unpruned", "accuracy": 99.0, "accuracy_hardware": 98.9, "kept": {"conv1": 288, "conv2": 9216}}
    row["layers"] = [layer("conv1", 100, 110), layer("conv2", 1000, None), layer("relu1", None, 7)]
    text = bench.table([row])
    assert "| ≈ 1,217 | 110 | ≈ 1,100 | 7 | – |" in text
    assert "1.10" in text


def checkpoint(rng: np.random.Generator) -> Arrays:
    """As HGQ2 leaves a network: every weight on a grid of its own, most of them zero."""
    found: Arrays = {}
    for path, shape in SHAPES.items():
        raws = rng.integers(-7, 8, shape) * (rng.random(shape) < 0.2)
        found[path] = raws * 2.0 ** rng.integers(-5, -2, shape)
    return found | {f"{name}/reads": np.array(kif) for name, kif in READS.items()}


def features(found: Arrays, x: np.ndarray) -> np.ndarray:
    """What HGQ2's Dense layer reads, in float64: inputs of layers rounded half up and wrapped, all else exact."""
    for name in ("conv1", "conv2"):
        x = read(x, found[f"{name}/reads"])
        windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(1, 2))
        x = np.einsum("nhwcij,ijco->nhwo", windows, found[f"{name}/kernel"]) + found[f"{name}/bias"]
        x = np.maximum(x, 0)
        n, high, wide, channels = x.shape
        x = x[:, : high // 2 * 2, : wide // 2 * 2].reshape(n, high // 2, 2, wide // 2, 2, channels).max(axis=(2, 4))
    return read(x, found["out/reads"]).reshape(len(x), -1)


def read(x: np.ndarray, kif: np.ndarray) -> np.ndarray:
    _, integer, fraction = kif
    return np.mod(np.floor(x * 2.0**fraction + 0.5) * 2.0**-fraction, 2.0**integer)


def test_a_design_of_hgq2_computes_what_hgq2_does() -> None:
    rng = np.random.default_rng(3)
    found = checkpoint(rng)
    x = (rng.integers(0, 256, (8, 28, 28, 1)) / 256).astype(np.float32)
    # So that nothing wraps: then the order of rounding and pooling does not matter.
    for name in ("conv1", "conv2"):
        found[f"{name}/kernel"] = found[f"{name}/kernel"] / 2
    found["conv2/reads"], found["out/reads"] = np.array((0, 4, 3)), np.array((0, 6, 2))
    seen = features(found, x)
    wanted = seen @ found["out/kernel"] + found["out/bias"]
    design = hgq_design(found, "hgq")
    assert np.array_equal(fp.emulate(design, x).reshape(wanted.shape), wanted)
    # One unit of one weight is seen.
    other = {path: np.array(array) for path, array in found.items()}
    other["out/kernel"][np.flatnonzero(seen.any(axis=0))[0], 4] += 2.0**-5
    changed = hgq_design(other, "hgq")
    assert not np.array_equal(fp.emulate(changed, x).reshape(wanted.shape), wanted)


@pytest.mark.slow
def test_hgq2_itself_gives_the_designs_logits(tmp_path: Path) -> None:
    python = os.environ.get("FPGAPRUNE_HGQ_PYTHON") or sys.executable
    if python == sys.executable and importlib.util.find_spec("hgq") is None:
        pytest.skip("hgq2 is not installed (nor an interpreter that has it named by FPGAPRUNE_HGQ_PYTHON)")
    rng = np.random.default_rng(0)
    data = {name: (rng.integers(0, 256, (512, 28, 28, 1)) / 256).astype(np.float32) for name in ("x", "x_test")}
    data |= {name: rng.integers(0, 10, 512).astype(np.int32) for name in ("y", "y_test")}
    data["x_test"] = data["x"]
    weights = {path: (rng.normal(size=shape) * 0.1).astype(np.float32) for path, shape in SHAPES.items()}
    np.savez(tmp_path / "data.npz", **data)
    np.savez(tmp_path / "weights.npz", **weights)
    job = {"seed": 1, "prices": [1e-5, 1e-5], "rate": 1e-3, "rising": 1, "passes": 1}
    (tmp_path / "job.json").write_text(json.dumps(job))
    script = BENCHMARKS / "mnist_hgq.py"
    subprocess.run([python, str(script), str(tmp_path)], check=True, cwd=BENCHMARKS, env={**os.environ})
    found = dict(np.load(tmp_path / "pass0.npz"))
    design = hgq_design(found, "hgq")
    given = fp.emulate(design, data["x_test"]).reshape(found["logits"].shape)
    assert np.array_equal(given, found["logits"])
