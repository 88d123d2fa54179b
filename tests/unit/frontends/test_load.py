"""`fp.load`: one door for every format, and what a loaded network says of its file."""

import keras
import numpy as np
import pytest
from keras import layers

import fpgaprune as fp
from fpgaprune.errors import ConfigError, MaskError, ModelImportError
from tests.unit.frontends.graphs import graph, node, numbers, small_cnn


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    weight = numbers(16, 8, 3, 3, seed=7, scale=0.2)
    weight[13, 5] = 0
    return small_cnn(tmp_path_factory.mktemp("onnx") / "net.onnx", **{"features.4.weight": weight})


@pytest.fixture(scope="module")
def net(file):
    return fp.load(file)


def test_a_network_of_pytorch_becomes_layers_of_keras_with_its_names(net):
    assert [(layer.name, type(layer).__name__) for layer in net.model.layers] == [
        ("x", "InputLayer"),
        ("features.0", "Conv2D"),
        ("features.1", "BatchNormalization"),
        ("features.2", "ReLU"),
        ("features.3", "MaxPooling2D"),
        ("features.4", "Conv2D"),
        ("features.5", "ReLU"),
        ("reshape", "Flatten"),
        ("fc1", "Dense"),
        ("relu", "ReLU"),
        ("fc2", "Dense"),
    ]
    assert net.model.input_shape == (None, 8, 8, 1)
    assert net.format == "ONNX"
    assert net.types == {}


def test_the_difference_is_that_to_onnxruntime(net, file):
    assert net.difference.interpreter == "onnxruntime"
    assert net.difference.samples == 256
    assert 0 < net.difference.relative < 1e-5
    more = fp.load(file, samples=np.ones((3, 8, 8, 1), np.float32))
    assert more.difference.samples == 259
    with pytest.raises(ModelImportError, match=r"takes samples of shape \(8, 8, 1\) in Keras; got \(1, 8, 8\)"):
        fp.load(file, samples=np.ones((3, 1, 8, 8), np.float32))


def test_zeros_of_the_file_are_its_masks(net):
    assert list(net.masks) == ["features.4/kernel"]
    assert np.argwhere(~net.masks["features.4/kernel"][0, 0]).tolist() == [[5, 13]]


def test_a_slice_is_named_as_in_pytorch(net):
    masks = net.locks(["features.4.weight[13, 2]", "features.0/kernel[:, :, 0, 3]"])
    assert np.argwhere(~masks["features.4/kernel"]).tolist() == [[r, c, 2, 13] for r in range(3) for c in range(3)]
    assert np.argwhere(~masks["features.0/kernel"]).tolist() == [[r, c, 0, 3] for r in range(3) for c in range(3)]
    with pytest.raises(MaskError, match="index 16 on axis 0, which has 16 entries"):
        net.locks(["features.4.weight[16, 2]"])
    with pytest.raises(MaskError, match=r"matches no weight of the file; did you mean features\.\d\.weight"):
        net.locks(["features.9.weight[1, 2]"])


def test_columns_behind_a_flatten_follow_their_pixels(net):
    """PyTorch flattens channels first: column 17 is channel 4, row 0, column 1, so row 20 of Keras's kernel."""
    masks = net.locks(["fc1.weight[3, 17]"])
    assert np.argwhere(~masks["fc1/kernel"]).tolist() == [[(0 * 2 + 1) * 16 + 4, 3]]
    assert net.sources["fc1/kernel"].name == "fc1.weight"
    assert net.weight_path("fc1.weight") == "fc1/kernel"


def test_every_weight_is_found_at_its_place_in_the_file(net, file):
    import onnx

    stored = {t.name: onnx.numpy_helper.to_array(t) for t in onnx.load(file).graph.initializer}
    arrays = fp.weight_arrays(net.model)
    assert net.sources.keys() == arrays.keys()
    for path, source in net.sources.items():
        assert np.array_equal(arrays[path], stored[source.name].ravel()[source.origin]), path


def test_a_file_of_keras_comes_in_by_the_same_door(tmp_path):
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, name="d")])
    kernel = np.ones((4, 3))
    kernel[1, 2] = 0
    model.layers[0].set_weights([kernel, np.zeros(3)])
    model.save(tmp_path / "net.keras")
    found = fp.load(tmp_path / "net.keras")
    assert np.argwhere(~found.masks["d/kernel"]).tolist() == [[1, 2]]
    assert found.difference is None


@pytest.mark.parametrize(
    ("shape", "stack", "kinds"),
    [
        ((4, 4, 2), [layers.Conv2D(3, 3), layers.UpSampling2D((2, 3))], "UpSampling2D Reshape UpSampling1D Reshape"),
        ((6, 2), [layers.Conv1D(3, 3), layers.UpSampling1D(2), layers.Conv1D(2, 3)], "UpSampling1D Conv1D"),
        ((6,), [layers.Dense(4), layers.RepeatVector(3), layers.Conv1D(2, 2)], "Reshape UpSampling1D Conv1D"),
        ((6,), [layers.Dense(3), layers.Activation("gelu")], "Activation"),
        ((6,), [layers.Dense(3), layers.Activation("hard_tanh")], "Activation"),
        ((6,), [layers.Dense(3), layers.ReLU(4.0)], "ReLU ReLU"),
        ((4, 4, 2), [layers.Conv2D(3, 3), layers.Conv2DTranspose(2, 3, strides=2)], "Conv2DTranspose"),
    ],
)
def test_what_tf2onnx_spells_out_comes_back(shape, stack, kinds, tmp_path):
    """An upsampling is a `Tile` between two reshapings there, a GELU six nodes, and a bound two."""
    model = keras.Sequential([keras.Input(shape), *stack])
    for variable in model.weights:
        variable.assign(numbers(*variable.shape, seed=len(variable.shape)))
    fp.export_onnx(model, tmp_path / "net.onnx")
    found = fp.load(tmp_path / "net.onnx").model
    assert " ".join(type(layer).__name__ for layer in found.layers[2:]) == kinds
    x = numbers(5, *shape)
    np.testing.assert_allclose(found(x), model(x), atol=1e-6)


@pytest.mark.parametrize(
    ("bounds", "kinds"),
    [
        ([("Min", 2.0), ("Max", -1.0)], ["Rescaling", "ReLU", "Rescaling"]),
        ([("Max", 0.0), ("Min", 6.0)], ["ReLU"]),
        # The larger bound first is no `Clip`.
        ([("Max", 2.0), ("Min", 1.0)], ["Rescaling", "ReLU", "Rescaling"] * 2),
    ],
)
def test_two_bounds_are_one_layer(bounds, kinds, tmp_path):
    (one, low), (other, high) = bounds
    constants = {"one": np.array(low, np.float32), "other": np.array(high, np.float32)}
    nodes = [node(one, ["x", "one"], "a"), node(other, ["other", "a"], "y")]
    path = graph(tmp_path / "net.onnx", nodes, constants, {"x": ("n", 4)}, {"y": ("n", 4)})
    found = fp.load(path).model
    assert [type(layer).__name__ for layer in found.layers[1:]] == kinds


@pytest.mark.parametrize(
    ("nodes", "says"),
    [
        ([node("Odd\nname", ["x"], "y", "odd")], r"node 'odd' is a 'Odd\\nname', which fpgaprune does not take"),
        (
            [node("Expand", ["one", "shape"], "e"), node("Add", ["x", "e"], "y")],
            r"node '/e/Expand' \(Expand\) makes a tensor whose shape is complex64; wanted whole numbers",
        ),
    ],
)
def test_an_operator_of_two_lines_and_a_shape_of_complex_numbers_are_one_line(nodes, says, tmp_path):
    constants = {"one": numbers(1), "shape": np.array([1 + 2j], np.complex64)}
    path = graph(tmp_path / "net.onnx", nodes, constants, {"x": ("n", 4)}, {"y": ("n", 4)})
    with pytest.raises(ModelImportError, match=says) as caught:
        fp.load(path)
    assert "\n" not in str(caught.value)


def test_what_is_no_network_is_one_line(tmp_path):
    (tmp_path / "net.pt").write_bytes(b"PK")
    with pytest.raises(ModelImportError, match=r"is a program of PyTorch.*torch\.onnx\.export\(module, .*'net\.onnx'"):
        fp.load(tmp_path / "net.pt")
    with pytest.raises(ConfigError, match="does not exist"):
        fp.load(tmp_path / "gone.onnx")
    with pytest.raises(ConfigError, match="holds its weights itself"):
        fp.load(small_cnn(tmp_path / "net.onnx"), weights=tmp_path / "w.h5")


@pytest.mark.parametrize("between", [[], [("Identity", "i")], [("Squeeze", "i")]])
def test_a_constant_is_no_bias_of_a_layer_that_others_read(between, tmp_path):
    """x @ w is read twice: the sum with a constant may not change what the other node reads."""
    from tests.unit.frontends.graphs import graph, node

    middle = [
        node("Squeeze", ["a", "axis"], "i") if kind == "Squeeze" else node(kind, ["a"], "i") for kind, _ in between
    ]
    nodes = [
        node("MatMul", ["x", "w"], "a"),
        *middle,
        node("Add", ["i" if between else "a", "b"], "s"),
        node("Relu", ["a"], "r"),
        node("Flatten", ["r"], "f"),
        node("Flatten", ["s"], "g"),
        node("Concat", ["f", "g"], "y", axis=1),
    ]
    constants = {"w": numbers(4, 3), "b": numbers(3), "axis": np.int64([1])}
    path = graph(tmp_path / "net.onnx", nodes, constants, {"x": ("n", 1, 4)}, {"y": ("n", 6)})
    assert fp.load(path).difference.relative < 1e-5
