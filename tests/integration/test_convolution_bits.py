"""`examples/convolution_*.toml` on a network and data of one's own: fewer filters, then powers of two, with proof."""

import gc
import json
from pathlib import Path

import keras
import numpy as np
import pytest
from sklearn.datasets import load_digits

import fpgaprune as fp
from fpgaprune.flow import run_flow, verify_run
from fpgaprune.flow.engine import read_config
from fpgaprune.flow.stages import hardware_of
from fpgaprune.flow.task import load_data
from fpgaprune.values import HeldValues

pytestmark = pytest.mark.flow

EXAMPLES = Path(__file__).parents[2] / "examples"
# As in the files but for what takes long: seconds for this network.
SHORTER = {
    "epochs = 3": "epochs = 0",
    'quantise = { hold = "digits(1)", epochs = 9': 'quantise = { hold = "digits(1)", epochs = 6',
    "[finetune]\nepochs = 9": "[finetune]\nepochs = 1",
    "batch_size = 128": "batch_size = 100",
    'measure = { families = ["xc7"] }': "",
    "activation_bits = 3": "activation_bits = 3, simulate = 0",
}


def small_network():
    """8 × 8 to ten logits, layers with the names of the examples."""
    layers = keras.layers
    x = entry = keras.Input((8, 8, 1), name="image")
    for number, filters in ((1, 8), (2, 6)):
        x = layers.ReLU(name=f"relu{number}")(layers.Conv2D(filters, 3, name=f"conv{number}")(x))
        x = layers.MaxPooling2D(2, name="pool")(x) if number == 1 else x
    return keras.Model(entry, layers.Dense(10, name="out")(layers.Flatten(name="flat")(x)), name="mine")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Both runs, as a user makes them beside the copied files."""
    folder = tmp_path_factory.mktemp("mine")
    digits = load_digits()
    x, y = (digits.images[..., None] / 16).astype(np.float32), digits.target
    np.savez(folder / "mine.npz", x_train=x[:400], y_train=y[:400], x_test=x[400:600], y_test=y[400:600])
    keras.utils.set_random_seed(1)
    model = small_network()
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    model.fit(x[:400], y[:400], epochs=8, batch_size=20, verbose=0)
    model.save(folder / "mine.keras")
    found = []
    for name in ("convolution_narrow", "convolution_bits"):
        text = (EXAMPLES / f"{name}.toml").read_text()
        assert len(text.splitlines()) <= 25
        for old, new in SHORTER.items():
            text = text.replace(old, new)
        (folder / f"{name}.toml").write_text(text)
        config = read_config(folder / f"{name}.toml")
        found.append((config, run_flow(config, folder / "runs" / name)))
    # What was frozen before a run, as by `tests/conftest.py`, stays frozen: 10,000 objects and more of the libraries.
    assert gc.get_freeze_count() > 10_000
    return found


def test_the_second_flow_goes_on_from_the_narrow_network(runs):
    (_, narrow), (config, run) = runs
    assert config.train.model == narrow.file("removed.keras")
    model = keras.saving.load_model(run.file("trained.keras"), compile=False)
    assert [model.get_layer(name).filters for name in ("conv1", "conv2")] == [2, 3]
    said = {"left_out": "the flow does not ask for it (simulate above 0 in [hls])"}
    assert narrow.results("hls")["simulation"] == said


def test_every_file_proves_zeros_and_powers_of_two(runs):
    for _, run in runs:
        links, problems = verify_run(run.path)
        assert problems == []
        assert json.loads(run.file("report.json").read_text())["certificate"]
    assert {"quantised.keras, held values", "hls/firmware, held values"} <= {link.link for link in links}
    _, run = runs[1]
    design, held = fp.Design.load(run.file("design.json")), HeldValues.load(run.file("quantised_held.npz"))
    for name in ("conv1", "conv2", "out"):
        raw = np.abs(design[name].weights["weight"])
        kept = raw[raw != 0]
        assert kept.size
        assert (kept & (kept - 1) == 0).all()
        assert (~held.masks[f"{name}/kernel"] | (raw == 0)).all()
    sizes = [design[name].weights["weight"] for name in ("conv1", "conv2")]
    zeros = sum(int((weights == 0).sum()) for weights in sizes)
    assert zeros >= 0.59 * sum(weights.size for weights in sizes)


def test_the_hardware_gives_the_bits_of_the_network_that_was_trained(runs):
    config, run = runs[1]
    data = load_data(config.data.source)
    model = keras.saving.load_model(run.file("quantised.keras"), compile=False)
    rounded = hardware_of(config, data).with_types(run.read_json("quantised_types.json")).rounding(model, None)
    wanted = rounded.predict(data.x_test, verbose=0)
    found = fp.emulate(fp.Design.load(run.file("design.json")), data.x_test)
    np.testing.assert_array_equal(found.reshape(wanted.shape), wanted)
    after = run.results("quantise")["rounded"]["after"]["lost"]
    assert run.results("hls")["emulation"]["of_trained"]["lost"] == after
