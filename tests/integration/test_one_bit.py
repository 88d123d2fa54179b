"""`examples/one_bit.toml` on a network and data of one's own: neurons of few inputs of one bit, each one LUT."""

import json
import tomllib
from pathlib import Path

import keras
import numpy as np
import pytest

import fpgaprune as fp
from fpgaprune.flow import parse_config, run_flow, verify_run
from fpgaprune.network import read_keras_weights

pytestmark = pytest.mark.flow

EXAMPLE = Path(__file__).parents[2] / "examples" / "one_bit.toml"


def test_each_neuron_keeps_its_inputs_and_is_one_lut(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2, (600, 20)) / 2
    y = (x[:, :7].sum(1) > x[:, 10:17].sum(1)).astype(np.int64)
    np.savez(tmp_path / "mine.npz", x_train=x[:500], y_train=y[:500], x_test=x[500:], y_test=y[500:])
    keras.utils.set_random_seed(1)
    widths = {"d1": 24, "d2": 16}
    hidden = [keras.layers.Dense(width, activation="relu", name=name) for name, width in widths.items()]
    model = keras.Sequential([keras.Input((20,), name="x"), *hidden, keras.layers.Dense(2, name="out")], name="mine")
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    model.fit(x[:500], y[:500], epochs=30, batch_size=20, verbose=0)
    model.save(tmp_path / "mine.keras")
    fp.MaskSet({"out/kernel": np.repeat(np.eye(2), 8, axis=0) > 0}).save(tmp_path / "votes.npz")
    flow = tomllib.loads(EXAMPLE.read_text())
    flow["data"]["source"], flow["train"]["model"] = str(tmp_path / "mine.npz"), str(tmp_path / "mine.keras")
    flow["select"]["masks"] = str(tmp_path / "votes.npz")
    # As in the file but for its length, and for what is simulated: the sums are proven for all inputs.
    flow["finetune"] |= {"epochs": 12, "batch_size": 20}
    flow["quantise"]["epochs"], flow["hls"]["simulate"], flow["measure"]["simulate"] = 4, 16, 0
    run = run_flow(parse_config(flow, str(EXAMPLE)), tmp_path / "run")
    _, problems = verify_run(run.path)
    assert problems == []
    kernels = {path: array for path, array in read_keras_weights(run.file("quantised.keras")).items() if array.ndim > 1}
    masks = fp.MaskSet.load(run.file("masks.npz"))
    for name in widths:
        assert set(masks[f"{name}/kernel"].sum(axis=0)) == {6}
        assert (np.count_nonzero(kernels[f"{name}/kernel"], axis=0) <= 6).all()
    assert (np.count_nonzero(kernels["out/kernel"], axis=1) <= 1).all()
    hls = run.manifest["stages"]["hls"]["results"]
    assert hls["emulation"]["value"] > 0.8
    assert hls["simulation"]["outputs_unlike_emulation"] == 0
    proven = run.manifest["stages"]["measure"]["results"]["modules"]
    assert [(module["layer"], module["holds"]) for module in proven] == [("d1", True), ("d2", True), ("out", True)]
    measured = json.loads(run.file("measure.json").read_text())
    cells = {layer["layer"]: layer["cells"] for layer in measured["synth(open)"]["xc7"]["layers"]}
    for name, width in widths.items():
        assert cells[name]["lut"] <= width
        assert cells[name]["ff"] <= width
