"""Files with layers of HGQ 1, BinaryNet and QKeras for Keras 3: what comes in computes what their sources say."""

import io
import json
import zipfile
from pathlib import Path

import h5py
import keras
import numpy as np
import pytest

import fpgaprune as fp
from fpgaprune.errors import ModelImportError, UnsupportedLayerError
from fpgaprune.network import trained_bits
from fpgaprune.quantise import import_layers, import_qkeras
from tests.called import called

FILES = Path(__file__).with_name("qkeras")
RNG = np.random.default_rng(0)
X = RNG.uniform(-8, 8, (200, 5)).astype("float32")
W1 = RNG.integers(-8, 8, (5, 4)).astype("float32") / 8
W2 = RNG.uniform(-1.2, 1.2, (4, 3)).astype("float32")
BITS = np.int8([[6, 0, 4, 7, 5]])
INTEGERS = np.int8([[3, 2, 2, 5, 3]])
SIGNED = np.int8([[1, 1, 0, 1, 0]])


def write(path, layers, weights, version="2.13.1"):
    """A Sequential of `layers`, (class, name, settings), as Keras 2 saves it."""
    config = [{"class_name": kind, "config": {"name": name, **own}} for kind, name, own in layers]
    config[0]["config"]["batch_input_shape"] = [None, 5]
    with h5py.File(path, "w") as file:
        document = {"class_name": "Sequential", "config": {"name": "net", "layers": config}}
        file.attrs["model_config"], file.attrs["keras_version"] = json.dumps(document), version
        group = file.create_group("model_weights")
        group.attrs["layer_names"] = [name for _, name, _ in layers]
        for _, name, _ in layers:
            own = group.create_group(name)
            own.attrs["weight_names"] = [f"{name}/{key}:0" for key in weights.get(name, {})]
            for key, values in weights.get(name, {}).items():
                own.create_dataset(f"{name}/{key}:0", data=values)
    return path


def quantised(path, shapes=(BITS, INTEGERS, SIGNED), **settings):
    own = {"RND": "RND", "SAT": "WRAP", "shape": [1, 5], "overrides": {}, "fusible": False, **settings}
    layers = [
        ("FixedPointQuantizer", "q", own),
        ("Dense", "fc", {"units": 4, "activation": "linear", "use_bias": False}),
        ("FixedPointQuantizer", "r", {**own, "RND": "TRN", "SAT": "SAT", "shape": [1]}),
    ]
    weights = {"q": dict(zip(("keep_negative", "bits", "integers"), (shapes[2], *shapes[:2]), strict=True))}
    weights["r"] = {"keep_negative": np.int8([1]), "bits": np.int8([6]), "integers": np.int8([4])}
    return write(path, layers, {**weights, "fc": {"kernel": W1}})


def gfixed(x, signed, bits, integers, rounding, overflow):
    """What HGQ 1 computes."""
    signed, bits, integers = (np.asarray(one, np.float64) for one in (signed, bits, integers))
    signed, integers = np.where(bits == 0, 0, signed), np.where(bits == 0, 0, integers)
    scale = 2.0 ** (bits - integers)
    whole = np.floor(x * scale + (0.5 if rounding == "RND" else 0))
    high = 2 ** (bits - signed) - 1
    low = -(high + 1) * signed
    whole = np.clip(whole, low, high) if overflow == "SAT" else np.mod(whole - low, high - low + 1) + low
    return whole / scale * (bits != 0)


def test_each_channel_is_rounded_as_hgq_does(tmp_path):
    path = quantised(tmp_path / "net.h5")
    assert trained_bits(path) == "HGQ 1"
    net = fp.load(path)
    assert net.format == "HGQ 1"
    wanted = gfixed(gfixed(X, SIGNED, BITS, INTEGERS, "RND", "WRAP") @ W1, 1, 6, 4, "TRN", "SAT")
    assert np.array_equal(called(net.model, X), wanted.astype("float32"))
    assert net.masks.locked_count == (W1 == 0).sum()
    design = fp.make_design(net.model, fp.Target.of("xc7z020clg400-1", io_type="io_parallel"))
    assert np.array_equal(fp.emulate(design, X), wanted.astype("float32"))


def test_what_hgq_rounds_otherwise_is_refused(tmp_path):
    with pytest.raises(UnsupportedLayerError, match="'q' rounds by 'RND' and overflows by 'WRAP_SM'"):
        fp.load(quantised(tmp_path / "net.h5", SAT="WRAP_SM"))
    with pytest.raises(ModelImportError, match=r"'q' has types of shape \(1, 4\) for data of \(5,\)"):
        fp.load(quantised(tmp_path / "net.h5", tuple(one[:, :4] for one in (BITS, INTEGERS, SIGNED))))
    with pytest.raises(ModelImportError, match="names no layer of BinaryNet's"):
        import_layers(quantised(tmp_path / "net.h5"), "BinaryNet")


def few_values(path, kind, function, **settings):
    own = {"H": 1.0, "kernel_lr_multiplier": 2.0, "bias_lr_multiplier": None, "use_bias": False, "dtype": "float64"}
    layers = [
        (kind, "fc1", {**own, "units": 4, **settings}),
        ("Activation", "act", {"activation": function}),
        (kind, "fc2", {**own, "units": 3, "H": 0.5}),
    ]
    return write(path, layers, {"fc1": {"kernel": W1}, "fc2": {"kernel": W2}}, "2.2.4")


def sign(x):
    return np.where(x > 0, 1.0, -1.0)


def third(x):
    return np.where(x > 0.5, 1.0, np.where(x <= -0.5, -1.0, 0.0))


@pytest.mark.parametrize(
    ("kind", "function", "kernel", "activation"),
    [
        ("BinaryDense", "binary_tanh", sign, sign),
        ("TernaryDense", "ternary_tanh", third, third),
        ("BinaryDense", "relu1", sign, lambda x: np.clip(x, 0, 1)),
    ],
)
def test_weights_of_two_and_three_values(kind, function, kernel, activation, tmp_path):
    net = fp.load(few_values(tmp_path / "net.h5", kind, function))
    assert net.format == "BinaryNet"
    # Sums at the thresholds, too.
    x = np.concatenate([X, np.round(X * 2) / 2])
    wanted = activation(x @ kernel(W1).astype("float32")) @ (0.5 * kernel(W2 / 0.5))
    assert np.allclose(called(net.model, x), wanted, atol=1e-5)


def test_settings_of_few_values_are_checked(tmp_path):
    with pytest.raises(UnsupportedLayerError, match="'fc1' has H='Glorot'; wanted a number above 0"):
        fp.load(few_values(tmp_path / "net.h5", "BinaryDense", "relu1", H="Glorot"))
    with pytest.raises(UnsupportedLayerError, match="'fc1' has activation 'relu1'; give it a layer"):
        fp.load(few_values(tmp_path / "net.h5", "BinaryDense", "relu1", activation="relu1"))


def as_archive(source, path, change=lambda layer: layer):
    """The file of QKeras for Keras 2 as QKeras for Keras 3 saves it."""
    weights = io.BytesIO()
    with h5py.File(source, "r") as old, h5py.File(weights, "w") as new:
        document = json.loads(old.attrs["model_config"])
        for at, layer in enumerate(document["config"]["layers"]):
            kind, name = layer["class_name"], layer["config"]["name"]
            if kind.startswith("Q"):
                layer |= {"module": "qkeras.qlayers", "registered_name": f"qkeras>{kind}"}
                layer["config"]["quantization_config"] = None
            group = new.create_group(f"layers/layer_{at}/vars")
            group.attrs["name"] = name
            stored = old["model_weights"].get(name, {})
            for number, key in enumerate(stored.attrs["weight_names"] if name in old["model_weights"] else ()):
                group.create_dataset(str(number), data=stored[key][()])
            change(layer)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("config.json", json.dumps(document))
        archive.writestr("metadata.json", json.dumps({"keras_version": "3.14.1"}))
        archive.writestr("model.weights.h5", weights.getvalue())
    return path


def test_an_archive_of_qkeras_is_the_same_network(tmp_path):
    path = as_archive(FILES / "mlp.h5", tmp_path / "mlp.keras")
    assert trained_bits(path) == "QKeras"
    found = import_qkeras(path)
    with np.load(FILES / "mlp.npz") as arrays:
        x = arrays["x"]
    wanted = called(import_qkeras(FILES / "mlp.h5").model, x)
    assert np.array_equal(called(found.model, x), wanted)


def test_an_archive_of_keras_2_numbers_its_layers(tmp_path):
    """Layers of a class are numbered, and have no name."""
    path = as_archive(FILES / "mlp.h5", tmp_path / "mlp.keras")
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    weights = io.BytesIO(members["model.weights.h5"])
    with h5py.File(weights, "r+") as file:
        old, counts = file["layers"], {}
        for layer in json.loads(members["config.json"])["config"]["layers"]:
            kind = {"QDense": "q_dense", "QActivation": "q_activation"}.get(layer["class_name"], layer["class_name"])
            counts[kind] = counts.get(kind, -1) + 1
            number = f"_{counts[kind]}" if counts[kind] else ""
            own = next(one for one in old.values() if one["vars"].attrs["name"] == layer["config"]["name"])
            own.copy(own["vars"], file.require_group(f"_layer_checkpoint_dependencies/{kind}{number}"), name="vars")
        del file["layers"]
    members["model.weights.h5"] = weights.getvalue()
    with zipfile.ZipFile(tmp_path / "old.keras", "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    one, other = (import_qkeras(tmp_path / name).model for name in ("old.keras", "mlp.keras"))
    assert all(np.array_equal(a, b) for a, b in zip(one.get_weights(), other.get_weights(), strict=True))
    empty = io.BytesIO()
    h5py.File(empty, "w").close()
    with zipfile.ZipFile(tmp_path / "old.keras", "w") as archive:
        for name, data in (members | {"model.weights.h5": empty.getvalue()}).items():
            archive.writestr(name, data)
    with pytest.raises(ModelImportError, match="holds no weights of its layers"):
        import_qkeras(tmp_path / "old.keras")


def test_an_archive_with_unknown_weights_is_refused(tmp_path):
    def other(layer):
        if layer["class_name"] == "QDense":
            layer |= {"class_name": "QGRU", "registered_name": "qkeras>QGRU"}

    with pytest.raises(ModelImportError, match="is a QGRU with 2 weights, which is not taken over"):
        import_qkeras(as_archive(FILES / "mlp.h5", tmp_path / "net.keras", other))


def test_a_dense_layer_takes_its_normalisation_in(tmp_path):
    """`QDenseBatchnorm` rounds gamma * kernel / deviation."""
    names = ("kernel", "bias", "gamma", "beta", "iteration", "moving_mean", "moving_variance")
    values = (W1, *RNG.uniform(0.5, 1.5, (3, 4)).astype("float32"), np.int64(7), *RNG.uniform(0.5, 2, (2, 4)))
    arrays = {name: np.asarray(one) for name, one in zip(names, values, strict=True)}
    quantiser = {"class_name": "quantized_bits", "config": {"bits": 8, "integer": 2, "alpha": 1}}
    own = {"units": 4, "activation": "linear", "use_bias": True, "epsilon": 0.01, "center": True, "scale": True}
    own |= {"kernel_quantizer": quantiser, "bias_quantizer": quantiser, "ema_freeze_delay": 9}
    path = write(tmp_path / "net.h5", [("QDenseBatchnorm", "fc", own)], {"fc": arrays})
    found = import_qkeras(path, input_type="fixed<16,6,RND,SAT>")
    factor = arrays["gamma"] / np.sqrt(arrays["moving_variance"] + 0.01)
    for layer in found.model.layers:
        if isinstance(layer, keras.layers.Dense):
            kernel, bias = layer.get_weights()
    assert np.array_equal(kernel, np.clip(np.round(factor * W1 * 32), -128, 127) / 32)
    shift = factor * (arrays["bias"] - arrays["moving_mean"]) + arrays["beta"]
    assert np.array_equal(bias, np.clip(np.round(shift * 32), -128, 127).astype("float32") / 32)
