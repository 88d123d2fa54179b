"""ONNX export of small networks: same function, same bits, every weight found again."""

import json

import keras
import numpy as np
import onnx
import pytest
from keras import layers

from fpgaprune.certify.links import certify
from fpgaprune.certify.onnx_file import LAYOUT_KEY, read_onnx_weights
from fpgaprune.errors import CertificateError
from fpgaprune.export.onnx_file import _scaled, export_onnx, run_onnx
from fpgaprune.masks import MaskSet
from fpgaprune.weights import named_weights


def randomise(model, seed=0):
    rng = np.random.default_rng(seed)
    for path, variable in named_weights(model).items():
        values = rng.normal(size=variable.shape)
        variable.assign(np.abs(values) + 0.5 if path.endswith("moving_variance") else values)
    return model


def branched():
    """BatchNorm with and without a bias before it, a residual addition, a depthwise layer."""
    image = keras.Input((8, 8, 2), name="image")
    stem = layers.Conv2D(4, 3, padding="same", activation="relu", name="stem")(image)
    path = layers.Conv2D(4, 3, padding="same", use_bias=False, name="inner")(stem)
    path = layers.BatchNormalization(name="norm")(path)
    path = layers.DepthwiseConv2D(3, padding="same", use_bias=False, name="deep")(layers.ReLU()(path))
    path = layers.BatchNormalization(name="norm2")(path)
    out = layers.Add(name="add")([stem, path])
    return keras.Model(image, layers.Dense(3, name="head")(layers.Flatten()(out)), name="branched")


def sequential():
    return keras.Sequential(
        [
            keras.Input((8, 8, 2)),
            layers.Conv2D(4, 3, name="conv"),
            layers.BatchNormalization(name="norm"),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dense(3, activation="softmax", name="head"),
        ],
        name="sequential",
    )


@pytest.mark.parametrize("build", [branched, sequential])
def test_an_export_is_the_model_with_every_kernel_named(build, tmp_path):
    model = randomise(build())
    kernel = next(path for path in named_weights(model) if path in ("inner/kernel", "conv/kernel"))
    masks = MaskSet.from_slices(model, [f"{kernel}[:, :, 1, 2]", "head/kernel[3]"])
    for path, mask in masks.items():
        variable = named_weights(model)[path]
        variable.assign(np.where(mask, variable.numpy(), np.float32(0)))
    path = export_onnx(model, tmp_path / "model.onnx", {"note": "kept"})
    x = np.random.default_rng(1).normal(size=(5, 8, 8, 2)).astype("float32")
    for count in (1, 5):
        wanted = model.predict(x[:count], verbose=0)
        assert np.abs(run_onnx(path, x[:count]) - wanted).max() <= 1e-5 * np.abs(wanted).max()
    found = read_onnx_weights(path)
    layout = json.loads({e.key: e.value for e in onnx.load(str(path)).metadata_props}[LAYOUT_KEY])
    for name, variable in named_weights(model).items():
        if len(variable.shape) > 1:
            same = found[name].tobytes() == variable.numpy().tobytes()
            assert same != layout[name]["scaled"]
    assert certify(path, masks).require().ok
    assert not {n.op_type for n in onnx.load(str(path)).graph.node} & {"Shape", "Gather", "Slice"}
    again = export_onnx(model, tmp_path / "again.onnx", {"note": "kept"})
    assert path.read_bytes() == again.read_bytes()


def test_a_scaled_kernel_is_told_from_another():
    rng = np.random.default_rng(0)
    kernel = rng.normal(size=(3, 3, 4, 5)).astype("float32")
    kernel[:, :, 1, 2] = 0
    scale = np.array([1.0, -2.0, 3.5, 1e-3, -1.0], dtype="float32")
    assert _scaled(kernel, kernel * scale)
    assert not _scaled(
        kernel, kernel * scale[:, None, None, None][:4].reshape(1, 1, 4, 1)[..., :1] * np.ones(5, "float32") + 1
    )
    changed = kernel * scale
    changed[0, 0, 0, 0] *= np.float32(1.0001)
    assert not _scaled(kernel, changed)
    freed = kernel * scale
    freed[0, 0, 1, 2] = 1e-30
    assert not _scaled(kernel, freed)
    assert not _scaled(kernel, rng.normal(size=kernel.shape).astype("float32"))


def test_a_file_of_another_exporter_is_refused(tmp_path):
    path = export_onnx(randomise(sequential()), tmp_path / "model.onnx")
    model = onnx.load(str(path))
    del model.metadata_props[:]
    onnx.save(model, str(path))
    with pytest.raises(CertificateError, match=r"no metadata 'fpgaprune\.layout'"):
        read_onnx_weights(path)
    path.write_bytes(b"not onnx")
    with pytest.raises(CertificateError, match=r"is no ONNX file|no metadata"):
        read_onnx_weights(path)
