"""`examples/trained_bits.toml` on a network and data of one's own: powers of two, proven in every file."""

import json
import tomllib
from pathlib import Path

import keras
import numpy as np
import pytest

from fpgaprune.flow import parse_config, run_flow, verify_run
from fpgaprune.network import read_keras_weights
from fpgaprune.values import HeldValues

pytestmark = pytest.mark.flow

EXAMPLE = Path(__file__).parents[2] / "examples" / "trained_bits.toml"


# Each time `test_convolution_bits.py` trains bits with proof, and unit tests trim.
@pytest.mark.slow
def test_a_dense_network_becomes_powers_of_two_with_proof(tmp_path):
    assert len(EXAMPLE.read_text().splitlines()) <= 25
    rng = np.random.default_rng(0)
    x = rng.random((400, 8), dtype=np.float32)
    y = (x @ np.array([1, -1, 2, 0.5, 0, 0, 1, -2], np.float32) > 0.8).astype(np.int64)
    np.savez(tmp_path / "mine.npz", x_train=x[:300], y_train=y[:300], x_test=x[300:], y_test=y[300:])
    keras.utils.set_random_seed(1)
    model = keras.Sequential(
        [keras.Input((8,)), keras.layers.Dense(12, activation="relu"), keras.layers.Dense(2)], name="mine"
    )
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    model.fit(x[:300], y[:300], epochs=40, batch_size=20, verbose=0)
    model.save(tmp_path / "mine.keras")
    flow = tomllib.loads(EXAMPLE.read_text())
    flow["data"]["source"], flow["train"]["model"] = str(tmp_path / "mine.npz"), str(tmp_path / "mine.keras")
    # As in the file but for its length, a second for this network, and for the C simulation.
    flow["finetune"] |= {"epochs": 12, "batch_size": 20}
    flow["quantise"]["epochs"], flow["measure"] = 12, {}
    flow["hls"]["simulate"] = 0
    run = run_flow(parse_config(flow, str(EXAMPLE)), tmp_path / "run")
    links, problems = verify_run(run.path)
    assert problems == []
    assert {"quantised.keras, held values", "trimmed.keras", "hls/firmware"} <= {link.link for link in links}
    held = HeldValues.load(run.file("quantised_held.npz"))
    kernels = {
        path: array for path, array in read_keras_weights(run.file("quantised.keras")).items() if array.ndim == 2
    }
    for path, kernel in kernels.items():
        mantissas = np.frexp(np.abs(kernel[kernel != 0]))[0]
        assert (mantissas == 0.5).all()
        assert (~held.masks[path] | (kernel == 0)).all()
    assert 0 < sum(np.count_nonzero(kernel) for kernel in kernels.values()) <= 0.4 * (8 * 12 + 12 * 2) + 1
    trimmed = read_keras_weights(run.file("trimmed.keras"))
    for path, kernel in kernels.items():
        assert (np.frexp(np.abs(trimmed[path][trimmed[path] != 0]))[0] == 0.5).all()
        assert not trimmed[path][kernel == 0].any()
    stages = run.manifest["stages"]
    lost = stages["trim"]["results"]["metric"]["lost"]
    assert stages["hls"]["results"]["emulation"]["of_trained"]["lost"] == lost
    # Another value in the file of held values is found by those who read the files alone.
    path = run.file("quantised_held.npz")
    HeldValues(held.masks, {name: 2 * array for name, array in held.values.items()}).save(path)
    assert any("held values" in problem and "not at the values" in problem for problem in verify_run(run.path)[1])
    assert json.loads(run.file("report.json").read_text())["certificate"]
