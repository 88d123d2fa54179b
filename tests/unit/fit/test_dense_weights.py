"""Zeros of Dense layers behind convolutions: a search chooses them where they make the network much smaller."""

import keras
import numpy as np
import pytest

from fpgaprune.fit import Estimates, Limits, find_route, with_dense_weights
from fpgaprune.flow import Dataset
from fpgaprune.target import Target

DOCUMENT = {"name": "fit", "finetune": {"quantised": True}, "select": {"sparsity": 0.0}}
X, Y = np.random.default_rng(0).uniform(size=(64, 12, 4)).astype("float32"), np.arange(64) % 8


def network(outputs=8, dense_behind=keras.layers.Flatten):
    stack = [keras.Input((12, 4)), keras.layers.Conv1D(8, 3, padding="same", activation="relu", name="c1")]
    stack += [keras.layers.Conv1D(8, 3, padding="same", activation="relu", name="c2"), dense_behind(name="flat")]
    model = keras.Sequential([*stack, keras.layers.Dense(outputs, name="out")])
    rng = np.random.default_rng(1)
    for weight in model.trainable_weights:
        weight.assign(rng.normal(size=weight.shape))
    return model


def asked(document, model, **limits):
    """The flow of the trials, and how many networks were estimated for it."""
    route, made = find_route("verilog", Target.of("xc7z020clg400-1")), []

    def estimates(document):
        made.append(document)
        return Estimates(route, document, Dataset("mine", X, Y, X, Y), model, Limits(**limits))

    return with_dense_weights(document, model, estimates), len(made)


def test_dense_weights_behind_few_positions_are_chosen_too():
    found, estimated = asked(DOCUMENT, network(), interval_cycles=14, latency_us=50)
    assert found["select"] == {"sparsity": 0.0, "paths": ["c1/kernel", "c2/kernel", "out/kernel"]}
    assert estimated == 2
    assert "paths" not in DOCUMENT["select"]


def test_they_are_left_alone_where_that_saves_little():
    """With so much time for a sample a few multipliers take all weights of the Dense layer, zeros or not."""
    model = network()
    estimates = {}

    class Priced:
        def __init__(self, document):
            self.after = "paths" in document.get("select", {})

        def is_possible(self, _):
            return True

        def best_layout(self, knobs):
            estimates[self.after] = knobs
            return laid(0.9 if self.after else 1.0)

    def laid(size):
        return type("Laid", (), {"size": size, "share": size, "interval_cycles": 100})()

    assert with_dense_weights(DOCUMENT, model, Priced) is DOCUMENT
    assert set(estimates) == {False, True}


@pytest.mark.parametrize(
    "select",
    [{"paths": ["c*/kernel"]}, {"granularity": "kernel"}, {"zeros": True}, {"sparsity": {"c*/kernel": 0.5}}],
)
def test_what_the_flow_says_of_the_choice_stays(select):
    document = DOCUMENT | {"select": select}
    assert asked(document, network()) == (document, 0)


@pytest.mark.parametrize(
    "model",
    [network(2, keras.layers.GlobalAveragePooling1D), keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)])],
    ids=["few weights", "no convolution"],
)
def test_nothing_is_estimated_where_there_is_nothing_to_gain(model):
    assert asked(DOCUMENT, model) == (DOCUMENT, 0)


def test_no_time_is_taken_for_a_network_whose_adders_have_no_room():
    stack = [keras.Input((40, 40, 1)), keras.layers.Conv2D(8, 3), keras.layers.Flatten(), keras.layers.Dense(9)]
    assert asked(DOCUMENT, keras.Sequential(stack)) == (DOCUMENT, 0)
