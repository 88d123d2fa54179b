"""A sound file of every kind that fpgaprune reads, small."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import onnx
from onnx import helper, numpy_helper

from fpgaprune.design import Design
from fpgaprune.files import hardware_path
from fpgaprune.measure import LayerCounts, LockCertificate, check_link
from fpgaprune.remove import RemovalPlan
from fpgaprune.values import MaskSet

FLOW = b"""\
name = "drilled"
seed = 3
[data]
source = "digits"
[train]
epochs = 4
batch_size = 32
learning_rate = 0.002
class_weight = {0 = 1.0, 1 = 2.0}
[select]
locks = ["conv2/kernel[:, :, 2, 13]"]
sparsity = {"conv*/kernel" = 0.6}
fixed = "fixed<8,1>"
granularity = "block(4, 4)"
criterion = "l1"
[finetune]
epochs = 2
schedule = {kind = "polynomial_decay", begin_step = 2, frequency = 10}
[hls]
backend = "Vitis"
precision = "fixed<16,6>"
backend_options = {clock_uncertainty = "10%"}
[hls.layers.conv1]
weight_bits = 6
accum = "fixed<20,8>"
[hls.layers."dense*"]
strategy = "resource"
reuse_factor = 4
[measure]
families = ["xc7"]
[verdict]
max_loss = "5 %"
[target]
part = "zcu104"
clock_ns = 4.5
io_type = "io_stream"
"""
PARTS = b"""\
family = "nine"
vendor = "AMD"
source = "somebody's table"
date = "2026-01-02"
part = [
  {name = "xc9a", aliases = ["nine-a"], lut = 1000, ff = 2000, bram18 = 10, dsp = 4},
  {name = "xc9b", lut = 4000, ff = 8000},
]
"""


def as_npz(**arrays: Any) -> bytes:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def data() -> bytes:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(12, 4)).astype(np.float32), np.arange(12) % 3
    return as_npz(x_train=x, y_train=y, x_test=x[:5], y_test=y[:5])


def masks() -> MaskSet:
    return MaskSet({"fc/kernel": np.arange(12).reshape(4, 3) % 3 > 0})


def kernel() -> Any:
    return np.where(masks()["fc/kernel"], np.linspace(-1, 1, 12).reshape(4, 3), 0.0).astype(np.float32)


def keras_model() -> bytes:
    """A `.keras` file of one Dense layer, as Keras writes it, without Keras."""
    layer = {"module": "keras.layers", "class_name": "Dense", "registered_name": None}
    entry = {"module": "keras.layers", "class_name": "InputLayer", "registered_name": None}
    config = {
        "module": "keras",
        "class_name": "Sequential",
        "config": {
            "name": "net",
            "layers": [
                {**entry, "config": {"batch_shape": [None, 4], "dtype": "float32", "name": "x"}},
                {**layer, "config": {"name": "fc", "units": 3, "activation": "linear", "use_bias": True}},
            ],
            "build_input_shape": [None, 4],
        },
    }
    weights = io.BytesIO()
    with h5py.File(weights, "w") as file:
        group = file.create_group("layers/dense/vars")
        group.attrs["name"] = "fc"
        group["0"], group["1"] = kernel(), np.zeros(3, np.float32)
        file.create_group("layers/input_layer/vars").attrs["name"] = "x"
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("config.json", json.dumps(config))
        archive.writestr("metadata.json", json.dumps({"keras_version": "3.15.0", "date_saved": "1980-01-01@00:00:00"}))
        archive.writestr("model.weights.h5", weights.getvalue())
    return buffer.getvalue()


def onnx_model() -> bytes:
    info = helper.make_tensor_value_info
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Relu", ["h"], ["y"])]
    inputs, outputs = [info("x", 1, [1, 4])], [info("y", 1, [1, 3])]
    graph = helper.make_graph(nodes, "net", inputs, outputs, [numpy_helper.from_array(kernel(), "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    layout = {"fc/kernel": {"initializer": "w", "shape": [4, 3], "permutation": [0, 1]}}
    helper.set_model_props(model, {"fpgaprune.layout": json.dumps(layout)})
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString())


def plan() -> bytes:
    whole = tuple(np.arange(size) for size in (4, 3))
    found = RemovalPlan(
        "net", "00", {"fc/kernel": (4, 3)}, {"fc/kernel": whole}, {}, {}, {}, (), {}, (), {}, (12, 12), ("fc/bias[0]",)
    )
    return json.dumps(found.to_json(), indent=1).encode()


def certificate() -> bytes:
    links = [check_link(name, {"fc/kernel": kernel()}, masks()) for name in ("finetuned.keras", "removed.keras")]
    layers = (LayerCounts("fc", "fc/kernel", 4, 3, 12, 4, 2, 5),)
    links.append(type(links[0])("hls/firmware", links[0].weights, {"fc/bias": "removed"}, layers))
    head = {"format": 1, "fpgaprune": "0.1.0", "masks": masks().digest(), "removed_masks": masks().digest()}
    return json.dumps({**head, **LockCertificate(tuple(links)).to_json()}, indent=1).encode()


def manifest() -> bytes:
    digest = "0" * 64
    stage = {"key": digest, "inputs": {}, "outputs": {"trained.keras": digest}, "results": {"metric": 0.5}}
    stages = {"train": {**stage, "seconds": 1.5}}
    return json.dumps({"format": 1, "config": {}, "seed": 0, "data": digest, "stages": stages}, indent=1).encode()


def run_folder() -> dict[str, bytes]:
    """What `verify` reads of a run before it comes to its hardware."""
    sound = {name: as_npz(**masks()) for name in ("masks.npz", "removed_masks.npz")}
    models = {name: keras_model() for name in ("finetuned.keras", "removed.keras")}
    documents = {"manifest.json": manifest(), "certificate.json": certificate(), "removal.json": plan()}
    return {**sound, **models, **documents, "model.onnx": onnx_model()}


def saved_design(folder: Path, design: Design) -> dict[str, bytes]:
    design.save(folder / "design.json")
    return {name: (folder / name).read_bytes() for name in ("design.json", "design.npz")}


def own_calibration() -> bytes:
    return hardware_path("calibration", "coefficients.toml").read_bytes()


def board() -> bytes:
    return hardware_path("boards", "ulx3s.toml").read_bytes()
