"""QONNX: its quantisers in NumPy, as types, in ONNX's own operators and by qonnx itself; a network of few bits."""

import itertools

import numpy as np
import onnx
import pytest
from onnx import helper

import fpgaprune as fp
from fpgaprune.errors import MaskError, ModelImportError
from fpgaprune.flow import flow_from_options
from fpgaprune.flow.file import FinetuneConfig, SelectConfig
from fpgaprune.frontends import bipolar_quant, in_standard_operators, quant, trunc, type_of
from tests.unit.frontends.graphs import graph, node, numbers

MODES = ("ROUND", "HALF_EVEN", "FLOOR", "CEIL", "DOWN", "UP", "HALF_UP", "HALF_DOWN")
OF_TYPES = ("ROUND", "HALF_EVEN", "FLOOR", "DOWN", "HALF_UP", "HALF_DOWN")
# Ties, both ends of every range, and what lies between.
X = np.concatenate([np.arange(-20, 20.25, 0.25), numbers(100, scale=6)]).astype(np.float32)
SCALES = [(0.5, 0.0), (1.0, 0.0), (0.125, 0.0), (0.3, 0.0), (0.25, 1.0)]
SETTINGS = [
    ({"signed": signed, "narrow": narrow, "rounding_mode": mode}, bits)
    for signed, narrow, mode, bits in itertools.product((0, 1), (0, 1), MODES, (1, 2, 4, 8))
]


def quantised(path, settings, scale, zero_point, bits, domain="qonnx.custom_op.general"):
    constants = {"s": np.float32(scale), "z": np.float32(zero_point), "b": np.float32(bits)}
    nodes = [helper.make_node("Quant", ["x", "s", "z", "b"], ["y"], name="q", domain=domain, **settings)]
    return graph(path, nodes, constants, {"x": ("n", len(X))}, {"y": ("n", len(X))}, opset=9)


@pytest.mark.parametrize(("scale", "zero_point"), SCALES)
def test_quant_is_that_of_qonnx(scale, zero_point):
    theirs = pytest.importorskip("qonnx.custom_op.general.intquant", reason="qonnx is not installed").int_quant
    for settings, bits in SETTINGS:
        own = quant(X, np.float32(scale), np.float32(zero_point), np.float32(bits), settings)
        wanted = theirs(
            X,
            np.float32(scale),
            np.float32(zero_point),
            np.float32(bits),
            settings["signed"],
            settings["narrow"],
            settings["rounding_mode"],
        )
        assert np.array_equal(own, np.asarray(wanted, np.float32)), (settings, bits)


@pytest.mark.parametrize(("scale", "zero_point"), SCALES)
def test_onnx_own_operators_do_the_same(scale, zero_point, tmp_path):
    import onnxruntime

    for settings, bits in SETTINGS:
        model = in_standard_operators(onnx.load(quantised(tmp_path / "q.onnx", settings, scale, zero_point, bits)))
        onnx.checker.check_model(model)
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        found = onnxruntime.InferenceSession(model.SerializeToString(), options).run(None, {"x": X[None]})[0][0]
        wanted = quant(X, np.float32(scale), np.float32(zero_point), np.float32(bits), settings)
        assert np.array_equal(found, wanted), (settings, bits)


def test_a_type_rounds_as_the_quantiser_does():
    for settings, bits in SETTINGS:
        if settings["rounding_mode"] not in OF_TYPES or (settings["narrow"] and not settings["signed"]):
            continue
        if settings["signed"] and bits == 1:
            continue
        kind = type_of(np.float32(0.5), np.float32(0), np.float32(bits), settings)
        wanted = quant(X, np.float32(0.5), np.float32(0), np.float32(bits), settings)
        assert np.array_equal(kind.to_float(kind.to_raw(X)), wanted), (settings, bits)


def test_bipolar_has_no_zero():
    assert bipolar_quant(np.float32([-1, -0.0, 0, 2]), np.float32(0.5)).tolist() == [-0.5, 0.5, 0.5, 0.5]


def network(path, scale=0.25, domain="qonnx.custom_op.general", weight_scale=None):
    """Two Dense layers of 4-bit weights and data; the first weight in the file is not rounded yet."""
    of_weights = "s" if weight_scale is None else "ws"

    def q(given, output, scale, signed):
        inputs = [given, scale, "zero", "bits"]
        return helper.make_node("Quant", inputs, [output], name=output, domain=domain, signed=signed, narrow=0)

    nodes = [
        q("x", "xq", "s", 1),
        q("fc1.weight", "w", of_weights, 1),
        node("Transpose", ["w"], "wt", perm=[1, 0]),
        node("MatMul", ["xq", "wt"], "a", "/fc1/MatMul"),
        node("Relu", ["a"], "r"),
        q("r", "rq", "s", 0),
        helper.make_node("BipolarQuant", ["fc2.weight", "s"], ["v"], name="bipolar", domain=domain),
        node("Gemm", ["rq", "v"], "y", "/fc2/Gemm", transB=1),
    ]
    constants = {
        "fc1.weight": numbers(6, 5, scale=0.4),
        "fc2.weight": numbers(3, 6, seed=2),
        "s": np.float32(scale),
        "ws": np.float32(1 if weight_scale is None else weight_scale),
        "zero": np.float32(0),
        "bits": np.float32(4),
    }
    return graph(path, nodes, constants, {"x": ("n", 5)}, {"y": ("n", 3)}, opset=13)


@pytest.mark.parametrize("domain", ["", "onnx.brevitas", "finn.custom_op.general", "qonnx.custom_op.general"])
def test_a_network_of_few_bits_comes_in_with_its_bits(domain, tmp_path):
    path = network(tmp_path / "net.onnx", domain=domain)
    net = fp.load(path)
    assert net.format == "QONNX"
    assert net.difference.relative == 0
    assert {name: str(kind) for name, kind in net.types.items()} == {"fc1/kernel": "fixed<4,2,RND_CONV,SAT>"}
    kernel = fp.weight_arrays(net.model)["fc1/kernel"]
    assert np.array_equal(kernel * 4, np.round(kernel * 4))
    assert np.array_equal(net.masks["fc1/kernel"], kernel != 0)
    assert net.masks.locked_count > 3
    locked = net.locks(["fc1.weight[2, 4]"])
    assert np.argwhere(~locked["fc1/kernel"]).tolist() == [[4, 2]]


def test_a_network_of_few_bits_becomes_hardware_with_the_same_bits(tmp_path):
    net = fp.load(network(tmp_path / "net.onnx"))
    design = fp.make_design(net.model, fp.Target.of("xc7z020clg400-1", io_type="io_parallel"))
    x = np.random.default_rng(0).uniform(-4, 4, (200, 5)).astype("float32")
    assert np.array_equal(fp.emulate(design, x), np.asarray(net.model(x)))


def test_trunc_is_that_of_qonnx(tmp_path):
    """Both versions, in NumPy and in ONNX's own operators."""
    import onnxruntime

    theirs = pytest.importorskip("qonnx.custom_op.general.trunc", reason="qonnx is not installed")
    for mode, scale, zero, last in itertools.product(("FLOOR", "ROUND"), (0.5, 0.3), (0, 4), ((5,), (1.2, 3))):
        given = [np.float32(one) for one in (scale, zero, 8, *last)]
        if len(last) == 1:
            wanted = theirs.trunc_v1(X, *given, mode)
        else:
            wanted = theirs.trunc_v2(X, *given[:3], 1, 1, *given[3:], mode)
        settings = {"rounding_mode": mode, "narrow": 1, "signed": 1}
        assert np.array_equal(trunc(X, given, settings), np.asarray(wanted, np.float32))
        constants = {f"c{at}": one for at, one in enumerate(given)}
        nodes = [helper.make_node("Trunc", ["x", *constants], ["y"], domain="qonnx.custom_op.general", **settings)]
        path = graph(tmp_path / "t.onnx", nodes, constants, {"x": ("n", len(X))}, {"y": ("n", len(X))}, opset=9)
        session = onnxruntime.InferenceSession(in_standard_operators(onnx.load(path)).SerializeToString())
        assert np.allclose(session.run(None, {"x": X[None]})[0][0], wanted, rtol=1e-6)


def test_a_wrong_rounding_is_refused(tmp_path, monkeypatch):
    from dataclasses import replace

    from fpgaprune.frontends.onnx.operators import quantisers

    right = quantisers.grid_of
    changes = ({"integer": 3}, {"rounding": "TRN"}, {"overflow": "WRAP"}, {"width": 5, "integer": 3})
    for scale, changed in itertools.product((0.25, 0.3), changes):
        path = network(tmp_path / "net.onnx", scale=scale)

        def wrong(*given, changed=changed):
            grid = right(*given)
            return replace(grid, kinds=(replace(grid.kinds[0], **changed),))

        with monkeypatch.context() as patched:
            patched.setattr(quantisers, "grid_of", wrong)
            with pytest.raises(ModelImportError, match="is rounded otherwise by onnxruntime"):
                fp.load(path)


def test_a_wrong_scale_is_refused(tmp_path, monkeypatch):
    from fpgaprune.frontends import LayerPlan

    right = LayerPlan.times
    path = network(tmp_path / "net.onnx", scale=0.3)
    monkeypatch.setattr(
        LayerPlan,
        "times",
        lambda plan, name, value, factor, *rest: right(plan, name, value, factor * np.float32(1.001), *rest),
    )
    with pytest.raises(ModelImportError, match="differs from onnxruntime"):
        fp.load(path)


@pytest.mark.parametrize("scale", [0.3, np.linspace(0.2, 0.7, 6, dtype=np.float32).reshape(6, 1)])
def test_weights_with_any_scale_stay_of_few_bits(scale, tmp_path):
    """Whole numbers in the layer, and their scale behind it, of the whole tensor or of each output."""
    net = fp.load(network(tmp_path / "net.onnx", scale=0.3, weight_scale=scale))
    assert {name: str(kind) for name, kind in net.types.items()} == {
        "fc1/kernel": "fixed<4,4,RND_CONV,SAT>",
        "fc2/kernel": "fixed<2,2>",
    }
    kernel = fp.weight_arrays(net.model)["fc1/kernel"]
    assert np.array_equal(kernel, np.round(kernel))
    assert np.abs(kernel).max() <= 8
    assert net.difference.relative <= 1e-6
    with pytest.raises(MaskError, match="was joined with another layer, or scaled"):
        net.state()
    assert np.argwhere(~net.locks(["fc1.weight[2, 4]"])["fc1/kernel"]).tolist() == [[4, 2]]


def test_operators_with_their_channels_last(tmp_path):
    """Convolution, normalisation and pooling of QONNX's own, on (N, H, W, C)."""
    last = "qonnx.custom_op.channels_last"
    nodes = [
        helper.make_node(
            "Conv",
            ["x", "conv.weight", "conv.bias"],
            ["a"],
            name="conv",
            domain=last,
            pads=[1] * 4,
            kernel_shape=[3, 3],
        ),
        helper.make_node("BatchNormalization", ["a", *"gbmv"], ["n"], name="norm", domain=last),
        helper.make_node("MaxPool", ["n"], ["p"], name="pool", domain=last, kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Resize", ["p", "", "scales"], ["y"], name="up", mode="nearest"),
    ]
    constants = {
        "conv.weight": numbers(5, 3, 3, 2),
        "conv.bias": numbers(5),
        **{name: np.abs(numbers(5, seed=at)) for at, name in enumerate("gbmv")},
        "scales": np.float32([1, 2, 2, 1]),
    }
    path = graph(tmp_path / "net.onnx", nodes, constants, {"x": ("n", 8, 6, 2)}, {"y": ("n", 8, 6, 5)})
    with pytest.raises(ModelImportError, match="BatchNormalization 'norm' reads a tensor of unknown shape"):
        fp.load(path)
    model = onnx.load(path)
    model.graph.value_info.append(helper.make_tensor_value_info("a", onnx.TensorProto.FLOAT, ("n", 8, 6, 5)))
    onnx.save(model, path)
    net = fp.load(path)
    assert [type(layer).__name__ for layer in net.model.layers] == [
        *("InputLayer", "Conv2D", "BatchNormalization", "MaxPooling2D", "UpSampling2D")
    ]
    assert net.difference.relative <= 1e-6
    kernel = fp.weight_arrays(net.model)["conv/kernel"]
    assert np.array_equal(kernel, constants["conv.weight"].transpose(1, 2, 3, 0))
    with_names = net.locks(["conv.weight[4, 2, 1, 0]"])
    assert np.argwhere(~with_names["conv/kernel"]).tolist() == [[2, 1, 0, 4]]


def test_a_scale_moves_behind_a_pooling(tmp_path):
    """What a convolution multiplies are whole numbers, and its sums have one scale."""
    nodes = [
        helper.make_node("Quant", [name, scale, "z", "b"], [f"{name}q"], domain="qonnx.custom_op.general", signed=1)
        for name, scale in (("x", "s"), ("w", "ws"))
    ]
    nodes += [
        node("MaxPool", ["xq"], "p", kernel_shape=[2, 2], strides=[2, 2]),
        node("Conv", ["p", "wq"], "y", kernel_shape=[2, 2]),
    ]
    constants = {name: np.float32(one) for name, one in (("s", 0.3), ("ws", 0.17), ("b", 4), ("z", 0))}
    constants["w"] = numbers(3, 2, 2, 2)
    net = fp.load(graph(tmp_path / "net.onnx", nodes, constants, {"x": ("n", 2, 6, 6)}, {"y": ("n", 3, 2, 2)}))
    kinds = [type(layer).__name__ for layer in net.model.layers]
    assert kinds[-4:] == ["RoundedChannels", "MaxPooling2D", "Conv2D", "Rescaling"]
    assert net.difference.relative <= 1e-6
    x = np.round(np.random.default_rng(0).normal(0, 2, (50, 6, 6, 2)) * 64).astype("float32") / 64
    found = fp.emulate(fp.make_design(net.model, fp.Target.of("xc7z020clg400-1"), x), x)
    np.testing.assert_allclose(found, net.model.predict(x, verbose=0), rtol=1e-6, atol=1e-6)


def test_a_flow_of_trained_bits_does_not_train(tmp_path):
    path = network(tmp_path / "net.onnx")
    config = flow_from_options(path, data="d.npz", part="xc7z020clg400-1")
    assert config[SelectConfig].zeros
    assert config[FinetuneConfig].epochs == 0
