"""emulate and trace: what they give, what they refuse, and that batches do not matter."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fpgaprune as fp
from fpgaprune.emulate import emulate, run, trace
from fpgaprune.errors import DataError, DesignError, UnsupportedLayerError
from fpgaprune.values import FixedType

from .designs import EIGHT, design, layer, mlp


def test_a_dense_layer_by_hand():
    x = np.array([[1.0, 0.5], [-2.0, 0.25]])
    assert emulate(mlp(), x).tolist() == [[2.5, 0.0], [0.0, 0.0625]]
    assert emulate(mlp(), x).dtype == np.float32


def test_trace_gives_every_layer_in_order():
    found = trace(mlp(), [[1.0, 0.5]])
    assert list(found) == ["x", "fc", "relu"]
    assert found["fc"].tolist() == [[2.5, -1.375]]
    assert list(trace(mlp(), [[1.0, 0.5]], ["relu"])) == ["relu"]


def test_the_public_name_is_this():
    assert fp.emulate is emulate


def test_batches_do_not_change_a_bit(monkeypatch):
    x = np.random.default_rng(3).uniform(-9, 9, (57, 2))
    whole = emulate(mlp(), x)
    monkeypatch.setattr(run, "BATCH_VALUES", 10)
    assert emulate(mlp(), x).tobytes() == whole.tobytes()


def test_no_samples_give_no_outputs():
    assert emulate(mlp(), np.zeros((0, 2))).shape == (0, 2)


def test_no_output_is_a_negative_zero():
    got = emulate(
        design(layer("x", "Input", None, (2,), types={"result": FixedType(8, 4, True, "TRN_ZERO")})), [[-0.01, 0]]
    )
    assert not np.signbit(got).any()


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (
            lambda: design(layer("x", "Input", None, (2,)), layer("g", "GarNet", "x", (2,))),
            "layer 'g' is a GarNet, which has no emulation; those that have: Concatenate, Convolution",
        ),
        (
            lambda: design(
                layer("x", "Input", None, (2,)),
                layer("a", "Activation", "x", (2,), attributes={"activation": "hard_shrink"}),
            ),
            "layer 'a': activation 'hard_shrink' has no emulation; those that have: elu, exponential, gelu",
        ),
        (
            lambda: design(
                layer("x", "Input", None, (2,)),
                layer("m", "Merge", None, (2,), inputs=("x", "x"), attributes={"op": "dot1d"}),
            ),
            "layer 'm': merge 'dot1d' has no emulation",
        ),
        (
            lambda: design(layer("x", "Input", None, (2,)), backend="oneAPI"),
            "it is for backend oneAPI, whose arithmetic",
        ),
    ],
)
def test_what_has_no_emulation_is_refused_by_name(made, message):
    with pytest.raises(UnsupportedLayerError, match=message):
        emulate(made(), np.zeros((1, 2)))


def wide_product():
    wide = FixedType(40, 20)
    scale = layer(
        "bn",
        "BatchNormalization",
        "x",
        (2,),
        types={"scale": wide, "bias": wide},
        weights={"scale": np.array([2**38, 1]), "bias": np.array([0, 0])},
    )
    return design(layer("x", "Input", None, (2,), types={"result": wide}), scale)


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (wide_product, r"layer 'bn' \(BatchNormalization\): an intermediate value needs 79 bits"),
        (
            lambda: design(layer("x", "Input", None, (2,)), layer("d", "Dense", "x", (2,))),
            r"layer 'd' \(Dense\): no weights 'weight'; it has none",
        ),
        (
            lambda: design(layer("x", "Input", None, (2,)), layer("s", "Softmax", "x", (2,))),
            r"layer 's' \(Softmax\): no type for 'accum'; it has result",
        ),
    ],
)
def test_what_cannot_be_exact_is_refused_before_anything_is_computed(made, message, monkeypatch):
    computed = []
    original = run.Exact.from_real

    def spy(samples, kind):
        computed.append(len(samples))
        return original(samples, kind)

    monkeypatch.setattr(run.Exact, "from_real", spy)
    with pytest.raises(DesignError, match=message):
        emulate(made(), np.zeros((5, 2)))
    assert computed == [0]


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (np.zeros((3, 4)), r"samples for input 'x' have shape \(4,\); wanted \(2,\)"),
        ([np.zeros((3, 2)), np.zeros((3, 2))], r"samples for input 'x' have shape \(3, 2\); wanted \(2,\)"),
        (np.array([[np.nan, 0.0]]), "samples for input 'x' hold NaN or infinity"),
    ],
)
def test_samples_that_do_not_fit_are_refused(x, message):
    with pytest.raises(DataError, match=message):
        emulate(mlp(), x)


def test_two_inputs_must_have_as_many_samples():
    both = design(
        layer("x", "Input", None, (2,)),
        layer("y", "Input", None, (2,)),
        layer("m", "Merge", None, (2,), inputs=("x", "y"), attributes={"op": "add"}),
    )
    assert emulate(both, [np.ones((1, 2)), np.ones((1, 2))]).tolist() == [[2.0, 2.0]]
    with pytest.raises(DataError, match="design 'net' has 2 inputs; got 1 arrays: give one for each"):
        emulate(both, np.ones((1, 2)))
    with pytest.raises(DataError, match="input 'y' has 2 samples; input 'x' has 1"):
        emulate(both, [np.ones((1, 2)), np.ones((2, 2))])


def test_a_reuse_factor_that_reads_past_the_weights_is_refused():
    fc = mlp("resource").layers[1]
    odd = design(
        layer("x", "Input", None, (3,)),
        layer(
            "fc",
            "Dense",
            "x",
            (1,),
            types={**fc.types},
            weights={"weight": np.ones((3, 1), np.int64), "bias": np.zeros(1, np.int64)},
            strategy="resource",
            reuse_factor=2,
        ),
    )
    with pytest.raises(DesignError, match="reuse factor 2 does not divide its 3 inputs"):
        emulate(odd, np.zeros((1, 3)))


def test_an_unknown_order_of_addition_is_refused_only_where_it_matters():
    assert emulate(mlp("distributed_arithmetic"), [[1.0, 0.5]]).tolist() == [[2.5, 0.0]]
    narrow = mlp("distributed_arithmetic", FixedType(8, 4, True, "RND", "SAT"))
    with pytest.raises(
        DesignError, match="'distributed_arithmetic' adds in an order that is not known here, and accumulator"
    ):
        emulate(narrow, [[1.0, 0.5]])


def test_the_sums_of_an_output_meet_its_own_bias():
    """The largest sum, 31.5, and the largest bias, 8, do not fit into 6 bits together, but are of two outputs."""
    net = mlp("distributed_arithmetic", FixedType(14, 6))
    apart = {"weight": np.array([[16, -8], [47, 4]]), "bias": np.array([0, -128])}
    layers = (net.layers[0], replace(net.layers[1], weights=apart), net.layers[2])
    assert emulate(replace(net, layers=layers), [[1.0, -0.5]]).tolist() == [[0.0, 0.0]]
    together = {**apart, "bias": np.array([-128, 0])}
    layers = (net.layers[0], replace(net.layers[1], weights=together), net.layers[2])
    with pytest.raises(DesignError, match=r"layer 'fc'.*accumulator fixed<14,6> may round or overflow"):
        emulate(replace(net, layers=layers), [[1.0, -0.5]])


def test_pooling_pads_an_unsigned_type_as_hls4ml_does():
    kind = FixedType(4, 4, signed=False)
    pool = layer(
        "pool",
        "Pooling1D",
        "x",
        (2, 1),
        types={"result": kind, "accum": kind},
        attributes={"pool_op": "Max", "pool_width": 2, "stride_width": 2, "pad_left": 0, "pad_right": 1},
    )
    # Its padding is the top bit alone, which for an unsigned type is the middle of the range, 8.
    assert emulate(
        design(layer("x", "Input", None, (3, 1), types={"result": kind}), pool), [[[1], [2], [3]]]
    ).ravel().tolist() == [2, 8]


def test_eight_bits_saturate_at_their_ends():
    assert emulate(design(layer("x", "Input", None, (2,))), [[100.0, -100.0]]).tolist() == [[EIGHT.raw_max / 16, -8.0]]
