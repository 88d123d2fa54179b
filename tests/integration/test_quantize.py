"""A rounded network is its hardware: in Keras it gives the bits that the design gives, before and after training."""

from dataclasses import replace

import keras
import numpy as np
import pytest
from keras import layers

import fpgaprune as fp
from fpgaprune.errors import HlsError, UnsupportedLayerError
from fpgaprune.lowering import carry_masks, settle, settled_types
from fpgaprune.quantise import PLAIN, kernel_types, unrounded, with_next_power
from tests.called import called

TARGET = fp.Target.of("xc7z020clg400-1", io_type="io_parallel")
OURS = fp.Target.of("tang-nano-20k")


def image_network():
    """Every layer that rounds: convolutions of all kinds, BatchNorm, averages, a sum, a concatenation, Dense."""
    entry = keras.Input((8, 8, 2), name="image")
    x = layers.BatchNormalization(name="bn")(layers.Conv2D(6, 3, padding="same", use_bias=False, name="conv")(entry))
    skip = x = layers.Activation("relu", name="act")(x)
    x = layers.DepthwiseConv2D(3, padding="same", activation="relu", name="dw")(x)
    x = layers.Add(name="add")([layers.Conv2D(6, 1, name="pw")(x), skip])
    x = layers.AveragePooling2D(2, name="average")(layers.ReLU(name="relu")(x))
    x = layers.SeparableConv2D(5, 3, activation="relu", name="sep")(x)
    pooled = [layers.GlobalAveragePooling2D(name="gap")(x), layers.GlobalMaxPooling2D(name="gmp")(x)]
    x = layers.Dense(7, activation="relu", name="hidden")(layers.Concatenate(name="cat")(pooled))
    model = keras.Model(entry, layers.Dense(4, name="head")(x), name="network")
    rng = np.random.default_rng(3)
    for weight in model.get_layer("bn").weights:
        weight.assign(0.5 + np.abs(rng.normal(size=weight.shape)))
    return model


def wave_network():
    """One axis, strides, an average of three values, and numbers below zero wherever they can be."""
    return keras.Sequential(
        [
            keras.Input((12, 3), name="wave"),
            layers.Conv1D(5, 3, strides=2, activation="relu", name="first"),
            layers.ZeroPadding1D(1, name="pad"),
            layers.Conv1D(4, 3, name="second"),
            layers.Activation("linear", name="nothing"),
            layers.MaxPooling1D(2, name="pool"),
            layers.Flatten(name="flat"),
            layers.Dense(6, activation="relu", name="hidden"),
            layers.Dense(2, name="head"),
        ],
        name="waves",
    )


def gated_network():
    """BatchNorm by itself, first and behind a ReLU, and products: hard_swish, squeeze and excite, a difference."""
    entry = keras.Input((6, 6, 3), name="image")
    x = layers.BatchNormalization(name="first")(entry)
    x = layers.Conv2D(4, 3, padding="same", activation="relu", name="conv")(x)
    x = layers.BatchNormalization(scale=False, name="bn")(x)
    x = layers.Activation("hard_swish", name="swish")(layers.Conv2D(5, 3, padding="same", name="second")(x))
    gate = layers.GlobalAveragePooling2D(name="gap", keepdims=True)(x)
    gate = layers.Dense(5, activation="hard_sigmoid", name="gate")(gate)
    x = layers.Subtract(name="less")([layers.Multiply(name="gated")([x, gate]), x])
    x = layers.Dense(6, activation="relu", name="hidden")(layers.GlobalMaxPooling2D(name="gmp")(x))
    model = keras.Model(entry, layers.Dense(3, name="head")(x), name="gates")
    rng = np.random.default_rng(4)
    for name in ("first", "bn"):
        for weight in model.get_layer(name).weights:
            weight.assign(0.5 + np.abs(rng.normal(size=weight.shape)))
    return model


def sloped_network():
    """Slopes that train, shared and one for each value, of both signs, and averages that reach over an edge."""
    entry = keras.Input((7, 9, 2), name="image")
    x = layers.Conv2D(4, 3, padding="same", name="conv")(entry)
    x = layers.PReLU(shared_axes=[1, 2], name="shared")(x)
    x = layers.AveragePooling2D(3, 2, padding="same", name="edges")(x)
    x = layers.PReLU(name="each")(layers.Conv2D(5, 3, name="second")(x))
    x = layers.Average(name="both")([x, layers.LeakyReLU(0.2, name="less")(x)])
    x = layers.AveragePooling1D(4, 3, padding="same", name="line")(layers.Reshape((6, 5), name="flat")(x))
    x = layers.GlobalAveragePooling1D(name="gap")(x)
    x = layers.LeakyReLU(0.3, name="leaky")(layers.Dense(6, name="hidden")(x))
    model = keras.Model(entry, layers.Dense(3, name="head")(x), name="slopes")
    rng = np.random.default_rng(5)
    for name in ("shared", "each"):
        model.get_layer(name).alpha.assign(rng.uniform(-0.5, 2.5, model.get_layer(name).alpha.shape))
    return model


def recurrent_network():
    """GRU and LSTM, with and without a bias, that hand on each step or the last, and whose state has no upper bound."""
    return keras.Sequential(
        [
            keras.Input((9, 3), name="wave"),
            layers.GRU(6, return_sequences=True, bias_initializer="glorot_uniform", name="gru"),
            layers.LSTM(5, return_sequences=True, use_bias=False, activation="relu", name="lstm"),
            layers.GRU(4, return_sequences=True, recurrent_activation="tanh", activation="sigmoid", name="gates"),
            layers.LSTM(7, dropout=0.5, name="last"),
            layers.Dense(6, activation="relu", name="hidden"),
            layers.Dense(3, name="head"),
        ],
        name="recurrent",
    )


def network_of_both_directions(
    both=(("sum", layers.GRU, {"return_sequences": True}), ("concat", layers.LSTM, {})),
):
    """Layers that read backwards, alone and beside another, and that hand on each step or the last."""
    return keras.Sequential(
        [
            keras.Input((6, 3), name="wave"),
            layers.SimpleRNN(4, "relu", return_sequences=True, go_backwards=True, name="back"),
            *(layers.Bidirectional(cell(4, **more), merge_mode=mode, name=mode) for mode, cell, more in both),
            layers.Dense(6, activation="relu", name="hidden"),
            layers.Dense(3, name="head"),
        ],
        name="both",
    )


def network_of_one_layer_of_both_directions():
    """A part of that."""
    return network_of_both_directions([("concat", layers.GRU, {})])


def copies(model):
    return {path: value.copy() for path, value in fp.weight_arrays(model).items()}


@pytest.mark.parametrize(
    ("build", "precision"),
    [
        (gated_network, fp.Precision(4, 5, 12)),
        pytest.param(gated_network, fp.Precision(16, 16, 20), marks=pytest.mark.slow),  # float32 lacks its products
        # Sums are hardly finer than a table.
        pytest.param(recurrent_network, fp.Precision(3, 4, 6), marks=pytest.mark.slow),
        # Float32 does not hold its sums.
        pytest.param(recurrent_network, fp.Precision(8, 10, 16), marks=pytest.mark.slow),
        (network_of_one_layer_of_both_directions, fp.Precision(4, 6, 10)),
        pytest.param(network_of_both_directions, fp.Precision(4, 6, 10), marks=pytest.mark.slow),
        (image_network, fp.Precision(4, 3, 12)),
        pytest.param(sloped_network, fp.Precision(4, 5, 12), marks=pytest.mark.slow),
        (sloped_network, fp.Precision(16, 24, 24)),  # whose averages float32 does not hold
        (wave_network, fp.Precision(12, 12, 20)),  # whose sums float32 does not hold
    ],
)
def test_keras_gives_the_bits_of_the_hardware_before_and_after_training(build, precision, tmp_path):
    keras.utils.set_random_seed(2)
    model = build()
    rng = np.random.default_rng(1)
    x = rng.normal(size=(160, *model.input_shape[1:])).astype("float32")
    y = rng.integers(0, model.output_shape[-1], len(x))
    trained = copies(model)
    target = OURS if "both_directions" in build.__name__ else TARGET
    quantized = fp.quantize(model, target, x[:100], precision)
    for path, value in fp.weight_arrays(model).items():
        np.testing.assert_array_equal(value, trained[path])  # hers is left alone
    clipped = fp.make_design(model, target, x[:100], replace(precision, clips=True))
    # As each layer is called by itself, and below as `predict` compiles them.
    before = called(quantized, x)
    np.testing.assert_array_equal(fp.emulate(clipped, x), before)

    locked = [path for path in fp.weight_arrays(quantized) if path.endswith(("hidden/kernel", "recurrent_kernel"))]
    masks = fp.MaskSet.from_slices(quantized, [f"{path}[:3, :]" for path in locked])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    quantized.compile(keras.optimizers.Adam(0.01), loss)
    started = copies(quantized)
    fp.finetune(quantized, masks, x, y, epochs=2, batch_size=16, verbose=0)
    given = quantized.predict(x, verbose=0)
    assert loss(y, given) < loss(y, before)
    assert fp.certify(quantized, masks).ok
    moved = [path for path, value in fp.weight_arrays(quantized).items() if (value != started[path]).any()]
    assert len(moved) == len(quantized.trainable_weights)

    design = fp.make_design(quantized, target, x[:100])
    np.testing.assert_array_equal(fp.emulate(design, x), given)
    for path in locked:
        name, _, role = path.partition("/")
        assert not design[name].weights["weight" if role == "kernel" else "recurrent_weight"][:3].any()
    # The types are those it was trained under; a sum that grew has more integer bits.
    for layer in quantized.layers:
        if isinstance(layer, tuple(PLAIN)):
            made = {role: design[layer.name].types[role] for role in layer.types}
            result = layer.types["result"]
            grown = made["result"].integer - result.integer
            assert 0 <= grown <= 3
            wider = replace(result, width=result.width + grown, integer=result.integer + grown)
            assert made == {**layer.types, "result": wider}
    plain = settle(quantized)
    made = fp.make_design(plain, target, x[:100], layers=settled_types(quantized, x[:100]))
    np.testing.assert_array_equal(fp.emulate(made, x), given)
    for layer in plain.layers:
        if isinstance(layer, layers.PReLU):
            kind = made[layer.name].types["param"]
            np.testing.assert_array_equal(kind.to_float(kind.to_raw(np.asarray(layer.alpha))), np.asarray(layer.alpha))
    quantized.save(tmp_path / "rounded.keras")
    again = keras.models.load_model(tmp_path / "rounded.keras")
    np.testing.assert_array_equal(called(again, x), given)


def test_a_state_that_is_finer_than_sums_is_cut_off():
    model = keras.Sequential([keras.Input((6, 2)), layers.LSTM(3, use_bias=False, activation="relu", name="lstm")])
    rng = np.random.default_rng(2)
    model.set_weights([4 * rng.uniform(-1, 1, (2, 12)), 12 * rng.uniform(-1, 1, (3, 12))])
    x = rng.normal(size=(40, 6, 2)).astype("float32")
    quantized = fp.quantize(
        model, TARGET, x, fp.Precision(3, 4, 6), layers={"lstm": {"result": "fixed<24,10,RND,SAT>"}}
    )
    design = fp.make_design(quantized, TARGET, x)
    assert design["lstm"].types["accum"].fraction < design["lstm"].types["result"].fraction
    np.testing.assert_array_equal(fp.emulate(design, x), called(quantized, x))


def test_locks_and_types_of_a_recurrent_layer_go_with_its_cell():
    model = recurrent_network()
    x = np.random.default_rng(1).normal(size=(60, 9, 3)).astype("float32")
    quantized = fp.quantize(model, TARGET, x, fp.Precision(4, 5, 12))
    kernels = [path for path in fp.weight_arrays(quantized) if path.endswith("kernel")]
    kinds = kernel_types(quantized)
    assert list(kinds) == kernels
    design = fp.make_design(quantized, TARGET, x)
    assert kinds["gru/gru_cell/recurrent_kernel"] == design["gru"].types["recurrent_weight"]
    masks = fp.select(model, 0.5)
    carried = carry_masks(model, quantized, masks)
    assert carried.locked_count == masks.locked_count
    assert any(path.endswith("recurrent_kernel") for path in masks)
    wider = with_next_power({"recurrent_weight": "fixed<4,1>", "bias": "fixed<4,1>"})
    assert wider == {"recurrent_weight": "fixed<5,2>", "bias": "fixed<4,1>"}


def test_without_its_rounding_it_is_a_network_of_keras(tmp_path):
    keras.utils.set_random_seed(2)
    model = wave_network()
    x = np.random.default_rng(1).normal(size=(60, 12, 3)).astype("float32")
    plain = unrounded(fp.quantize(model, TARGET, x, fp.Precision(4, 4, 12)))
    assert {type(layer).__module__.partition(".")[0] for layer in plain.layers} == {"keras"}
    np.testing.assert_allclose(called(plain, x), called(model, x), rtol=1e-5, atol=1e-5)


def test_what_is_not_rounded_exactly_is_refused():
    x = np.random.default_rng(1).normal(size=(30, 12, 3)).astype("float32")
    entry = keras.Input((12, 3))
    normed = keras.Model(
        entry, layers.BatchNormalization(name="bn")(layers.MaxPooling1D(2, name="max_pooling1d")(entry))
    )
    wide = {"max_pooling1d": {"result": "fixed<32,4>"}, "bn": {"scale": "fixed<32,4>"}}
    with pytest.raises(UnsupportedLayerError, match="layer 'bn' scales values of 32 bits by factors of 32, whose"):
        fp.quantize(normed, TARGET, x, layers=wide)
    sloped = keras.Model(entry, layers.PReLU(name="gate")(entry))
    with pytest.raises(UnsupportedLayerError, match="layer 'gate' scales values of 40 bits by factors of 16, whose"):
        fp.quantize(sloped, TARGET, x, layers={sloped.layers[0].name: {"result": "fixed<40,4>"}})
    steps = keras.Model(entry, layers.GRU(2, name="gru")(entry))
    with pytest.raises(UnsupportedLayerError, match=r"layer 'gru' has sums of 4\d bits, whose products with"):
        fp.quantize(steps, TARGET, x * 2.0**24, fp.Precision(8, 8, 16))
    model = wave_network()
    with pytest.raises(HlsError, match="one type for every sum too"):
        fp.quantize(model, TARGET, x, "fixed<16,6>")
    with pytest.raises(HlsError, match="rounds already"):
        fp.quantize(fp.quantize(model, TARGET, x), TARGET, x)
