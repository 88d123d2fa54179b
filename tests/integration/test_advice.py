"""Advice that is followed: projects made with what it says, by hls4ml, against what it promised."""

from __future__ import annotations

import tomllib
from dataclasses import replace

import numpy as np
import pytest

import fpgaprune as fp
from fpgaprune.target import find_part
from fpgaprune.values import FixedType

PART = "xc7z020clg400-1"
START = {"target": {"part": PART}, "hls": {"precision": "fixed<16,6>"}}


@pytest.fixture(scope="module")
def model():
    """A small 1-D CNN as its owner has it."""
    import keras
    from keras import layers

    keras.utils.set_random_seed(1)
    stack = [keras.Input((128, 1), name="wave")]
    for n, filters in enumerate((16, 32, 32), start=1):
        stack += [
            layers.Conv1D(filters, 5, padding="same", name=f"conv{n}"),
            layers.BatchNormalization(name=f"bn{n}"),
            layers.ReLU(name=f"relu{n}"),
            layers.MaxPooling1D(2, name=f"pool{n}"),
        ]
    stack += [layers.Flatten(), layers.Dense(32, activation="relu", name="fc1"), layers.Dense(5, name="fc2")]
    return keras.Sequential(stack)


@pytest.fixture(scope="module")
def samples():
    return np.random.default_rng(0).normal(size=(64, 128, 1)).astype(np.float32)


def merged(settings, change):
    """`settings` of a flow file after its owner has written `change` into it."""
    both = dict(settings)
    for key, value in change.items():
        nested = isinstance(value, dict) and isinstance(both.get(key), dict)
        both[key] = merged(both[key], value) if nested else value
    return both


def made(model, settings, samples):
    """The design that a flow with these settings makes."""
    target = fp.Target.of(**settings["target"])
    hls = dict(settings.get("hls", {}))
    layers, precision = hls.pop("layers", {}), hls.pop("precision", "widths")
    precision = fp.Precision(**hls) if precision == "widths" else FixedType.parse(precision)
    return fp.make_design(model, target, samples, precision, "wave", layers=layers), target


def test_the_first_advice_for_a_project_leads_to_a_fitting_design_in_at_most_two_runs(model, samples):
    settings = START
    design, target = made(model, settings, samples)
    advice = fp.advise(design, target)
    assert advice.now.fits is False
    runs = 0
    while advice.needed:
        first = next(s for s in advice.suggestions if s.after.stage == "synth")
        settings = merged(settings, tomllib.loads(first.change))
        assert settings["target"]["part"] == PART  # no other part is needed
        runs += 1
        design, target = made(model, settings, samples)
        advice = fp.advise(design, target)
        assert runs <= 2
    found = fp.estimate(design, target)
    assert (found.fits, found.fits_upper) == (True, True)


@pytest.mark.parametrize(
    "start",
    [
        pytest.param(START, marks=pytest.mark.slow),
        {"target": {"part": PART}, "hls": {"weight_bits": 12, "activation_bits": 10, "sum_bits": 16}},
        {"target": {"part": PART, "io_type": "io_parallel"}, "hls": {}},
    ],
    ids=["one type", "widths", "io_parallel"],
)
def test_a_project_made_as_advised_is_priced_as_promised(model, samples, start):
    design, target = made(model, start, samples)
    followed = set()
    for suggestion in fp.advise(design, target).suggestions:
        change = tomllib.loads(suggestion.change) if suggestion.place == "flow file" else {"select": None}
        if not change.keys() <= {"target", "hls"} or suggestion.knob in {"part", *followed}:
            continue
        found = fp.estimate(*made(model, merged(start, change), samples))
        after = suggestion.after
        assert found.latency_cycles == pytest.approx(after.latency_cycles, rel=0.03, abs=5), suggestion.knob
        assert found.interval_cycles == pytest.approx(after.interval_cycles, rel=0.03, abs=5), suggestion.knob
        narrower = "bits" in suggestion.knob or "io_type" in suggestion.knob
        for name in ("lut", "ff", "dsp", "bram18"):
            wanted, got = getattr(after.used, name).value, getattr(found.total["synth"], name).value
            # Where types are chosen anew from the data, only the hls stage knows them exactly.
            assert got == pytest.approx(wanted, rel=0.1 if narrower else 0, abs=20 if narrower else 0), suggestion.knob
        followed.add(suggestion.knob)
    assert len(followed) >= 5


def test_more_zeros_are_priced_as_the_pruned_network_is(model, samples):
    import keras

    settings = {"target": {"part": PART}, "hls": {"weight_bits": 8, "activation_bits": 8}}
    design, target = made(model, settings, samples)
    sparse = next(s for s in fp.advise(design, target).suggestions if s.knob == "sparsity")
    change = tomllib.loads(sparse.change)["select"]
    pruned = keras.models.clone_model(model)
    pruned.set_weights(model.get_weights())
    masks = fp.select(pruned, sparsity=change["sparsity"], scope=change["scope"])
    for path, mask in masks.items():
        weight = next(w for w in pruned.weights if w.path.endswith(path))
        weight.assign(np.where(mask, weight.numpy(), 0))
    found = fp.estimate(*made(pruned, settings, samples))
    for name in ("lut", "ff"):
        wanted, got = getattr(sparse.after.used, name).value, getattr(found.total["synth"], name).value
        assert got == pytest.approx(wanted, rel=0.1)


def test_advice_for_a_design_that_was_relaid_says_every_layer_anew(model, samples):
    """Entries of an earlier advice stay in a flow file: a later one must override each of them."""
    settings = merged(START, {"target": {"strategy": "resource"}, "hls": {"layers": {"conv2": {"reuse_factor": 8}}}})
    design, target = made(model, settings, samples)
    smaller = replace(target, part=find_part("xc7z010"), order_number="xc7z010clg400-1")
    for suggestion in fp.advise(design, smaller).suggestions:
        change = tomllib.loads(suggestion.change) if suggestion.place == "flow file" else {}
        if "reuse_factor" in change.get("target", {}):
            again, _ = made(model, merged(settings, {k: v for k, v in change.items() if k != "select"}), samples)
            assert {x.name for x in again.layers if x.strategy} == set(change["hls"]["layers"])
