"""The flow of every trial: the network rounds while it is fine-tuned, if it can."""

import keras
import pytest

from fpgaprune.errors import ConfigError
from fpgaprune.fit import search_document
from fpgaprune.flow import parse_config
from fpgaprune.network import save_keras


def network(layer):
    return keras.Sequential([keras.Input((8, 3)), layer, keras.layers.Flatten(), keras.layers.Dense(2)])


@pytest.mark.parametrize(
    ("layer", "finetune", "quantised", "note"),
    [
        (keras.layers.Conv1D(2, 3), {}, True, []),
        (keras.layers.Conv1D(2, 3), {"quantised": False}, False, []),
        (keras.layers.Conv1D(2, 3), {"fit": "mine:train"}, None, []),
        (keras.layers.LSTM(2, return_sequences=True), {}, None, ["the network is fine-tuned without rounding: "]),
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
