"""The flow of every trial: the network rounds while it is fine-tuned, if it can; the first one is the recipe."""

from importlib import import_module

import keras
import numpy as np
import pytest

import fpgaprune as fp
from fpgaprune.errors import ConfigError
from fpgaprune.fit import search_document
from fpgaprune.flow import FinetuneConfig, parse_config
from fpgaprune.network import save_keras


def network(layer):
    return keras.Sequential([keras.Input((8, 3)), layer, keras.layers.Flatten(), keras.layers.Dense(2)])


@pytest.mark.parametrize(
    ("layer", "finetune", "quantised", "note"),
    [
        (keras.layers.Conv1D(2, 3), {}, True, []),
        (keras.layers.Conv1D(2, 3), {"quantised": False}, False, []),
        (keras.layers.Conv1D(2, 3), {"fit": "mine:train"}, None, []),
        (keras.layers.LSTM(2, return_sequences=True), {}, True, []),
        (keras.layers.LayerNormalization(), {}, None, ["the network is fine-tuned without rounding: "]),
    ],
)
def test_a_network_that_can_round_does_unless_the_flow_says_otherwise(layer, finetune, quantised, note, tmp_path):
    model, notes = network(layer), []
    save_keras(model, tmp_path / "mine.keras")
    config = parse_config({"train": {"model": str(tmp_path / "mine.keras")}, "finetune": finetune}, "flow.toml")
    made = search_document(config, model, notes)
    assert made["finetune"].get("quantised") is quantised
    assert [said[: len(one)] for said, one in zip(notes, note, strict=True)] == note


def test_a_flow_without_a_trained_network_is_refused():
    with pytest.raises(ConfigError, match=r"name it with train\.model"):
        search_document(parse_config({}, "flow.toml"), None, [])


class EnoughError(Exception):
    """One trial is enough for the test."""


@pytest.mark.parametrize(("least", "layers"), [(-1.0, {"x": 5}), (0.0, {})])
def test_a_search_for_verilog_begins_with_the_recipe_and_a_bit_for_the_sign_of_an_input(
    least, layers, tmp_path, monkeypatch
):
    """The samples that judge it are few: how a network that only rounds is best trained is not asked first."""
    asked = []

    def run(config, folder, progress):
        asked.append(config)
        raise EnoughError

    monkeypatch.setattr(import_module("fpgaprune.fit.trial"), "run_flow", run)
    rng = np.random.default_rng(0)
    x, y = rng.uniform(least, 1, (200, 16)).astype("float32"), rng.integers(0, 3, 200)
    dense = [keras.layers.Dense(16, activation="relu"), keras.layers.Dense(3)]
    model = keras.Sequential([keras.Input((16,), name="x"), *dense])
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    data = {f"{key}_{part}": array for key, array in (("x", x), ("y", y)) for part in ("train", "valid", "test")}
    target = fp.Target.of("xc7z020clg400-1")
    with pytest.raises(EnoughError):
        fp.fit(model, data, target, out=tmp_path / "out", route="verilog", latency_us=50.0, interval_cycles=1)
    written = asked[0].model_dump(mode="json")
    assert written["quantise"]["hold"] == "digits(1)"
    assert written["select"]["sparsity"] >= 0.6
    assert asked[0][FinetuneConfig].weight_decay == 0.1
    assert {name: entry["activation_bits"] for name, entry in written["hls"]["layers"].items()} == layers
