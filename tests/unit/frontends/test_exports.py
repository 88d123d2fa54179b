"""Files of the exporters themselves: both of PyTorch, tf2onnx, Keras, and our own."""

from pathlib import Path

import keras
import numpy as np
import pytest
from onnx import helper

import fpgaprune as fp
from fpgaprune.errors import ModelImportError
from fpgaprune.frontends import load_onnx
from tests.unit.frontends.graphs import graph, node, numbers

FILES = sorted((Path(__file__).parent / "pytorch").glob("*.onnx"))
L = keras.layers


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.stem)
def test_a_file_of_pytorch_comes_in(file):
    net = load_onnx(file)
    assert net.difference.relative <= 1e-5
    kinds = {type(layer).__name__ for layer in net.model.layers}
    assert "Lambda" not in kinds
    assert all(type(layer).__module__.startswith("keras.") for layer in net.model.layers)


def test_both_exporters_give_the_same_layers():
    for name in {file.stem.rpartition("_")[0] for file in FILES}:
        first, second = (load_onnx(FILES[0].with_name(f"{name}_{kind}.onnx")) for kind in ("script", "dynamo"))
        named = [[one.name for one in net.sources.values() if "features" in one.name] for net in (first, second)]
        assert named[0] == named[1]
        x = np.random.default_rng(1).normal(size=(5, *first.model.input_shape[1:])).astype("float32")
        assert np.allclose(first.model(x), second.model(x), rtol=1e-4, atol=1e-5), name


def test_weights_have_the_names_of_pytorch():
    """Also those that the exporter has transposed or joined with a BatchNorm, and so has given other names."""
    net = load_onnx(FILES[0].with_name("set_script.onnx"))
    names = {source.name: source.shape for source in net.sources.values()}
    assert names == {
        "phi.0.weight": (16, 3),
        "phi.0.bias": (16,),
        "phi.2.weight": (16, 16),
        "phi.2.bias": (16,),
        "rho.weight": (5, 16),
        "rho.bias": (5,),
    }
    masks = net.locks(["phi.0.weight[7, 2]"])
    assert np.argwhere(~masks["phi.0/kernel"]).tolist() == [[2, 7]]
    joined = load_onnx(FILES[0].with_name("residual_script.onnx"))
    assert joined.sources["stem.0/kernel"].name == "stem.0.weight"


# What the hardware does not have.
REFUSED = {"unet_script": "bilinear"}
# What hls4ml has no layer for.
VERILOG_ALONE = {"both_ways_script"}


@pytest.mark.parametrize("network", [path.stem for path in FILES if path.stem.endswith("script")])
def test_what_comes_in_becomes_hardware_or_is_refused_by_its_layer(network):
    """The networks of PyTorch whose layers the hardware has go all the way to a design and its bits."""
    net = load_onnx(FILES[0].with_name(f"{network}.onnx"))
    x = np.random.default_rng(1).normal(size=(8, *net.model.input_shape[1:])).astype("float32")
    backend = "Verilog" if network in VERILOG_ALONE else None
    target = fp.Target.of("xc7z020clg400-1", io_type="io_parallel", backend=backend)
    precision = fp.Precision(weight_bits=8, activation_bits=12)
    if network in REFUSED:
        with pytest.raises(fp.FpgaPruneError, match=REFUSED[network]):
            fp.make_design(net.model, target, x, precision)
    else:
        assert np.isfinite(fp.emulate(fp.make_design(net.model, target, x, precision), x)).all()


def test_removal_and_locks_work_on_a_network_of_pytorch():
    net = load_onnx(FILES[0].with_name("small_script.onnx"))
    masks = net.locks([f"features.4.weight[{filter_}]" for filter_ in range(6)])
    masks &= net.locks([f"features.4.bias[{filter_}]" for filter_ in range(6)])
    net.model.compile("adam", "mse")
    fp.lock(net.model, masks)
    fp.certify(net.model, masks).require()
    small = fp.apply_removal(net.model, fp.plan_removal(net.model))
    assert small.get_layer("features.4").filters == 10
    x = np.random.default_rng(1).normal(size=(20, 8, 8, 1)).astype("float32")
    fp.equivalence(net.model, small, x).require()


def functional():
    given = keras.Input((8, 8, 3))
    x = L.Conv2D(8, 3, padding="same", activation="relu")(given)
    x = L.BatchNormalization()(x)
    y = L.DepthwiseConv2D(3, padding="same")(x)
    x = L.Add()([x, L.LeakyReLU(0.1)(y)])
    x = L.MaxPooling2D(2)(x)
    x = L.Concatenate()([x, L.AveragePooling2D(3, 1, padding="same")(x)])
    x = L.Conv2D(4, 3, strides=2, padding="same", activation="sigmoid")(x)
    x = L.Flatten()(x)
    return keras.Model(given, L.Dense(5, activation="softmax")(L.Dense(8, activation="tanh")(x)))


def one_dimension():
    given = keras.Input((24, 3))
    x = L.Conv1D(8, 3, padding="same", activation="relu")(given)
    x = L.MaxPooling1D(2)(x)
    x = L.Conv1D(4, 3, strides=2, activation="elu")(x)
    return keras.Model(given, L.Dense(3)(L.GlobalAveragePooling1D()(x)))


def recurrent():
    given = keras.Input((7, 4))
    x = L.GRU(6, return_sequences=True)(given)
    x = L.GRU(5, reset_after=False, return_sequences=True)(x)
    return keras.Model(given, L.Dense(3)(L.LSTM(5)(x)))


def random_weights(model):
    rng = np.random.default_rng(0)
    for weight in model.weights:
        values = rng.normal(size=weight.shape, scale=0.4)
        weight.assign(np.abs(values) + 0.5 if "variance" in weight.path else values)
    return model


@pytest.mark.filterwarnings("ignore::FutureWarning")  # of tf2onnx under NumPy 2
@pytest.mark.parametrize("make", [functional, one_dimension])
def test_what_keras_or_we_export_comes_back(make, tmp_path):
    model = random_weights(make())
    x = np.random.default_rng(1).normal(size=(6, *model.input_shape[1:])).astype("float32")
    model(x)
    fp.export_onnx(model, tmp_path / "ours.onnx")
    fp.export_onnx(model, tmp_path / "one.onnx", batch=1)
    model.export(tmp_path / "keras.onnx", format="onnx", verbose=False)
    for name in ("ours", "one", "keras"):
        net = load_onnx(tmp_path / f"{name}.onnx")
        assert net.model.input_shape == model.input_shape, name
        assert np.allclose(net.model(x), model(x), rtol=1e-4, atol=1e-6), name
        assert not any(type(layer).__name__ == "Permute" for layer in net.model.layers), name


@pytest.mark.filterwarnings("ignore::FutureWarning")  # of tf2onnx under NumPy 2
def test_recurrent_layers_that_we_export_come_back(tmp_path):
    model = random_weights(recurrent())
    x = np.random.default_rng(1).normal(size=(6, 7, 4)).astype("float32")
    fp.export_onnx(model, tmp_path / "net.onnx")
    net = load_onnx(tmp_path / "net.onnx")
    assert [type(layer) for layer in net.model.layers] == [type(layer) for layer in model.layers]
    assert np.allclose(net.model(x), model(x), rtol=1e-4, atol=1e-6)


def test_a_log_softmax_at_the_end_is_left_out_and_said(tmp_path):
    nodes = [node("Gemm", ["x", "fc.weight"], "logits", transB=1), node("LogSoftmax", ["logits"], "y", axis=1)]
    constants, ends = {"fc.weight": numbers(3, 4)}, {"y": ("n", 3)}
    net = load_onnx(graph(tmp_path / "net.onnx", nodes, constants, {"x": ("n", 4)}, ends))
    assert [type(layer).__name__ for layer in net.model.layers[1:]] == ["Dense"]
    assert net.difference.relative <= 1e-5
    assert net.facts["notes"] == [
        "LogSoftmax '/y/LogSoftmax' at the end is left out: the largest output stays the largest"
    ]
    nodes.append(node("Relu", ["y"], "z"))
    with pytest.raises(ModelImportError, match=r"is a LogSoftmax, .* only where it gives an output of the network"):
        load_onnx(graph(tmp_path / "inner.onnx", nodes, constants, {"x": ("n", 4)}, {"z": ("n", 3)}))


SQUEEZED = [node("Squeeze", ["states", "1"], "steps"), node("Transpose", ["steps"], "samples", perm=[1, 0, 2])]
READ = {
    "a step of the samples": ([*SQUEEZED, node("Gather", ["samples", "last"], "y", axis=1)], "GRU"),
    "a step before the batch": ([*SQUEEZED[:1], node("Gather", ["steps", "last"], "y", axis=0)], "GRU"),
    "a slice": (
        [*SQUEEZED, node("Slice", ["samples", "-1", "9", "1"], "one"), node("Squeeze", ["one", "1"], "y")],
        "GRU",
    ),
    "all steps": ([*SQUEEZED, node("Flatten", ["samples"], "y")], "GRU Flatten"),
    "another step": ([*SQUEEZED, node("Gather", ["samples", "2"], "y", axis=1)], "GRU Cropping1D Flatten"),
    "two readers": (
        [
            *SQUEEZED,
            node("Gather", ["samples", "last"], "one", axis=1),
            node("ReduceMean", ["samples"], "mean", axes=[1], keepdims=0),
            node("Add", ["one", "mean"], "y"),
        ],
        "GRU Cropping1D Flatten GlobalAveragePooling1D Add",
    ),
    "the last state": ([node("Squeeze", ["state", "0"], "y")], "GRU"),
    "the last of joined states": (
        [node("Concat", ["state", "state"], "both", axis=0), node("Gather", ["both", "last"], "y", axis=0)],
        "GRU",
    ),
    "steps and state": (
        [
            *SQUEEZED,
            node("Squeeze", ["state", "0"], "one"),
            node("ReduceMean", ["samples"], "mean", axes=[1], keepdims=0),
            node("Add", ["one", "mean"], "y"),
        ],
        "GRU Cropping1D Flatten GlobalAveragePooling1D Add",
    ),
    "a reshape that keeps the batch": (
        [
            node("Transpose", ["states"], "turned", perm=[0, 2, 1, 3]),
            node("Reshape", ["turned", "0 0 -1"], "steps"),
            *SQUEEZED[1:],
            node("Gather", ["samples", "last"], "y", axis=1),
        ],
        "GRU",
    ),
}


@pytest.mark.parametrize("what", READ)
def test_what_is_read_of_a_recurrent_layer(what, tmp_path):
    """`load_onnx` itself compares with onnxruntime."""
    nodes, kinds = READ[what]
    whole = ["0", "1", "2", "-1", "9", "0 0 -1"]
    constants = {text: np.array([int(number) for number in text.split()], np.int64) for text in whole}
    constants |= {"w": numbers(1, 15, 4), "r": numbers(1, 15, 5), "last": np.array(-1), "2": np.array(2)}
    first = [
        node("Transpose", ["x"], "turned_x", perm=[1, 0, 2]),
        helper.make_node("GRU", ["turned_x", "w", "r"], ["states", "state"], name="/rnn/GRU", hidden_size=5),
    ]
    end = {"y": ("n", 35 if what == "all steps" else 5)}
    net = load_onnx(graph(tmp_path / "net.onnx", first + nodes, constants, {"x": ("n", 7, 4)}, end))
    assert [type(layer).__name__ for layer in net.model.layers[1:]] == kinds.split()
    for layer in net.model.layers:
        assert all(type(number) is int for number in getattr(layer, "cropping", ())), "make_design takes no others"
