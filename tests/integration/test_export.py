"""ONNX export of small networks: same function, same bits, every weight found again."""

import json
from functools import partial

import keras
import numpy as np
import onnx
import pytest
from keras import layers

from fpgaprune.certify import certify, read_onnx_weights
from fpgaprune.errors import CertificateError, ExportError
from fpgaprune.export import export_onnx, is_scaled, run_onnx
from fpgaprune.files import IR_VERSION, LAYOUT_KEY
from fpgaprune.lowering import fold
from fpgaprune.remove import rebuild
from fpgaprune.values import MaskSet, named_weights
from tests.called import called
from tests.unit.select.networks import filled


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


def nested():
    """A model in a model; its BatchNorm cannot be taken in by the layer before it, which ends in an activation."""
    inner = keras.Sequential(
        [
            keras.Input((8, 8, 4)),
            layers.Conv2D(4, 3, padding="same", activation="relu", name="conv"),
            layers.BatchNormalization(name="norm"),
        ],
        name="inner",
    )
    image = keras.Input((8, 8, 2), name="image")
    out = inner(layers.Conv2D(4, 3, padding="same", name="stem")(image))
    return keras.Model(image, layers.Dense(3, name="head")(layers.GlobalAveragePooling2D()(out)), name="nested")


def series():
    """Every kind of one-dimensional window, and a Dense layer on two axes."""
    return keras.Sequential(
        [
            keras.Input((16, 2)),
            layers.Conv1D(4, 3, padding="causal", activation="relu", name="first"),
            layers.MaxPooling1D(),
            layers.Conv1D(6, 3, padding="same", strides=2, use_bias=False, name="second"),
            layers.BatchNormalization(name="norm"),
            layers.DepthwiseConv1D(2, name="third"),
            layers.AveragePooling1D(1, padding="same"),
            layers.Dense(4, activation="relu", name="mixed"),
            layers.GlobalMaxPooling1D(),
            layers.Dense(3, name="head"),
        ],
        name="series",
    )


def single():
    """Layers of one channel, whose weights have the same numbers in several orders of axes."""
    return keras.Sequential(
        [
            keras.Input((8, 8, 1)),
            layers.Conv2D(1, 3, padding="same", name="conv"),
            layers.BatchNormalization(name="norm"),
            layers.ReLU(),
            layers.DepthwiseConv2D(3, name="deep"),
            layers.Conv2D(1, 1, name="point"),
            layers.Flatten(),
            layers.Dense(1, name="head"),
            layers.Dense(1, name="last"),
        ],
        name="single",
    )


def line():
    return keras.Sequential([keras.Input((16, 1)), layers.Conv1D(1, 5, name="conv")], name="line")


def alike():
    """Pairs of layers of the same shapes."""
    return keras.Sequential(
        [
            keras.Input((6, 6, 4)),
            layers.DepthwiseConv2D(3, padding="same", use_bias=False, name="deep"),
            layers.BatchNormalization(name="norm"),
            layers.ReLU(),
            layers.DepthwiseConv2D(3, padding="same", use_bias=False, name="deep2"),
            layers.BatchNormalization(name="norm2"),
            layers.Conv2D(4, 1, name="conv"),
            layers.Conv2D(4, 1, name="conv2"),
            layers.PReLU(name="slope"),
            layers.Flatten(),
            layers.Dense(4, name="dense"),
            layers.Dense(4, name="dense2"),
        ],
        name="alike",
    )


def grouped(rank):
    """Convolutions in groups over `rank` axes, one before a BatchNorm and one behind it."""
    convolution = {1: layers.Conv1D, 2: layers.Conv2D, 3: layers.Conv3D}[rank]
    return keras.Sequential(
        [
            keras.Input((6,) * rank + (8,)),
            convolution(6, 3, groups=2, padding="same", use_bias=False, name="conv"),
            layers.BatchNormalization(name="norm"),
            convolution(6, 2, groups=3, activation="relu", name="second"),
            layers.Flatten(),
            layers.Dense(3, name="head"),
        ],
        name=f"grouped_{rank}",
    )


def shared():
    """One layer that is used twice, and a depthwise layer of two outputs a channel."""
    image = keras.Input((6, 6, 2), name="image")
    conv = layers.Conv2D(2, 3, padding="same", name="conv")
    out = layers.DepthwiseConv2D(3, depth_multiplier=2, name="deep")(layers.Add()([conv(image), conv(conv(image))]))
    return keras.Model(image, out, name="shared")


def recurrent():
    image = keras.Input((5, 4), name="image")
    out = layers.MultiHeadAttention(2, 2, name="look")(image, image)
    return keras.Model(image, layers.GRU(3, name="gru")(layers.LSTM(3, return_sequences=True)(out)), name="recurrent")


def shapes_of(graph):
    """Sizes by tensor name, a name where a size is not known."""
    values = (*graph.input, *graph.output, *graph.value_info)
    return {v.name: [d.dim_value or d.dim_param for d in v.type.tensor_type.shape.dim] for v in values}


@pytest.mark.parametrize(
    ("build", "batch"),
    [
        *(
            (branched, None),
            (sequential, None),
            (nested, None),
            (series, None),
            pytest.param(series, 1, marks=pytest.mark.slow),
            (nested, 1),
            (branched, 3),
        ),
        *(
            (partial(grouped, 1), None),
            (partial(grouped, 2), None),
            (partial(grouped, 3), None),
            (partial(grouped, 2), 3),
        ),
    ],
)
def test_an_export_is_the_model_with_every_kernel_named(build, batch, tmp_path):
    model = filled(build(), 0)
    kernel = next(
        path for path in named_weights(model) if path.endswith(("inner/kernel", "conv/kernel", "third/kernel"))
    )
    masks = MaskSet(
        {
            kernel: np.arange(named_weights(model)[kernel].numpy().size).reshape(named_weights(model)[kernel].shape) % 3
            > 0
        }
    )
    masks = masks & MaskSet.from_slices(model, ["head/kernel[2]"])
    for path, mask in masks.items():
        variable = named_weights(model)[path]
        variable.assign(np.where(mask, variable.numpy(), np.float32(0)))
    path = export_onnx(model, tmp_path / "model.onnx", {"note": "kept"}, batch=batch)
    x = np.random.default_rng(1).normal(size=(5, *model.input_shape[1:])).astype("float32")
    for count in (1, 5):
        wanted = called(model, x[:count])
        assert np.abs(run_onnx(path, x[:count]) - wanted).max() <= 1e-5 * np.abs(wanted).max()
    found = read_onnx_weights(path)
    exported = onnx.load(str(path))
    metadata = {e.key: e.value for e in exported.metadata_props}
    assert metadata["note"] == "kept"
    layout = json.loads(metadata[LAYOUT_KEY])
    for name, variable in named_weights(model).items():
        if len(variable.shape) > 1:
            same = found[name].tobytes() == variable.numpy().tobytes()
            assert same != layout[name]["scaled"]
    assert certify(path, masks).require().ok
    assert exported.ir_version == IR_VERSION
    assert not {n.op_type for n in exported.graph.node} & {"Shape", "Gather", "Slice", "Unsqueeze"}
    shapes = shapes_of(exported.graph)
    free = {"batch"} if batch is None else set()
    for node in exported.graph.node:
        for tensor in node.output:
            assert shapes[tensor][0] == (batch or "batch")
            assert {size for size in shapes[tensor] if not isinstance(size, int)} == free
    again = export_onnx(model, tmp_path / "again.onnx", {"note": "kept"}, batch=batch)
    assert path.read_bytes() == again.read_bytes()


@pytest.mark.parametrize(
    ("build", "values"),
    [
        *((single, "random"), (single, "zero"), (line, "random"), (line, "equal"), (alike, "zero"), (alike, "equal")),
        *((shared, "zero"), (recurrent, "zero"), (partial(grouped, 2), "equal")),
    ],
)
def test_which_initialiser_is_which_weight_does_not_hang_on_values(build, values, tmp_path):
    model = filled(build(), 0)
    weights = named_weights(model)
    for variable in weights.values():
        if values != "random" and len(variable.shape) > 1:
            variable.assign(np.full(variable.shape, 0.0 if values == "zero" else 0.25))
    path = export_onnx(model, tmp_path / "model.onnx")
    x = np.random.default_rng(1).normal(size=(2, *model.input_shape[1:])).astype("float32")
    wanted = called(model, x)
    assert np.abs(run_onnx(path, x) - wanted).max() <= 1e-5 * max(np.abs(wanted).max(), 1)
    found, exported = read_onnx_weights(path), onnx.load(str(path))
    layout = json.loads({e.key: e.value for e in exported.metadata_props}[LAYOUT_KEY])
    names = [tensor.name for tensor in exported.graph.initializer]
    for name, variable in weights.items():
        if len(variable.shape) > 1:
            assert found[name].shape == tuple(variable.shape)
            assert names.count(name) == 1
            if not layout[name]["scaled"]:
                assert found[name].tobytes() == variable.numpy().tobytes()
    masks = MaskSet({name: np.asarray(v) != 0 for name, v in weights.items() if len(v.shape) > 1})
    assert certify(path, masks).require().ok
    # One element more that is not zero is found in its own weight, and in no other.
    changed = next(name for name, v in weights.items() if name.endswith("kernel") and len(v.shape) > 1)
    kernel = weights[changed].numpy()
    kernel.flat[-1] = 3
    weights[changed].assign(kernel)
    again = read_onnx_weights(export_onnx(model, tmp_path / "again.onnx"))
    assert [n for n in found if found[n].tobytes() != again[n].tobytes() and len(weights[n].shape) > 1] == [changed]


@pytest.mark.parametrize("build", [branched, series])
def test_what_is_folded_has_the_bits_that_the_hardware_is_made_of(build, tmp_path):
    model = filled(build(), 0)
    graph = onnx.load(str(export_onnx(model, tmp_path / "model.onnx"))).graph
    stored = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in graph.initializer}
    folded = fold(model)
    for path, variable in named_weights(folded).items():
        kernel, found = variable.numpy(), stored[path]
        orders = (
            [kernel]
            if kernel.ndim < 2
            else [np.moveaxis(kernel, (-1, -2), (0, 1)), np.moveaxis(kernel, (-2, -1), (0, 1)), kernel]
        )
        assert any(order.shape == found.shape and order.tobytes() == found.tobytes() for order in orders), path


def test_one_dimensional_layers_are_written_as_such(tmp_path):
    graph = onnx.load(str(export_onnx(filled(series(), 0), tmp_path / "model.onnx"))).graph
    kinds = [node.op_type for node in graph.node if node.op_type != "Transpose"]
    assert kinds == [
        *("Pad", "Conv", "Relu", "MaxPool", "Conv", "Conv", "AveragePool"),
        *("MatMul", "Add", "Relu", "ReduceMax", "Gemm"),
    ]
    kernels = {tensor.name: list(tensor.dims) for tensor in graph.initializer if tensor.name.endswith("kernel")}
    convolutions = {"first/kernel": [4, 2, 3], "second/kernel": [6, 4, 3], "third/kernel": [6, 1, 2]}
    assert kernels == convolutions | {"mixed/kernel": [6, 4], "head/kernel": [4, 3]}


def test_a_model_of_two_inputs_keeps_their_order(tmp_path):
    left, right = keras.Input((4,), name="left"), keras.Input((4,), name="right")
    out = layers.Subtract()([layers.Dense(3, name="a")(left), layers.Dense(3, name="b")(right)])
    model = filled(keras.Model([left, right], out), 0)
    x = [np.random.default_rng(i).normal(size=(5, 4)).astype("float32") for i in range(2)]
    path = export_onnx(model, tmp_path / "model.onnx")
    assert np.abs(run_onnx(path, x) - called(model, x)).max() <= 1e-5
    assert np.abs(run_onnx(path, x[::-1]) - called(model, x)).max() > 1e-2


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_a_model_of_mixed_precision_keeps_the_bits_of_its_weights(policy, tmp_path):
    stack = [layers.Conv2D(3, 3, activation="relu", dtype=policy, name="conv"), layers.BatchNormalization(dtype=policy)]
    stack += [layers.Conv2D(2, 3, use_bias=False, dtype=policy, name="last"), layers.BatchNormalization(dtype=policy)]
    model = filled(keras.Sequential([keras.Input((8, 8, 2)), *stack, layers.Flatten(), layers.Dense(2, name="fc")]), 0)
    path = export_onnx(model, tmp_path / "model.onnx")
    kept = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in onnx.load(str(path)).graph.initializer}
    assert np.array_equal(kept["conv/kernel"].transpose(2, 3, 1, 0), model.get_layer("conv").kernel.numpy())
    x = np.random.default_rng(1).normal(size=(5, 8, 8, 2)).astype("float32")
    exact = called(rebuild(model, dtype="float64"), x)
    assert np.abs(run_onnx(path, x) - exact).max() <= 1e-5 * np.abs(exact).max()


@pytest.mark.parametrize("opset", [13, 18])
def test_other_opsets_compute_the_same(opset, tmp_path):
    model = filled(branched(), 0)
    path = export_onnx(model, tmp_path / "model.onnx", opset=opset)
    assert [entry.version for entry in onnx.load(str(path)).opset_import if entry.domain == ""] == [opset]
    x = np.random.default_rng(1).normal(size=(5, 8, 8, 2)).astype("float32")
    wanted = called(model, x)
    assert np.abs(run_onnx(path, x) - wanted).max() <= 1e-5 * np.abs(wanted).max()


def test_the_export_leaves_the_model_as_it_was(tmp_path):
    model = filled(branched(), 0)
    before = {path: variable.numpy().copy() for path, variable in named_weights(model).items()}
    nodes = {layer.name: len(layer._inbound_nodes) for layer in model.layers}
    export_onnx(model, tmp_path / "model.onnx")
    assert {layer.name: len(layer._inbound_nodes) for layer in model.layers} == nodes
    for path, variable in named_weights(model).items():
        assert variable.numpy().tobytes() == before[path].tobytes()


def of(layer):
    image = keras.Input((6, 6, 4), name="image")
    return filled(keras.Model(image, layer(layers.Conv2D(4, 1, name="front")(image)), name="model"), 0)


@pytest.mark.parametrize(
    ("build", "settings", "message"),
    [
        (sequential, {"opset": 12}, "opset is 12; tf2onnx writes 13 to 18 here: take the default 17"),
        (sequential, {"opset": 19}, "opset is 19; tf2onnx writes 13 to 18 here: take the default 17"),
        (sequential, {"batch": 0}, "batch is 0; wanted a whole number of samples, or None for any"),
        (sequential, {"batch": True}, "batch is True; wanted a whole number of samples, or None for any"),
        (sequential, {"batch": 2.0}, "batch is 2.0; wanted a whole number of samples, or None for any"),
        (
            lambda: of(layers.Activation(keras.ops.erfinv, name="smooth")),
            {},
            "layer 'smooth' (Activation) of model 'model' needs an operation 'Erfinv', which ONNX does not have in "
            "opset 17: use another layer or activation",
        ),
        (
            lambda: keras.Sequential([layers.Dense(3)], name="unbuilt"),
            {},
            "Sequential model 'unbuilt' has no input shape yet; give it a keras.Input or build it",
        ),
    ],
)
def test_what_cannot_be_written_is_refused_and_nothing_is(build, settings, message, tmp_path):
    with pytest.raises(ExportError) as error:
        export_onnx(build(), tmp_path / "model.onnx", **settings)
    assert str(error.value) == message
    assert list(tmp_path.iterdir()) == []


def test_a_fixed_batch_needs_every_axis(tmp_path):
    image = keras.Input((None, None, 2), name="image")
    model = filled(keras.Model(image, layers.Conv2D(3, 3, name="conv")(image), name="open"), 0)
    x = np.random.default_rng(1).normal(size=(2, 7, 5, 2)).astype("float32")
    path = export_onnx(model, tmp_path / "model.onnx")
    assert np.abs(run_onnx(path, x) - called(model, x)).max() <= 1e-5
    with pytest.raises(ExportError, match="is not known although the batch is fixed: give every axis"):
        export_onnx(model, tmp_path / "fixed.onnx", batch=1)


def test_a_scaled_kernel_is_told_from_another():
    rng = np.random.default_rng(0)
    kernel = rng.normal(size=(3, 3, 4, 5)).astype("float32")
    kernel[:, :, 1, 2] = 0
    scale = np.array([1.0, -2.0, 3.5, 1e-3, -1.0], dtype="float32")
    assert is_scaled(kernel, kernel * scale)
    assert not is_scaled(
        kernel, kernel * scale[:, None, None, None][:4].reshape(1, 1, 4, 1)[..., :1] * np.ones(5, "float32") + 1
    )
    changed = kernel * scale
    changed[0, 0, 0, 0] *= np.float32(1.0001)
    assert not is_scaled(kernel, changed)
    assert is_scaled(0 * kernel, 0 * kernel)
    freed = kernel * scale
    freed[0, 0, 1, 2] = 1e-30
    assert not is_scaled(kernel, freed)
    assert not is_scaled(kernel, rng.normal(size=kernel.shape).astype("float32"))


def test_a_file_of_another_exporter_is_refused(tmp_path):
    path = export_onnx(filled(sequential(), 0), tmp_path / "model.onnx")
    model = onnx.load(str(path))
    del model.metadata_props[:]
    onnx.save(model, str(path))
    with pytest.raises(CertificateError, match=r"no metadata 'fpgaprune\.layout'"):
        read_onnx_weights(path)
    path.write_bytes(b"not onnx")
    with pytest.raises(CertificateError, match=r"is not an ONNX file|no metadata"):
        read_onnx_weights(path)
