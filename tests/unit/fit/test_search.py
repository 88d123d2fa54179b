"""The flow of every trial: the network rounds while it is fine-tuned, if it can; the first one is the recipe."""

from importlib import import_module

import keras
import numpy as np
import pytest

import fpgaprune as fp
from fpgaprune.errors import ConfigError, UnsupportedLayerError
from fpgaprune.fit import search_document
from fpgaprune.flow import Dataset, FinetuneConfig, Silent, TargetConfig, known_better, parse_config
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


@pytest.fixture
def listened(monkeypatch):
    """The flows of the trials, which end at once; what the search says of its route; and who hears it."""
    asked, said = [], []

    def run(config, folder, progress):
        asked.append(config)
        raise EnoughError

    class Said(Silent):
        def stage(self, name, state, note="", seconds=None):
            said.extend([note] if name == "route" else [])

    monkeypatch.setattr(import_module("fpgaprune.fit.trial"), "run_flow", run)
    return asked, said, Said()


@pytest.mark.parametrize(
    ("route", "share", "taken", "told"),
    [
        (None, 0.03, "verilog", "as an hls4ml project it does not, and --route hls prunes it until it does"),
        ("hls", 0.03, "hls", "; try --route verilog"),
        ("auto", 0.8, "hls", None),
        (None, 1e-4, "hls", None),
    ],
)
def test_nobody_has_to_ask_for_our_verilog_where_the_network_fits_only_so(
    route, share, taken, told, tmp_path, listened
):
    asked, said, progress = listened
    rng = np.random.default_rng(0)
    x, y = rng.uniform(-1, 1, (200, 16)).astype("float32"), rng.integers(0, 3, 200)
    model = keras.Sequential([keras.Input((16,), name="x"), keras.layers.Dense(16), keras.layers.Dense(3)])
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    data = {f"{key}_{part}": array for key, array in (("x", x), ("y", y)) for part in ("train", "valid", "test")}
    target = fp.Target.of("xc7z020clg400-1")
    with pytest.raises(EnoughError):
        fp.fit(model, data, target, out=tmp_path / "out", route=route, share=share, progress=progress)
    assert asked[0][TargetConfig].route == taken
    assert [told is not None and one.endswith(told) for one in said] == [True] * (told is not None)
    assert asked[0].model_dump(mode="json")["finetune"]["quantised"] is True


@pytest.mark.parametrize(
    ("route", "error", "text"),
    [(None, EnoughError, "^$"), ("hls", UnsupportedLayerError, r"'both_reversed'.*hls4ml has no layer")],
)
def test_a_network_that_hls4ml_does_not_take_becomes_our_verilog_unless_a_project_is_asked_for(
    route, error, text, tmp_path, listened
):
    asked, said, progress = listened
    rng = np.random.default_rng(0)
    x, y = rng.uniform(-1, 1, (200, 8, 3)).astype("float32"), rng.integers(0, 2, 200)
    model = keras.Sequential([keras.Input((8, 3)), keras.layers.Bidirectional(keras.layers.GRU(3), name="both")])
    model.add(keras.layers.Dense(2))
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    data = {f"{key}_{part}": array for key, array in (("x", x), ("y", y)) for part in ("train", "valid", "test")}
    with pytest.raises(error, match=text):
        fp.fit(model, data, fp.Target.of("pynq-z2"), out=tmp_path / "out", route=route, progress=progress)
    assert [one[TargetConfig].route for one in asked] == ["verilog"] * (route is None)
    assert len(said) == len(asked)
    assert all(one.startswith("our Verilog, for hls4ml does not take this network: layer 'both_rev") for one in said)


def test_a_short_search_begins_with_a_network_that_locks_something_and_allows_what_the_trained_one_knows_by_heart(
    tmp_path, monkeypatch
):
    """No trial of it measures what that is: the untouched network with 16 bits, trained whole, would be no answer."""
    asked, told = [], []

    def run(config, folder, progress):
        asked.append(config)
        raise EnoughError

    monkeypatch.setattr(import_module("fpgaprune.fit.trial"), "run_flow", run)
    monkeypatch.setattr(import_module("fpgaprune.fit.search"), "known_better", lambda *_: 0.08)
    monkeypatch.setattr(import_module("fpgaprune.fit.search"), "known_samples", lambda limits: told.append(limits))
    rng = np.random.default_rng(0)
    x, y = rng.uniform(-1, 1, (800, 16)).astype("float32"), rng.integers(0, 3, 800)
    dense = [keras.layers.Dense(16, activation="relu"), keras.layers.Dense(3)]
    model = keras.Sequential([keras.Input((16,), name="x"), *dense])
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    data = {f"{key}_{part}": array for key, array in (("x", x), ("y", y)) for part in ("train", "test")}
    target = fp.Target.of("xc7z020clg400-1")
    for minutes, sparsity, bits in ((1.0, True, 8), (30.0, False, 16)):
        with pytest.raises(EnoughError):
            fp.fit(model, data, target, out=tmp_path / f"{minutes}", minutes=minutes)
        written = asked.pop().model_dump(mode="json")
        assert bool(written["select"]["sparsity"] or written["select"]["filters"]) == sparsity
        assert written["hls"]["weight_bits"] == bits
    # A quarter of the gap, and only in the short search.
    assert [limits.retraining_loss for limits in told] == [pytest.approx(0.02)]


@pytest.mark.parametrize(("metric", "mode", "better"), [("accuracy", "max", 0.25), ("mae", "min", 2.0)])
def test_how_much_better_a_network_knows_samples_is_counted_as_a_loss_is(metric, mode, better):
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, use_bias=False)])
    model.layers[0].set_weights([np.ones((1, 1), "float32")])
    model.compile("adam", "mse", metrics=["binary_accuracy" if metric == "accuracy" else metric])
    x = np.array([[1.0], [1.0], [0.0], [0.0]], "float32")
    labels = {
        "accuracy": (x, np.array([[1.0], [1.0], [0.0], [1.0]], "float32")),
        # An error of 0.1 on the samples that it knows, of 0.3 on others.
        "mae": (x + 0.1, x + 0.3),
    }[metric]
    known, other = (Dataset("made up", x, y, x, y, None) for y in labels)
    config = parse_config({"train": {"mode": mode}}, "flow.toml")
    assert known_better(config, model, known, other) == pytest.approx(better, rel=1e-3)
    assert known_better(config, model, known, known) == 0.0
