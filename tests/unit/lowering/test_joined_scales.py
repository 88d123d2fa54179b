"""Scales in front of quantisers: joined, of few bits, and rounding as the network does, for every sum."""

from functools import partial

import keras
import numpy as np
import pytest
from keras import layers

import fpgaprune as fp
from fpgaprune.errors import HlsError, UnsupportedLayerError
from fpgaprune.lowering import fold
from fpgaprune.lowering import joined_scales as joined
from fpgaprune.quantise import RoundedChannels
from fpgaprune.values import FixedType
from tests.called import called

TARGET = fp.Target.of("xc7z020clg400-1", io_type="io_parallel")
KINDS = [
    FixedType(2, 2, False, "RND_CONV", "SAT"),
    FixedType(2, 2, True, "RND_CONV", "SAT_SYM"),
    FixedType(1, 1, True, "TRN", "SAT"),
    FixedType(5, 3, True, "RND", "SAT"),
]


def quantiser(name, kind, channels):
    layer = RoundedChannels(kind.rounding, kind.overflow, name=name)
    layer.build((None, channels))
    parts = (kind.width, kind.integer, float(kind.signed))
    layer.set_weights([np.full(channels, part, np.float32) for part in parts])
    return layer


def normalisation(name, seed, channels=6):
    rng = np.random.default_rng(seed)
    layer = layers.BatchNormalization(name=name)
    layer.build((None, channels))
    spread = np.array([1e-2, 0.1, 1, 5, 30, 200])[:channels]
    layer.set_weights([rng.normal(0, 1, channels), rng.normal(0, 2, channels), rng.normal(0, 9, channels), spread])
    return layer


def network(kind, relu=True, seed=0):
    """A Dense layer of whole numbers, two normalisations, a relu, a scale, a quantiser and a scale."""
    inputs = keras.Input((5,), name="x")
    dense = layers.Dense(6, use_bias=False, name="fc")
    x = normalisation("second", seed + 1)(normalisation("first", seed)(dense(inputs)))
    x = layers.ReLU(name="relu")(x) if relu else x
    x = quantiser("q", kind, 6)(layers.Rescaling(2.7182817, name="steps")(x))
    model = keras.Model(inputs, layers.Rescaling(0.37, name="scale")(x))
    dense.set_weights([np.random.default_rng(seed).integers(-3, 4, (5, 6)).astype("float32")])
    return model


def samples(n=3000):
    return np.random.default_rng(1).integers(-8, 8, (n, 5)).astype("float32")


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("relu", [False, True])
def test_every_rounded_number_is_that_of_the_network(kind, relu):
    model, x = network(kind, relu), samples()
    design = fp.make_design(model, TARGET, x)
    scale = next(layer for layer in design.layers if layer.name == "steps")
    # Two normalisations and a scale are one, whose factors have a few bits between the first and the last one.
    assert [layer.kind for layer in design.layers].count("BatchNormalization") == 2
    whole = [raw for raw in abs(scale.weights["scale"]).tolist() if raw]
    assert max(((raw // (raw & -raw)).bit_length() for raw in whole), default=0) <= 12
    found = fp.emulate(design, x)
    assert np.array_equal(found.astype("float32"), called(model, x))
    assert len(np.unique(found)) > (1 if kind.width > 1 else 0)


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("scale", [0.0, 1e-6, 0.3, 0.8237, 7.25, 1e4])
def test_a_simpler_line_rounds_every_sum_alike(kind, relu, scale):
    incoming = FixedType(10, 9)
    sums = np.arange(incoming.raw_min, incoming.raw_max + 1) * incoming.lsb
    for sign, shift in ((1, 0.1), (-1, 0.1), (1, -3.77), (-1, 250.123)):
        a, b = joined._simplest(incoming, relu, sign * scale, shift, (kind,))
        own, wanted = (np.maximum(x, 0) if relu else x for x in (a * sums + b, sign * scale * sums + shift))
        assert np.array_equal(kind.to_raw(own), kind.to_raw(wanted)), (a, b)
        assert np.float32(a) == a
        assert np.float32(b) == b or (a, b) == (sign * scale, shift)


def test_a_line_that_passes_a_step_elsewhere_is_seen(monkeypatch):
    """The test above fails if one step is left out."""
    right = joined.crossings

    def fewer(*given):
        below, above, steps = right(*given)
        return below[1:], above[1:], (steps[0][1:], steps[1][1:])

    monkeypatch.setattr(joined, "crossings", fewer)
    with pytest.raises(AssertionError):
        test_a_simpler_line_rounds_every_sum_alike(KINDS[0], False, 0.3)


def test_a_relu_that_another_layer_reads_stays_where_it_is():
    inputs = keras.Input((6,), name="x")
    relu = layers.ReLU(name="relu")(normalisation("n", 3)(inputs))
    first = quantiser("q", KINDS[0], 6)(layers.Rescaling(3.0, name="steps")(relu))
    model = keras.Model(inputs, layers.Concatenate()([first, quantiser("p", KINDS[3], 6)(relu)]))
    x = np.random.default_rng(0).integers(-40, 40, (500, 6)).astype("float32")
    folded = fold(model)
    assert [layer.name for layer in folded.layers if layer.name in ("n", "relu", "steps")] == ["n", "relu", "steps"]
    assert np.allclose(called(folded, x), called(model, x))


def test_an_input_that_nothing_rounds():
    """Its type is that of the samples, or given, or asked for in one line."""
    model, x = network(KINDS[0]), samples()
    entering = lambda **more: fp.make_design(model, TARGET, **more).layers[0].types["result"]  # noqa: E731
    assert str(entering(data=x)) == "fixed<5,5>"
    real = x + np.float32(0.3)
    assert entering(data=real).width == 8
    assert entering(data=real, layers={"x": {"activation_bits": 5}}).width == 5
    assert entering(data=real, precision=fp.Precision(activation_bits=11)).width == 11
    assert str(entering(layers={"x": {"result": "fixed<6,4>"}})) == "fixed<6,4>"
    with pytest.raises(UnsupportedLayerError, match=r"input 'x' is not rounded .* layers=\{'x': \{'result'"):
        entering()
    refused = partial(fp.make_design, model, TARGET, x)
    with pytest.raises(HlsError, match=r"rounds its data to types of its own.*'fc'"):
        refused(layers={"fc": {"weight_bits": 4}})
    with pytest.raises(HlsError, match=r"rounds its data to types of its own.*'relu'"):
        refused(layers={"relu": {"activation_bits": 4}})
    # A quantiser behind a scale gets four bits more than it keeps.
    inputs = keras.Input((6,), name="x")
    model = keras.Model(inputs, quantiser("q", FixedType(9, 5, True, "RND", "SAT"), 6)(layers.Rescaling(0.3)(inputs)))
    assert entering(data=np.random.default_rng(0).normal(size=(50, 6)).astype("float32")).width == 13


def test_an_average_over_a_power_of_two_is_exact():
    inputs = keras.Input((4, 4, 6), name="x")
    x = quantiser("q", KINDS[3], 6)(inputs)
    both = [layers.AveragePooling2D((1, 2))(x), layers.AveragePooling2D((1, 2), strides=(2, 1))(x)]
    outputs = [layers.Flatten()(both[0]), layers.Flatten()(both[1]), layers.GlobalAveragePooling2D()(x)]
    model = keras.Model(inputs, layers.Concatenate()(outputs))
    given = np.random.default_rng(0).normal(0, 3, (200, 4, 4, 6)).astype("float32")
    assert np.array_equal(fp.emulate(fp.make_design(model, TARGET), given), called(model, given))
    for odd in (layers.AveragePooling2D(3), layers.AveragePooling2D(2, padding="same", strides=1)):
        with pytest.raises(UnsupportedLayerError, match=r"wanted 2, 4, 8, \.\.\. of them without padding"):
            fp.make_design(keras.Model(inputs, odd(x)), TARGET)


def test_a_softmax_at_the_end_reads_exact_sums():
    inputs = keras.Input((5,), name="x")
    model = keras.Model(inputs, layers.Softmax(name="soft")(network(KINDS[3])(inputs)))
    x = samples(400)
    found = fp.emulate(fp.make_design(model, TARGET, x), x)
    assert np.abs(found - called(model, x)).max() < 0.02
