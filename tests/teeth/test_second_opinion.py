"""What a second opinion must find: each change of the ONNX file, and each of the design, is named by layer and kind."""

from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import onnx
import pytest

import fpgaprune as fp
from fpgaprune.errors import HlsError
from fpgaprune.onnx_graph import set_attribute

from ..contract.hls_contract import Case, build

pytestmark = pytest.mark.skipif(
    find_spec("qonnx") is None, reason="qonnx, which cleans ONNX files for hls4ml, is not installed"
)


@pytest.fixture(scope="module", params=["io_parallel", pytest.param("io_stream", marks=pytest.mark.slow)])
def residual(request, tmp_path_factory):
    """The design of the residual network, and its ONNX file."""
    model, _, target, x = build(Case("Vitis", request.param, "latency", "residual"))
    path = fp.export_onnx(model, tmp_path_factory.mktemp("onnx") / "residual.onnx", batch=1)
    return fp.make_design(model, target, x), path


def node(graph, kind, number=0):
    return [found for found in graph.node if found.op_type == kind][number]


def change_weight(graph, name="second/kernel", place=(1, 2, 0, 1), by=0.05):
    tensor = next(tensor for tensor in graph.initializer if tensor.name == name)
    array = onnx.numpy_helper.to_array(tensor).copy()
    array[place] += by
    tensor.CopyFrom(onnx.numpy_helper.from_array(array, name))


def shift_padding(graph):
    set_attribute(node(graph, "Conv", 1), "pads", [2, 1, 0, 1])


def swap_kernels(graph):
    convolutions = [node(graph, "Conv", number) for number in (1, 2)]
    names = [list(found.input)[1:] for found in convolutions]
    for found, (kernel, bias) in zip(convolutions, names[::-1], strict=True):
        found.input[1:] = [kernel, bias]


def skip_from_elsewhere(graph):
    """The addition takes the output of the second block in place of the first."""
    node(graph, "Add").input[0] = node(graph, "Relu", 1).output[0]


def other_activation(graph):
    found = node(graph, "Relu", 1)
    found.op_type = "LeakyRelu"
    set_attribute(found, "alpha", 0.5)


def no_activation(graph):
    found = node(graph, "Relu", 2)
    for other in graph.node:
        other.input[:] = [found.input[0] if name == found.output[0] else name for name in other.input]
    graph.node.remove(found)


def subtract(graph):
    node(graph, "Add").op_type = "Sub"


def average(graph):
    node(graph, "GlobalMaxPool").op_type = "GlobalAveragePool"


FOUND = {
    change_weight: [("second", "weights.weight")],
    # In io_stream the zeros stand in a layer of their own.
    shift_padding: [("second", {"io_parallel": "window", "io_stream": "sides"})],
    swap_kernels: [("second", "weights.weight"), ("third", "weights.weight")],
}
REFUSED = {
    skip_from_elsewhere: "has a Merge that reads second_relu, third and gives (6, 6, 4); the design has no such layer",
    no_activation: "has a GlobalPooling that reads sum and gives (4,); the design has no such layer",
}


def changed(path, change, folder):
    model = onnx.load(str(path))
    change(model.graph)
    onnx.checker.check_model(model)
    onnx.save(model, str(folder / "changed.onnx"))
    return folder / "changed.onnx"


def test_the_file_as_it_was_agrees(residual, tmp_path):
    design, path = residual
    opinion = fp.second_opinion(changed(path, lambda graph: None, tmp_path), design)
    assert opinion.require() is opinion


@pytest.mark.parametrize("change", FOUND, ids=lambda change: change.__name__)
def test_another_number_in_the_file_is_found(residual, change, tmp_path):
    design, path = residual
    opinion = fp.second_opinion(changed(path, change, tmp_path), design)
    told = {(d.layer.removeprefix("zp2d_"), d.what) for d in opinion.differences}
    wanted = {(layer, what[design.io_type] if isinstance(what, dict) else what) for layer, what in FOUND[change]}
    assert told >= wanted
    assert {layer for layer, _ in told} == {layer for layer, _ in FOUND[change]}
    assert opinion.unlike > 0
    with pytest.raises(HlsError, match=r"are not the same hardware: layer '(zp2d_)?second': "):
        opinion.require()


def test_another_function_in_the_file_is_told_by_name(residual, tmp_path):
    design, path = residual
    opinion = fp.second_opinion(changed(path, other_activation, tmp_path), design)
    assert "layer 'second_relu': function differs: relu and leaky_relu" in [str(d) for d in opinion.differences]
    with pytest.raises(HlsError, match="are not the same hardware: layer 'second_relu': "):
        opinion.require()


def test_one_weight_is_told_by_its_place(residual, tmp_path):
    design, path = residual
    (difference,) = fp.second_opinion(changed(path, change_weight, tmp_path), design).differences
    raw = int(design["second"].weights["weight"][0, 1, 2, 1])
    assert difference.count == 1
    assert difference.one == f"{raw} at (0, 1, 2, 1)"
    assert difference.other != f"{raw} there"
    assert str(difference) == (
        f"layer 'second': weights.weight differs in 1 places, first: {raw} at (0, 1, 2, 1) and {difference.other}"
    )


def test_what_rounding_hides_is_no_difference(residual, tmp_path):
    design, path = residual
    scarcely = changed(path, lambda graph: change_weight(graph, by=1e-7), tmp_path)
    assert fp.second_opinion(scarcely, design).agrees


@pytest.mark.parametrize("change", REFUSED, ids=lambda change: change.__name__)
def test_another_structure_in_the_file_is_refused_by_name(residual, change, tmp_path):
    design, path = residual
    with pytest.raises(HlsError) as error:
        fp.second_opinion(changed(path, change, tmp_path), design)
    wanted = REFUSED[change]
    if design.io_type == "io_stream" and change is skip_from_elsewhere:
        # The first that differs reads a stream that is no longer copied.
        wanted = "has a ZeroPadding2D that reads first_relu and gives (8, 8, 4); the design has no such layer"
    assert wanted in str(error.value)


@pytest.mark.parametrize("change", [subtract, average], ids=lambda change: change.__name__)
def test_another_operation_is_found(residual, change, tmp_path):
    design, path = residual
    opinion = fp.second_opinion(changed(path, change, tmp_path), design)
    expected = {subtract: ("sum", "function"), average: ("largest", "largest")}[change]
    assert (opinion.differences[0].layer, opinion.differences[0].what) == expected
    assert opinion.unlike > 0


WIDER = {"types": lambda layer: {**layer.types, "result": fp.FixedType(17, 7)}}
CHANGES = {
    "types.result": ("second", WIDER["types"], "types"),
    "types.weight": ("second", lambda layer: {**layer.types, "weight": fp.FixedType(9, 3)}, "types"),
    "weights.bias": ("second", lambda layer: {**layer.weights, "bias": layer.weights["bias"] + 1}, "weights"),
    "weights.weight": ("head", lambda layer: {**layer.weights, "weight": layer.weights["weight"].T}, "weights"),
    "strategy": ("second", lambda layer: "resource", "strategy"),
    "reuse_factor": ("second", lambda layer: 4, "reuse_factor"),
    "window": (
        "second",
        lambda layer: replace(layer.operation, window=replace(layer.operation.window, stride=(1, 2))),
        "operation",
    ),
    "function": ("second_relu", lambda layer: replace(layer.operation, function="relu6"), "operation"),
    "output_shape": ("largest", lambda layer: (1, 1, 4), "output_shape"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_another_design_is_found(residual, what):
    design = residual[0]
    name, value, field = CHANGES[what]
    layers = tuple(replace(layer, **{field: value(layer)}) if layer.name == name else layer for layer in design.layers)
    found = fp.design_differences(design, replace(design, layers=layers))
    assert [(d.layer, d.what) for d in found] == [(name, what)]
    assert fp.design_differences(design, design) == ()


def test_a_design_that_lacks_a_layer_is_found(residual):
    design = residual[0]
    last = design.layers[-1]
    shorter = replace(design, layers=design.layers[:-1], outputs=(design.layers[-2].name,))
    found = fp.design_differences(design, shorter)
    assert [(d.layer, d.what) for d in found] == [(last.name, "kind"), (last.name, "outputs")]
    assert "no such layer" in str(found[0])
    assert (last.name, "kind") in [(d.layer, d.what) for d in fp.design_differences(shorter, design)]


def test_a_file_of_several_samples_and_a_missing_one_are_refused(residual, tmp_path):
    design, path = residual
    model = onnx.load(str(path))
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 4
    onnx.save(model, str(tmp_path / "four.onnx"))
    with pytest.raises(HlsError, match=r"is fixed to 4 samples at a time; export it with batch=None or 1"):
        fp.design_from_onnx(tmp_path / "four.onnx", design)
    with pytest.raises(HlsError, match=r"none\.onnx does not exist"):
        fp.design_from_onnx(tmp_path / "none.onnx", design)
    (tmp_path / "bad.onnx").write_bytes(b"no network")
    with pytest.raises(HlsError, match=r"bad\.onnx (is not an ONNX file|has no nodes)"):
        fp.design_from_onnx(tmp_path / "bad.onnx", design)


def test_the_same_inputs_are_drawn_again(residual):
    design, path = residual
    one, other = (fp.second_opinion(path, design, samples=5, seed=4) for _ in range(2))
    assert (one.samples, one.unlike) == (other.samples, other.unlike) == (5, 0)
    assert np.all([a.name == b.name for a, b in zip(one.design.layers, other.design.layers, strict=True)])
