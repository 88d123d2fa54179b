"""An argument of another kind is one clear line at the first call, and no AttributeError from within."""

import keras
import numpy as np
import pytest

import fpgaprune as fp

X = np.random.default_rng(1).normal(size=(32, 6, 6, 1)).astype("float32")


@pytest.fixture(scope="module")
def model():
    keras.utils.set_random_seed(1)
    layers = [keras.layers.Conv2D(2, 3, name="conv"), keras.layers.Flatten(), keras.layers.Dense(3, name="dense")]
    return keras.Sequential([keras.Input((6, 6, 1)), *layers])


def other(shape):
    return keras.Sequential([keras.Input(shape), keras.layers.Flatten(), keras.layers.Dense(3)])


DESIGN = r"design is a Sequential; wanted a Design, as fp\.make_design gives"
TARGET = r"target is a str; wanted a Target, as fp\.Target\.of"
CASES = {
    "a part for a target": (lambda m: fp.make_design(m, "xc7z020", X), TARGET),
    "a part for a target of an estimate": (
        lambda m: fp.estimate(fp.make_design(m, fp.Target.of("xc7z020"), X), "xc7z020"),
        TARGET,
    ),
    "a part for a target of a search": (lambda m: fp.fit(m, {}, "xc7z020", out="search"), TARGET),
    "no part": (lambda m: fp.Target.of(None), r"part is a NoneType; wanted its name"),
    "a model to estimate": (lambda m: fp.estimate(m, fp.Target.of("xc7z020")), DESIGN),
    "a model to emulate": (lambda m: fp.emulate(m, X), DESIGN),
    "a model for Verilog": (lambda m: fp.to_verilog(m, "verilog"), DESIGN),
    "the design second": (
        lambda m: fp.to_verilog(fp.make_design(m, fp.Target.of("xc7z020"), X), {}),
        "output_dir is a dict; wanted the path of a folder",
    ),
    "half a bit": (lambda m: fp.Precision(weight_bits=6.5), r"weight_bits is 6\.5; wanted a whole number from 2 to 32"),
    "bits of layers": (lambda m: fp.Precision(weight_bits={"conv": 4}), "weight_bits is {'conv': 4}; wanted a whole"),
    "a file to plan": (lambda m: fp.plan_removal("mine.keras"), "model is a str; wanted a Keras model"),
    "no target": (lambda m: fp.to_hls(m, "hls"), TARGET),
    "no samples": (
        lambda m: fp.to_hls(m, fp.Target.of("xc7z020"), "hls"),
        r"data of a model is the path 'hls'; wanted samples: to_hls\(model, target, x, 'hls'\)",
    ),
    "a design, no project": (lambda m: fp.check_verilog(m, m, fp.select(m, 0.5)), "project is a Sequential; wanted a"),
    "a number to certify": (lambda m: fp.certify(m, 0.5), "masks is a float; wanted weight path to bool array"),
    "no plan": (lambda m: fp.apply_removal(m, fp.select(m, 0.5)), "plan is a MaskSet; wanted a RemovalPlan"),
    "no file": (lambda _: fp.load(None), "path is a NoneType; wanted the path of a network"),
    "the plan first": (lambda m: fp.apply_removal(fp.plan_removal(m), m), "model is a RemovalPlan; wanted a Keras"),
    "one slice": (
        lambda m: fp.MaskSet.from_slices(m, "conv/kernel[0]"),
        r"slices is the string 'conv/kernel\[0\]'; wanted a sequence of slices, as \['conv/kernel\[0\]'\]",
    ),
    "another input": (lambda m: fp.equivalence(m, other((4,))), r"shape \[\(6, 6, 1\)\]; model '.*' takes \[\(4,\)\]"),
    "other samples": (lambda m: fp.equivalence(m, m, X[:, :5]), r"of shape \[\(5, 6, 1\)\]; model '.*' takes \[\(6, "),
    "two inputs": (lambda m: fp.equivalence(m, m, [X, X]), r"of shape \[\(6, 6, 1\), \(6, 6, 1\)\]; model '.*' takes"),
}


@pytest.mark.parametrize("name", CASES)
def test_an_argument_of_another_kind_is_named(name, model):
    call, message = CASES[name]
    with pytest.raises(fp.FpgaPruneError, match=message) as caught:
        call(model)
    assert "\n" not in str(caught.value)


def test_an_input_of_any_length_takes_samples_of_every_length():
    given = keras.Input((None, 2))
    model = keras.Model(given, keras.layers.GlobalAveragePooling1D()(keras.layers.Conv1D(3, 2)(given)))
    assert fp.equivalence(model, model, np.ones((4, 7, 2), "float32")).ok
