"""Types of single channels in Keras: the same bits as the types themselves, and removal that knows them."""

import itertools

import keras
import numpy as np
import pytest

import fpgaprune as fp
from fpgaprune.errors import HlsError, UnsupportedLayerError
from fpgaprune.quantise import RoundedChannels, exact_type
from fpgaprune.values import OVERFLOW_MODES, ROUNDING_MODES, FixedType
from tests.called import called

PARTS = ([4, 0, 6, 1], [1, 0, -1, 2], [1, 0, 0, 1])


def rounded(rounding="RND", overflow="SAT", parts=PARTS, name="q"):
    layer = RoundedChannels(rounding, overflow, name=name)
    layer.build((None, len(parts[0])))
    layer.set_weights([np.array(part, np.float32) for part in parts])
    return layer


def test_each_channel_has_the_bits_of_its_type():
    rng = np.random.default_rng(0)
    x = np.concatenate([np.arange(-60, 60)[:, None] / 16 + np.zeros(4), rng.normal(0, 3, (50, 4))]).astype("float32")
    for rounding, overflow in itertools.product(ROUNDING_MODES, OVERFLOW_MODES):
        layer = rounded(rounding, overflow)
        kinds = layer.types()
        assert kinds[1] is None
        wanted = [k.to_float(k.to_raw(c)) if k else 0 * c for k, c in zip(kinds, x.T, strict=True)]
        np.testing.assert_array_equal(np.asarray(layer(x)).T, wanted, err_msg=f"{rounding} {overflow}")


def test_the_widest_type_holds_every_channel():
    # fixed<4,1>, ufixed<6,-1> with seven bits right of the point, fixed<1,2>: a sign, two whole bits, seven.
    assert rounded().widest() == FixedType(9, 2)
    assert rounded(parts=([3, 0], [1, 0], [0, 0])).widest() == FixedType(3, 1, signed=False)
    assert rounded(parts=([0], [0], [0])).widest() == FixedType(1, 1, signed=False)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([0.0], FixedType(2, 2, signed=False)),
        ([0.75, -1.5, 0.0], FixedType(4, 2)),
        ([6.0, 2.0], FixedType(2, 3, signed=False)),
        ([-4.0], FixedType(2, 4)),
        ([0.125], FixedType(2, -2, signed=False)),
    ],
)
def test_the_narrowest_type_of_some_values_holds_them(values, kind):
    found = exact_type(np.array(values, np.float32))
    np.testing.assert_array_equal(found.to_float(found.to_raw(values)), values)
    assert (found.integer, found.signed) == (kind.integer, kind.signed)
    assert found.width <= kind.width + 1


def test_an_unknown_mode_is_refused():
    with pytest.raises(HlsError, match="modes are 'WRAP' and 'RND'; wanted one of TRN, "):
        RoundedChannels("WRAP", "RND")


def network():
    entry = keras.Input((4,), name="x")
    x = keras.layers.Dense(4, activation="relu", name="first")(rounded("TRN", name="q0")(entry))
    model = keras.Model(entry, keras.layers.Dense(2, name="last")(rounded(name="q1")(x)))
    rng = np.random.default_rng(1)
    for name in ("first", "last"):
        layer = model.get_layer(name)
        layer.set_weights([rng.integers(-8, 9, w.shape) / 8 for w in layer.get_weights()])
    return model


def test_a_channel_without_bits_is_dead_and_leaves(tmp_path):
    model = network()
    small = fp.apply_removal(model, fp.plan_removal(model))
    assert small.get_layer("first").units == 3
    assert small.get_layer("q1").types() == tuple(kind for kind in model.get_layer("q1").types() if kind)
    x = (np.random.default_rng(2).integers(-99, 99, (40, 4)) / 32).astype(np.float32)
    np.testing.assert_array_equal(called(small, x), called(model, x))
    small.save(tmp_path / "small.keras")
    again = keras.saving.load_model(tmp_path / "small.keras")
    np.testing.assert_array_equal(called(again, x), called(model, x))


def test_its_design_needs_no_samples_and_computes_the_same():
    model = network()
    design = fp.make_design(model, fp.Target.of("xc7a35t"))
    x = (np.random.default_rng(3).integers(-99, 99, (40, 4)) / 32).astype(np.float32)
    np.testing.assert_array_equal(fp.emulate(design, x), called(model, x))


def test_types_beside_its_own_are_refused():
    target = fp.Target.of("xc7a35t")
    with pytest.raises(HlsError, match=r"rounds its data to types of its own, .*; leave out precision fixed<16,6>"):
        fp.make_design(network(), target, precision="fixed<16,6>")
    with pytest.raises(HlsError, match=r"leave out the types and widths of layer 'last'"):
        fp.make_design(network(), target, layers={"last": {"weight_bits": 4}})
    with pytest.raises(
        UnsupportedLayerError, match=r"layer 'q0' .*each channel has a type of its own, .*backend oneAPI"
    ):
        fp.make_design(network(), fp.Target.of("xc7a35t", backend="oneAPI", strategy="resource"))


def test_types_that_differ_from_pixel_to_pixel_are_no_stream():
    entry = keras.Input((2, 2, 1), name="x")
    layer = RoundedChannels(each_value=True, name="q")
    model = keras.Model(entry, keras.layers.Flatten()(layer(entry)))
    layer.set_weights([np.array(part, np.float32) for part in PARTS])
    with pytest.raises(UnsupportedLayerError, match=r"layer 'q' .*types differ from pixel to pixel, .*parallel"):
        fp.make_design(model, fp.Target.of("xc7a35t"))
    design = fp.make_design(model, fp.Target.of("xc7a35t", io_type="io_parallel"))
    x = (np.random.default_rng(4).integers(-99, 99, (40, 2, 2, 1)) / 32).astype(np.float32)
    np.testing.assert_array_equal(fp.emulate(design, x), called(model, x))


def test_an_input_that_one_port_cannot_hold_is_refused():
    entry = keras.Input((4,), name="x")
    model = keras.Model(entry, keras.layers.Dense(2, name="last")(rounded("RND_CONV")(entry)))
    with pytest.raises(
        UnsupportedLayerError, match=r"input 'x' is rounded to several types with modes RND_CONV and SAT"
    ):
        fp.make_design(model, fp.Target.of("xc7a35t"))
    plain = keras.Model(entry, rounded()(keras.layers.Dense(4)(entry)))
    with pytest.raises(UnsupportedLayerError, match="input 'x' is not rounded by the network"):
        fp.make_design(plain, fp.Target.of("xc7a35t"))
