"""Everything that would stop a model is said at once, before anything is trained."""

import keras
import numpy as np
import pytest
from keras import layers

import fpgaprune as fp
from fpgaprune.errors import FpgaPruneError, HlsError
from fpgaprune.hls import check_model

PART = "xc7z020clg400-1"


def target(**settings):
    return fp.Target.of(PART, **settings)


def cnn():
    return keras.Sequential(
        [
            keras.Input((6, 6, 3)),
            layers.Conv2D(5, 3, activation="relu", name="conv"),
            layers.Flatten(),
            layers.Dense(7, name="dense"),
        ],
        name="cnn",
    )


def test_a_model_that_goes_through_has_no_problems():
    for settings in ({}, {"strategy": "resource", "reuse_factor": 1}, {"backend": "oneAPI", "strategy": "resource"}):
        check = check_model(cnn(), target(**settings), layers={"conv_relu": {"activation_bits": 6}})
        assert check.problems == check.notes == ()
        assert check.require() is check


def test_all_problems_are_said_together():
    sequence = keras.Input((8, 4), name="sequence")
    out = layers.MultiHeadAttention(2, 2, name="look")(sequence, sequence)
    out = layers.LayerNormalization(name="norm")(out)
    model = keras.Model(sequence, layers.Dense(3, name="out", activation="relu")(out), name="attends")
    check = check_model(
        model,
        target(strategy="resource", reuse_factor=5),
        "fixed<8",
        name="main",
        layers={
            "uot": {"weight_bits": 4},
            "out": {"weight": "fixd<3,1>"},
            "out_relu": {"activation_bits": 0},
        },
        backend_options={"bord": "pynq-z2"},
    )
    wanted = [
        "precision 'fixed<8' is neither 'auto' nor a type",
        "project name 'main' is not a free C identifier",
        "layer 'look' is a MultiHeadAttention, for which there is no hardware here; use convolut",
        "layer 'norm' is a LayerNormalization, for which there is no hardware here; use",
        "options for layer 'uot' fit no layer; did you mean 'out'?",
        "layer 'out', weight: ",
        "layer 'out_relu' has activation_bits 0; wanted a whole number, 1 or more",
        "backend Vitis has no option 'bord'; wanted one of ",
    ]
    assert len(check.problems) == len(wanted)
    for problem, begin in zip(check.problems, wanted, strict=True):
        assert problem.startswith(begin)
    note = "layer 'out' (4 inputs, 3 outputs) has reuse factor 4, the nearest to 5 that strategy 'resource' can build"
    assert check.notes == (note,)
    with pytest.raises(HlsError, match=r"precision 'fixed<8'.*; layer 'look'.*; layer 'norm'"):
        check.require()


@pytest.mark.parametrize(
    ("settings", "options", "problem"),
    [
        ({"backend": "Vitus"}, {}, "backend 'Vitus' is unknown; wanted one of Vitis, Vivado"),
        (
            {"backend": "Quartus"},
            {},
            "backend 'Quartus' is not supported: Intel has discontinued its HLS compiler, and hls4ml",
        ),
        ({"backend": "oneAPI"}, {}, "backend oneAPI has no strategy 'latency'; it has resource"),
        ({"backend": "VivadoAccelerator"}, {"board": "zcu102"}, "board 'zcu102' has part xczu9eg-ffvb1156-2-e, not"),
        (
            {"strategy": "resource_unrolled", "io_type": "io_parallel"},
            {},
            "layer 'conv' is a convolution, for which strategy 'resource_unrolled' has no template in io_parallel",
        ),
        (
            {"backend": "Libero", "io_type": "io_parallel"},
            {},
            "layer 'conv' (Conv2D): backend Libero has templates for Dense layers of vectors",
        ),
    ],
)
def test_a_target_that_does_not_go_with_the_model_is_a_problem(settings, options, problem):
    found = check_model(cnn(), target(**settings), backend_options=options).problems
    assert len(found) == 1
    assert found[0].startswith(problem)


def test_a_reuse_factor_moves_to_the_nearest_one_whoever_asked_for_it():
    wanted = target(strategy="resource", reuse_factor=5)
    check = check_model(cnn(), wanted)
    assert check.problems == ()
    note = "layer 'conv' (27 inputs, 5 outputs) has reuse factor 3, the nearest to 5 that strategy 'resource' can build"
    assert check.notes == (note,)
    # A factor for a layer by its name moves too: it may fit the network only after channels are removed.
    for name in ("c*", "conv"):
        named = check_model(cnn(), wanted, layers={name: {"reuse_factor": 8}})
        assert named.problems == ()
        (note,) = named.notes
        assert "has reuse factor 9, the nearest to 8 that strategy 'resource' can build" in note


def of(*stack, shape=(6, 6, 4)):
    return keras.Sequential([keras.Input(shape), *stack], name="of")


@pytest.mark.parametrize(
    ("build", "problem"),
    [
        (lambda: of(layers.RandomCrop(4, 4, name="crop")), "layer 'crop' is a RandomCrop, for which there is no hard"),
        (
            lambda: of(layers.Rescaling(np.inf, name="scale")),
            "layer 'scale' (Rescaling) cannot be converted: its scale or its offset does not fit the shape of",
        ),
        (lambda: of(layers.UnitNormalization(name="unit")), "layer 'unit' is a UnitNormalization, for which there is"),
        (lambda: of(layers.Dense(3), shape=(None, 4)), "input 'keras_tensor"),
    ],
)
def test_each_true_reason_is_told(build, problem):
    (found,) = check_model(build(), target()).problems
    assert found.startswith(problem)


@pytest.mark.parametrize(
    ("pool", "strides", "padding"),
    [(2, None, "valid"), (2, None, "same"), (4, None, "valid"), (4, None, "same"), (3, 2, "valid"), (2, 3, "same")],
)
@pytest.mark.parametrize("kind", [layers.MaxPooling2D, layers.AveragePooling1D])
def test_a_pooling_that_cannot_be_streamed_is_known_before_training(kind, pool, strides, padding):
    shape = (6, 6, 2) if kind is layers.MaxPooling2D else (6, 2)
    model = of(kind(pool, strides, padding, name="pool"), layers.Flatten(), layers.Dense(2), shape=shape)
    x = np.random.default_rng(0).normal(size=(4, *shape))
    problems = check_model(model, target(io_type="io_stream")).problems
    try:
        fp.make_design(model, target(io_type="io_stream"), x)
    except FpgaPruneError:
        (problem,) = problems
        assert "'pool'" in problem
        assert "no template in io_stream" in problem
    else:
        assert problems == ()
    assert check_model(model, target(io_type="io_parallel")).problems == ()
