"""Locks of a GRU's and an LSTM's weights: selected by path, held, and certified from Keras to ONNX and firmware."""

from __future__ import annotations

import re

import keras
import numpy as np
import onnx
import pytest
from keras import layers as kl

import fpgaprune as fp
from fpgaprune.certify import count_firmware
from fpgaprune.errors import CertificateError
from fpgaprune.export import run_onnx
from fpgaprune.network import save_keras
from tests.called import called

pytest.importorskip("hls4ml")

STEPS, FEATURES, UNITS = 5, 4, 3
CELLS = {"gru": kl.GRU, "lstm": kl.LSTM}
X = np.random.default_rng(2).normal(size=(60, STEPS, FEATURES)).astype("float32")
Y = (X[:, :, 0].sum(axis=1) > 0).astype(int)


def network(kind, **options):
    """One recurrent layer `r` and a Dense layer that chooses between two classes."""
    layers = [CELLS[kind](UNITS, name="r", **options), kl.Dense(2, activation="softmax", name="fc")]
    model = keras.Sequential([keras.Input((STEPS, FEATURES)), *layers], name=kind)
    rng = np.random.default_rng(8)
    model.set_weights([rng.normal(scale=0.7, size=w.shape) for w in model.get_weights()])
    model.compile("adam", "sparse_categorical_crossentropy")
    return model


def slices(kind):
    """A locked element of each weight of the recurrent layer."""
    bias = "bias[1, 4]" if kind == "gru" else "bias[4]"
    return [f"r/{kind}_cell/{place}" for place in ("kernel[2, 5]", "recurrent_kernel[1, 7]", bias)]


@pytest.fixture(scope="module", params=["gru", "lstm"])
def made(request, tmp_path_factory):
    """A network fine-tuned with locks, its masks, and the folder of its project, which no test may change."""
    model = network(request.param)
    masks = fp.MaskSet.from_slices(model, slices(request.param))
    fp.finetune(model, masks, X, Y, epochs=2, batch_size=20, seed=1, verbose=0)
    folder = tmp_path_factory.mktemp(request.param)
    project = fp.to_hls(model, fp.Target.of("xc7z020", clock_ns=10.0), X, output_dir=folder / "hls")
    return request.param, model, masks, project


def test_locked_elements_are_zero_at_every_link(made, tmp_path):
    kind, model, masks, project = made
    free = fp.MaskSet.from_slices(model, [f"r/{kind}_cell/recurrent_kernel[0, 0]"])
    files = save_keras(model, tmp_path / "m.keras"), fp.export_onnx(model, tmp_path / "m.onnx")
    for subject in (model, *files, project):
        (link,) = fp.certify(subject, masks).require().links
        assert {check.path: check.locked for check in link.weights} == dict.fromkeys(masks, 1)
        assert not fp.certify(subject, free).ok


def test_both_matrices_are_counted(made):
    kind, _, _, project = made
    gates = 3 if kind == "gru" else 4
    counts = {layer.path: layer for layer in count_firmware(project.path, project.design)}
    kernel, recurrent = (counts[f"r/{kind}_cell/{name}"] for name in ("kernel", "recurrent_kernel"))
    assert (kernel.inputs, recurrent.inputs) == (FEATURES, UNITS)
    assert kernel.outputs == recurrent.outputs == gates * UNITS
    assert min(kernel.zero, recurrent.zero) >= 1


@pytest.mark.parametrize("name", ["w2", "wr2", "b2"])
def test_a_changed_weight_in_the_firmware_is_found(made, tmp_path, name):
    kind, _, masks, project = made
    name = "br2" if (kind, name) == ("gru", "b2") else name
    weights = project.path / "firmware" / "weights"
    kept = {path: path.read_text() for path in (weights / f"{name}.h", weights / f"{name}.txt")}
    try:
        for path, text in kept.items():
            path.write_text(re.sub(r"(?<![\d.-])0\.0+(?=[,}\s]|$)", "0.5", text, count=1))
            assert path.read_text() != text
        with pytest.raises(CertificateError, match=f"{name}.h and the design have different integers for"):
            fp.certify(project, masks)
    finally:
        for path, text in kept.items():
            path.write_text(text)
    fp.certify(project, masks).require()


@pytest.mark.parametrize(("size", "wrong"), [("n_state", UNITS + 1), ("n_in", FEATURES + 1)])
def test_a_changed_size_in_the_firmware_is_found(made, size, wrong):
    _, _, masks, project = made
    header = project.path / "firmware" / "parameters.h"
    text = header.read_text()
    head, config = text.split("struct config2 :", 1)
    try:
        header.write_text(head + "struct config2 :" + re.sub(rf"({size}\s*=) \d+", rf"\1 {wrong}", config, count=1))
        with pytest.raises(CertificateError, match=rf"layer 'r' has {size} = {wrong}; its weights have"):
            fp.certify(project, masks)
    finally:
        header.write_text(text)


@pytest.mark.parametrize(
    ("kind", "options", "node"),
    [
        ("gru", {}, "GRU"),
        ("gru", {"return_sequences": True, "use_bias": False, "activation": "relu"}, "GRU"),
        ("gru", {"reset_after": False}, "GRU"),
        ("lstm", {}, "LSTM"),
        ("lstm", {"return_sequences": True, "use_bias": False}, "LSTM"),
    ],
)
@pytest.mark.parametrize("batch", [None, 1])
def test_onnx_computes_what_keras_does(kind, options, node, batch, tmp_path):
    model = network(kind, **options)
    path = fp.export_onnx(model, tmp_path / "m.onnx", batch=batch)
    found = run_onnx(path, X[:7])
    np.testing.assert_allclose(found, called(model, X[:7]), atol=2e-6)
    graph = onnx.load(path).graph
    assert [n.op_type for n in graph.node].count(node) == 1
    named = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in graph.initializer}
    for name in ("kernel", "recurrent_kernel"):
        wanted = next(v for v in model.layers[0].weights if v.path.endswith(f"/{name}")).numpy()
        assert named[f"r/{kind}_cell/{name}"].tobytes() == wanted.tobytes()
    # No trace of what stood in their place while tf2onnx worked.
    read = {name for n in graph.node for name in n.input}
    assert set(named) <= read
    again = fp.export_onnx(model, tmp_path / "again.onnx", batch=batch)
    assert again.read_bytes() == path.read_bytes()


def test_a_layer_that_is_used_twice_is_two_nodes(tmp_path):
    x, y = keras.Input((STEPS, FEATURES)), keras.Input((STEPS, FEATURES))
    shared = kl.LSTM(UNITS, name="r")
    model = keras.Model([x, y], kl.Concatenate()([shared(x), shared(y)]))
    path = fp.export_onnx(model, tmp_path / "m.onnx")
    assert [n.op_type for n in onnx.load(path).graph.node].count("LSTM") == 2
    inputs = [X[:7], X[7:14]]
    np.testing.assert_allclose(run_onnx(path, inputs), called(model, inputs), atol=2e-6)


@pytest.mark.parametrize("layers", [(kl.Masking(0.0), kl.GRU(3, name="r")), (kl.GRU(3, go_backwards=True, name="r"),)])
def test_what_a_node_does_not_know_is_left_to_a_loop(layers, tmp_path):
    """A node of ONNX has no mask, and none that reads backwards was asked for: tf2onnx writes the steps out."""
    model = keras.Sequential([keras.Input((STEPS, FEATURES)), *layers], name="m")
    x = X[:6].copy()
    x[:, 3:] = 0
    path = fp.export_onnx(model, tmp_path / "m.onnx")
    assert "GRU" not in {node.op_type for node in onnx.load(path).graph.node}
    np.testing.assert_allclose(run_onnx(path, x), called(model, x), atol=2e-6)
