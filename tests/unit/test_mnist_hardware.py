"""The pieces of the MNIST hardware benchmark that could lie: conversions, counted costs, what stands in for what."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fpgaprune as fp
from fpgaprune.fixed import FixedType
from fpgaprune.rtl.adders import share

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
with pytest.MonkeyPatch.context() as patched:
    patched.syspath_prepend(str(BENCHMARKS))
    import bench_mnist_hardware as bench
    from mnist_cost import graph_cost, luts_of_cost, total
    from mnist_designs import hgq_design, highest_power, power_of_two, target
    from mnist_network import SHAPES, Arrays, initial_weights, network, set_weights
    from mnist_rounded import Rounded, narrow_types, rounded

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
    accuracies = {"unpruned": 99.0, "fpgaprune a": 98.65, "fpgaprune b": 98.4, "tfmot 90": 98.7, "hgq low 3": 98.71}
    luts = {"unpruned": 9000.0, "fpgaprune a": 1000.0, "fpgaprune b": 10.0, "tfmot 90": 2000.0, "hgq low 3": 900.0}
    text = "\n".join(bench.goals(accuracies, luts))
    # b is 0.6 points behind the unpruned network, and behind all others too.
    assert "unpruned: 9.00 times the LUTs (goal 3.0) of fpgaprune a, whose accuracy is -0.35 points away." in text
    assert "tfmot 90: 2.00 times the LUTs (goal 1.5) of fpgaprune a, whose accuracy is -0.05" in text
    assert "hgq low 3: no network of fpgaprune's within 0.05 points of its 98.71 %" in text
    assert "fpgaprune b" not in text
    # A rival with fewer LUTs is told as that.
    text = "\n".join(bench.goals(accuracies | {"hgq low 3": 98.5}, luts))
    assert "hgq low 3: 0.90 times the LUTs (goal 1.0) of fpgaprune a" in text


def test_the_table_marks_what_stands_in() -> None:
    row = {"way": "unpruned", "accuracy": 99.0, "accuracy_hardware": 98.9, "accuracy_valid": 98.8}
    row |= {"kept": {"conv1": 288, "conv2": 9216}, "shapes": {"conv1": [26, 26, 32], "conv2": [11, 11, 31]}}
    row["layers"] = [layer("conv1", 100, 110), layer("conv2", 1000, None), layer("relu1", None, 7)]
    text = bench.table([row])
    assert "| ≈ 1,217 | 110 | ≈ 1,100 | 7 | – |" in text
    assert "1.10" in text
    assert "32 + 31" in text


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


def test_a_design_reads_what_training_rounded() -> None:
    """Powers of two, biases where sums of products come to, and the types of training: then every logit is the same."""
    rng = np.random.default_rng(5)
    kinds = {"image": ("ufixed<3,0", 3), "relu1": ("ufixed<2,1", 1), "relu2": ("ufixed<4,2", 2)}
    types = {name: FixedType.parse(f"{text},RND,SAT>") for name, (text, _) in kinds.items()}
    arrays: Arrays = {}
    for path, unit in (("conv1", 2.0**-6), ("conv2", 2.0**-4), ("out", 2.0**-6)):
        shape = SHAPES[f"{path}/kernel"]
        powers = rng.choice([-1.0, 1.0], shape) * 2.0 ** rng.integers(-3, 0, shape) * (rng.random(shape) < 0.2)
        arrays[f"{path}/kernel"] = rng.integers(-8, 8, shape) / 16 if path == "out" else powers
        arrays[f"{path}/bias"] = rng.integers(-8, 8, SHAPES[f"{path}/bias"]) * unit
    model = network(keras)
    set_weights(model, arrays)
    trained = rounded(model, types)
    assert trained.get_layer("conv2").kernel is model.get_layer("conv2").kernel
    x = (rng.integers(0, 256, (16, 28, 28, 1)) / 256).astype(np.float32)
    wanted = trained.predict(x, verbose=0)
    layers = {name: {"result": str(kind)} for name, kind in types.items()}
    layers |= {name: {"weight": "fixed<4,1>"} for name in ("conv1", "conv2")} | {"out": {"weight": "fixed<5,1>"}}
    design = fp.make_design(model, target(), x, fp.Precision(), "net", layers=layers)
    assert np.array_equal(fp.emulate(design, x).reshape(wanted.shape), wanted)
    # What is not rounded alike is seen.
    other = rounded(model, types | {"relu1": FixedType.parse("ufixed<2,1,TRN,SAT>"), "relu2": types["image"]})
    assert not np.array_equal(other.predict(x, verbose=0), wanted)


def test_the_type_for_so_many_bits_is_that_with_the_least_error() -> None:
    model = network(keras)
    set_weights(model, initial_weights(1))
    x = np.random.default_rng(2).random((8, 28, 28, 1)).astype(np.float32)
    found = narrow_types(model, x, {"image": 2})["image"]
    errors = {}
    for integer in range(-3, 4):
        unit = 2.0 ** (integer - 2)
        errors[integer] = float(np.square(np.clip(np.floor(x / unit + 0.5), 0, 3) * unit - x).mean())
    assert (found.width, found.integer, found.signed) == (2, min(errors, key=errors.__getitem__), False)
    assert narrow_types(model, x, {}) == {}


@settings(deadline=None, derandomize=True, max_examples=50)
@given(st.lists(st.floats(0, 10, width=32), min_size=1), st.integers(1, 5), st.integers(-1, 3))
def test_what_training_rounds_is_what_the_type_holds(values: list[float], width: int, integer: int) -> None:
    kind = FixedType(width, integer, False, "RND", "SAT")
    array = np.array(values, np.float32)
    assert np.array_equal(np.array(Rounded(kind)(array)), kind.to_float(kind.to_raw(array)))


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
    # As the benchmark lays them out: the data of a run beside the folder of each way.
    folder = tmp_path / "hgq"
    folder.mkdir()
    np.savez(folder / "weights.npz", **weights)
    job = {"seed": 1, "prices": [1e-5], "rate": 1e-3, "level": 1}
    (folder / "job.json").write_text(json.dumps(job))
    script = BENCHMARKS / "mnist_hgq.py"
    subprocess.run([python, str(script), str(folder)], check=True, cwd=BENCHMARKS, env={**os.environ})
    found = dict(np.load(folder / "pass0.npz"))
    design = hgq_design(found, "hgq")
    given = fp.emulate(design, data["x_test"]).reshape(found["logits"].shape)
    assert np.array_equal(given, found["logits"])
