"""Random networks of HGQ2's layers: Keras, the emulator and HGQ2 itself agree in every bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fpgaprune as fp
from fpgaprune.quantise import import_hgq
from tests.quick import quick

pytest.importorskip("hgq")
SEEDS = range(4)


def quantised(layer: Any, rng: np.random.Generator, weights: int = 4) -> None:
    """Every quantiser and every weight of `layer` gets numbers of its own; some channels and weights have no bits."""
    for quantizer in (getattr(layer, name, None) for name in ("_iq", "_oq", "_kq", "_bq")):
        for one in getattr(quantizer, "quantizers", [quantizer]) if quantizer is not None else []:
            inner = one.quantizer
            shape = inner._i.shape
            inner._k.assign(rng.integers(0, 2, shape))
            inner._i.assign(rng.integers(-1, 3, shape))
            if one.q_type == "kif":
                inner._f.assign(rng.integers(-1, 4, shape))
            else:
                inner._k.assign(np.ones(shape))
                inner._b.assign(rng.integers(0, weights, shape))
    for variable in layer.trainable_variables:
        if variable.name in ("kernel", "bias"):
            variable.assign(rng.normal(0, 1.5, variable.shape))
        if variable.name in ("bn_gamma", "bn_beta"):
            variable.assign(rng.normal(1, 0.5, variable.shape))


def scopes(rng: np.random.Generator, input_modes: bool = False) -> Any:
    """HGQ2's settings for data and weights, drawn."""
    from hgq.config import QuantizerConfigScope

    overflow = rng.choice(["WRAP", "SAT", "SAT_SYM"])
    rounding = rng.choice(["RND", "TRN"] if input_modes else ["RND", "TRN", "RND_CONV"])
    weights = QuantizerConfigScope(place=("weight", "bias"), default_q_type="kbi", overflow_mode="SAT_SYM")
    data = QuantizerConfigScope(place="datalane", default_q_type="kif", overflow_mode=overflow, round_mode=rounding)
    return weights, data


def dense_model(rng: np.random.Generator) -> Any:
    """One to three Dense layers, the last with a quantiser behind it now and then."""
    import keras
    from hgq.layers import QBatchNormDense, QDense

    x = entry = keras.Input((int(rng.integers(1, 7)),), name="values")
    count = int(rng.integers(1, 4))
    for number in range(count):
        weights, data = scopes(rng, input_modes=number == 0)
        kind = QBatchNormDense if rng.random() < 0.3 else QDense
        with weights, data:
            options = {"activation": rng.choice(["relu", "linear"]), "enable_oq": bool(rng.random() < 0.3)}
            x = kind(int(rng.integers(1, 7)), name=f"d{number}", **options)(x)
    return keras.Model(entry, x)


def image_model(rng: np.random.Generator) -> Any:
    """A convolution, pooling, a second branch that is added, and a Dense layer; types differ by pixel now and then."""
    import keras
    from hgq.config import QuantizerConfig
    from hgq.layers import QAdd, QBatchNormalization, QConv2D, QDense, QMaxPooling2D

    entry = keras.Input((5, 6, int(rng.integers(1, 3))), name="image")
    weights, data = scopes(rng, input_modes=True)
    each = (-1,) if rng.random() < 0.6 else (1, 2, 3)
    with weights, data:
        modes = {"overflow_mode": rng.choice(["WRAP", "SAT"]), "round_mode": "RND"}
        by_channel = QuantizerConfig("kif", "datalane", heterogeneous_axis=each, homogeneous_axis=None, **modes)
        filters, stride = int(rng.integers(1, 4)), int(rng.integers(1, 3))
        padding = rng.choice(["valid", "same"])
        x = QConv2D(filters, 3, stride, padding, activation="relu", iq_conf=by_channel, name="conv")(entry)
        x = QBatchNormalization(name="norm")(x) if rng.random() < 0.5 else x
        if rng.random() < 0.5:
            x = QAdd(name="both")([x, keras.layers.ReLU(name="positive")(x)])
        if padding == "same" and stride == 1:
            pool = QMaxPooling2D if rng.random() < 0.5 else keras.layers.MaxPooling2D
            x = pool(2, name="pool")(x)
        x = QDense(3, name="out")(keras.layers.Flatten(name="flat")(x))
    return keras.Model(entry, x)


def drawn(make: Any, seed: int) -> tuple[Any, np.ndarray]:
    """A model with bits, and samples that overflow some of its types."""
    import keras

    keras.utils.set_random_seed(seed)
    rng = np.random.default_rng(seed)
    model = make(rng)
    for layer in model.layers:
        quantised(layer, rng)
    shape = (32, *model.inputs[0].shape[1:])
    return model, (rng.integers(-300, 300, shape) / 64).astype(np.float32)


def alive(make: Any, seed: int) -> tuple[Any, np.ndarray]:
    """The first of many draws whose outputs are not constants."""
    for attempt in range(20):
        model, x = drawn(make, seed + 1000 * attempt)
        if np.ptp(np.asarray(model(x, training=False)), axis=0).any():
            return model, x
    raise AssertionError("every network drawn is dead")


@pytest.mark.parametrize("seed", quick(SEEDS[:2], SEEDS))
@pytest.mark.parametrize("make", [dense_model, image_model])
def test_an_imported_network_computes_what_hgq2_computes(make: Any, seed: int) -> None:
    model, x = drawn(make, seed)
    wanted = np.asarray(model(x, training=False))
    found = import_hgq(model)
    np.testing.assert_array_equal(np.asarray(found.model(x, training=False)), wanted)
    design = fp.make_design(found.model, fp.Target.of("xc7a35t", io_type="io_parallel"))
    np.testing.assert_array_equal(fp.emulate(design, x), wanted)


@pytest.mark.parametrize("seed", quick(SEEDS[:2], SEEDS))
def test_removal_after_the_import_changes_no_bit(seed: int) -> None:
    model, x = alive(dense_model, 100 + seed)
    found = import_hgq(model)
    plan = fp.plan_removal(found.model)
    small = fp.apply_removal(found.model, plan)
    np.testing.assert_array_equal(np.asarray(small(x, training=False)), np.asarray(model(x, training=False)))
    design = fp.make_design(small, fp.Target.of("xc7a35t", io_type="io_parallel"))
    np.testing.assert_array_equal(fp.emulate(design, x), np.asarray(model(x, training=False)))


def test_what_has_no_bits_is_a_zero_of_the_masks() -> None:
    model, _ = drawn(dense_model, 7)
    found = import_hgq(model)
    for layer in model.layers[1:]:
        bits = np.asarray(layer.kq.quantizer.b)
        mask = found.masks[f"{layer.name}/kernel"]
        assert not mask[bits == 0].any()
        np.testing.assert_array_equal(mask, np.asarray(layer.qkernel) != 0)
    assert fp.certify(found.model, found.masks).ok


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("softmax", "layer 'last' is a QSoftmax of HGQ2's, which is not taken over; wanted one of QDense, "),
        ("tanh", "layer 'last' has activation 'tanh', of which HGQ2 trains no exact bits; wanted one of linear, relu"),
        ("float", "layer 'last' is a Dense whose bits HGQ2 does not know; use its layer of HGQ2's"),
        ("scaler", "quantiser 'last_iq' is of type 'kif', or scales; wanted 'kif' or 'kbi' without a scaler"),
        ("twice", "'again' is an operation of keras.ops, or a layer that is called twice"),
    ],
)
def test_what_is_not_taken_over_is_named(kind: str, message: str) -> None:
    import keras
    from hgq.config import QuantizerConfig
    from hgq.layers import QDense, QSoftmax

    entry = keras.Input((3,))
    again = QDense(3, name="again")
    x = again(entry)
    makers = {
        "softmax": lambda: QSoftmax(name="last"),
        "tanh": lambda: QDense(2, activation="tanh", name="last"),
        "float": lambda: keras.layers.Dense(2, name="last"),
        "scaler": lambda: QDense(2, iq_conf=QuantizerConfig("kif", "datalane", scaler=2.0), name="last"),
        "twice": lambda: again,
    }
    with pytest.raises(fp.FpgaPruneError) as error:
        import_hgq(keras.Model(entry, makers[kind]()(x)))
    assert str(error.value).startswith(message)


def test_a_saved_network_is_the_network(tmp_path: Path) -> None:
    model, x = drawn(dense_model, 5)
    model.save(tmp_path / "model.keras")
    found = import_hgq(tmp_path / "model.keras")
    np.testing.assert_array_equal(np.asarray(found.model(x, training=False)), np.asarray(model(x, training=False)))
