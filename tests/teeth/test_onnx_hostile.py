"""ONNX files that are cut, contradict themselves, claim sizes or point elsewhere end in one line."""

import os
import time

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from fpgaprune.errors import ModelImportError
from fpgaprune.frontends import load_onnx, plan_onnx
from tests.unit.frontends.graphs import graph, node, numbers, small_cnn

MOST_S = 5.0


def refused(path, reason, door=plan_onnx):
    start = time.perf_counter()
    with pytest.raises(ModelImportError, match=reason) as caught:
        door(path)
    assert time.perf_counter() - start < MOST_S
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 1000


def told(path):
    """The refusal of the file; "" if there is none."""
    try:
        plan_onnx(path)
    except ModelImportError as error:
        return str(error)
    return ""


def edited(path, change):
    """The file of `small_cnn`, changed by `change`."""
    model = onnx.load(small_cnn(path))
    change(model)
    path.write_bytes(model.SerializeToString())
    return path


def test_a_file_that_was_cut_or_is_none(tmp_path):
    data = small_cnn(tmp_path / "net.onnx").read_bytes()
    path = tmp_path / "cut.onnx"
    for size in (0, 1, 7, 100, len(data) // 2, len(data) - 1):
        path.write_bytes(data[:size])
        refused(path, "is not a sound ONNX file")
    path.write_bytes(b"PK\x03\x04" + bytes(500))
    refused(path, "is not a sound ONNX file")
    refused(tmp_path / "gone.onnx", "does not exist")
    (tmp_path / "folder.onnx").mkdir()
    refused(tmp_path / "folder.onnx", "is a folder or no file at all")
    os.mkfifo(tmp_path / "pipe.onnx")
    refused(tmp_path / "pipe.onnx", "is a folder or no file at all")


def test_bytes_that_were_changed_end_in_one_line_or_in_a_sound_plan(tmp_path):
    data = bytearray(small_cnn(tmp_path / "net.onnx").read_bytes())
    rng = np.random.default_rng(5)
    path, sound = tmp_path / "changed.onnx", 0
    for _ in range(250):
        changed = bytearray(data)
        for place in rng.integers(0, len(data), 3):
            changed[place] = rng.integers(0, 256)
        path.write_bytes(changed)
        said = told(path)
        assert "\n" not in said
        sound += not said
    assert 100 < sound < 250


def _cycle(model):
    model.graph.node[2].input[0] = "f"


def _self_cycle(model):
    model.graph.node[0].input[0] = "a"


def _short(model):
    model.graph.initializer[0].raw_data = model.graph.initializer[0].raw_data[:-4]


def _huge(model):
    model.graph.initializer[0].dims[0] = 1 << 40


def _negative(model):
    model.graph.initializer[0].dims[0] = -8


def _unknown(model):
    model.graph.node[2].input[0] = "nowhere"


def _twice(model):
    model.graph.node[2].output[0] = "a"


def _no_nodes(model):
    del model.graph.node[:]


def _constant(model):
    model.graph.output[0].name = "rest"


def _opset(version):
    def change(model):
        model.opset_import[0].version = version

    return change


def _input(**dims):
    def change(model):
        for at, size in dims.items():
            dim = model.graph.input[0].type.tensor_type.shape.dim[int(at[1:])]
            dim.Clear()
            if isinstance(size, str):
                dim.dim_param = size
            else:
                dim.dim_value = size

    return change


def _integers(model):
    model.graph.input[0].type.tensor_type.elem_type = TensorProto.INT64


def _text(model):
    model.graph.initializer[0].CopyFrom(helper.make_tensor("features.0.weight", TensorProto.STRING, [1], [b"x"]))


CHANGES = {
    "a cycle of nodes": (_cycle, "is not a sound ONNX file"),
    "a node that reads itself": (_self_cycle, "is not a sound ONNX file"),
    "a constant that is cut": (_short, "is not a sound ONNX file"),
    "a constant that claims a terabyte": (_huge, "is not a sound ONNX file"),
    "a constant of negative size": (_negative, "is not a sound ONNX file"),
    "a tensor that nothing gives": (_unknown, "is not a sound ONNX file"),
    "a tensor that two nodes give": (_twice, "is not a sound ONNX file"),
    "no nodes": (_no_nodes, "it has no nodes"),
    "an output that is a constant": (_constant, "does not depend on the input"),
    "an old opset": (_opset(3), "has opset 3; wanted 6 to"),
    "an opset of the future": (_opset(99), r"has opset 99; wanted 6 to .*opset_version=18"),
    "an image of any size": (_input(d2="h", d3="w"), r"only the batch may be dynamic"),
    "an input of a terabyte": (_input(d2=1 << 20, d3=1 << 20), "numbers a sample"),
    "an input of negative size": (_input(d2=-4), "numbers a sample"),
    "another number of channels": (_input(d1=3), r"node '/features/features.0/Conv' \(Conv\) has a weight of shape"),
    "an image of another size": (_input(d2=12), r"node '/fc1/Gemm' \(Gemm\) multiplies 128 entries by a weight"),
    "an input of whole numbers": (_integers, "has type INT64; wanted FLOAT"),
    "a weight of text": (_text, "a constant of object|is not a sound ONNX file"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_file_that_contradicts_itself(name, tmp_path):
    change, reason = CHANGES[name]
    refused(edited(tmp_path / "net.onnx", change), reason)


BOMBS = {
    "ConstantOfShape": ([node("ConstantOfShape", ["size"], "c")], {"size": np.int64([1 << 20, 1 << 20])}),
    "Expand": ([node("Expand", ["one", "size"], "c")], {"one": numbers(1), "size": np.int64([1 << 20, 1 << 20])}),
    "Range": ([node("Range", ["a", "b", "d"], "c")], {"a": np.int64(0), "b": np.int64(1 << 40), "d": np.int64(1)}),
    "Add": ([node("Add", ["row", "col"], "c")], {"row": numbers(1, 1 << 14), "col": numbers(1 << 14, 1)}),
    "MatMul": ([node("MatMul", ["col", "row"], "c")], {"row": numbers(1, 1 << 14), "col": numbers(1 << 14, 1)}),
    "Gather": ([node("Gather", ["row", "at"], "c")], {"row": numbers(1, 1 << 14), "at": np.zeros(1 << 14, np.int64)}),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_constant_that_would_fill_the_memory(name, tmp_path):
    nodes, constants = BOMBS[name]
    nodes = [*nodes, node("Add", ["x", "c"], "y")]
    path = graph(tmp_path / "net.onnx", nodes, constants, {"x": ("n", 4)}, {"y": ("n", 4)})
    refused(path, rf"\({name}\) gives a tensor of [0-9,]+ elements or more")


def test_layers_that_would_fill_the_memory(tmp_path):
    nodes = [node("Resize", ["x", "", "by"], "x1")]
    nodes += [node("Resize", [f"x{at}", "", "by"], f"x{at + 1}") for at in range(1, 8)]
    path = graph(
        tmp_path / "net.onnx",
        [*nodes, node("Relu", ["x8"], "y")],
        {"by": np.float32([1, 1, 64, 64])},
        {"x": ("n", 1, 8, 8)},
        {"y": ("n", 1, "h", "w")},
    )
    refused(path, r"\(Resize\) gives a tensor of more than [0-9,]+ numbers a sample")


def external(path, location, offset=None, length=None):
    model = onnx.load(small_cnn(path))
    tensor = model.graph.initializer[0]
    data = tensor.raw_data
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (("location", location), ("offset", offset), ("length", length)):
        if value is not None:
            tensor.external_data.add(key=key, value=str(value))
    path.write_bytes(model.SerializeToString())
    return data


def test_constants_in_the_own_folder_are_read(tmp_path):
    data = external(tmp_path / "net.onnx", "net.onnx.data", 8, 8 * 9 * 4)
    (tmp_path / "net.onnx.data").write_bytes(bytes(8) + data)
    assert load_onnx(tmp_path / "net.onnx").difference.relative < 1e-5


@pytest.mark.parametrize(
    ("location", "reason"),
    [
        ("../secret.bin", "wanted a file in its own folder"),
        ("/etc/passwd", "wanted a file in its own folder"),
        ("sub/data.bin", "wanted a file in its own folder"),
        ("..\\secret.bin", "wanted a file in its own folder"),
        ("", "wanted a file in its own folder"),
        ("..", "wanted a file in its own folder"),
        ("link.bin", "which is a link or no file"),
        ("gone.bin", "which is missing"),
        ("pipe", "which is a link or no file"),
    ],
)
def test_constants_elsewhere_are_not_read(location, reason, tmp_path):
    folder = tmp_path / "inner"
    folder.mkdir()
    data = external(folder / "net.onnx", location)
    (tmp_path / "secret.bin").write_bytes(data)
    (folder / "link.bin").symlink_to(tmp_path / "secret.bin")
    os.mkfifo(folder / "pipe")
    refused(folder / "net.onnx", reason)


@pytest.mark.parametrize(("offset", "length"), [(0, 1 << 40), (1 << 40, 4), (-4, 288), (0, -1), (4, 288), ("x", 1)])
def test_sizes_that_a_file_claims_for_another_are_checked(offset, length, tmp_path):
    (tmp_path / "d.bin").write_bytes(external(tmp_path / "net.onnx", "d.bin", offset, length))
    refused(tmp_path / "net.onnx", r"takes .* bytes from|invalid literal")


def test_constants_of_another_length_are_refused(tmp_path):
    (tmp_path / "d.bin").write_bytes(external(tmp_path / "net.onnx", "d.bin", 0, 100))
    refused(tmp_path / "net.onnx", "is not a sound ONNX file")


def test_programs_inside_a_graph_are_refused(tmp_path):
    body = helper.make_graph([node("Relu", ["x"], "z")], "b", [], [helper.make_empty_tensor_value_info("z")])
    nodes = [helper.make_node("If", ["c"], ["y"], name="if", then_branch=body, else_branch=body)]
    path = graph(tmp_path / "net.onnx", nodes, {"c": np.array(True)}, {"x": ("n", 4)}, {"y": ("n", 4)})
    refused(path, "node 'if' is a If, which fpgaprune does not take from ONNX: export the network without a condition")


def test_functions_of_the_file_are_put_in_and_those_without_end_are_refused(tmp_path):
    path = tmp_path / "net.onnx"
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("mine", 1)]

    def with_function(inner):
        nodes = [helper.make_node(inner, ["a"], ["b"], name="in", domain="mine" if inner == "F" else "")]
        function = helper.make_function("mine", "F", ["a"], ["b"], nodes, opsets)
        model = onnx.load(
            graph(path, [helper.make_node("F", ["x"], ["y"], domain="mine")], {}, {"x": ("n", 4)}, {"y": ("n", 4)})
        )
        model.opset_import.append(opsets[1])
        model.functions.append(function)
        path.write_bytes(model.SerializeToString())

    with_function("Relu")
    assert [layer.kind for layer in plan_onnx(path).plan.layers.values()] == ["Input", "ReLU"]
    with_function("Sin")
    refused(path, "node 'in' is a Sin")
    with_function("F")
    refused(path, "its function 'F' calls itself")


def test_functions_that_make_endless_nodes_are_refused(tmp_path):
    """Each of forty functions calls the next one twice: two to the fortieth nodes."""
    path = tmp_path / "net.onnx"
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("mine", 1)]
    model = onnx.load(
        graph(path, [helper.make_node("F0", ["x"], ["y"], domain="mine")], {}, {"x": ("n", 4)}, {"y": ("n", 4)})
    )
    model.opset_import.append(opsets[1])
    for at in range(40):
        nodes = [helper.make_node(f"F{at + 1}", [a], [b], domain="mine") for a, b in (("a", "m"), ("m", "b"))]
        model.functions.append(helper.make_function("mine", f"F{at}", ["a"], ["b"], nodes, opsets))
    last = [helper.make_node("Relu", ["a"], ["b"])]
    model.functions.append(helper.make_function("mine", "F40", ["a"], ["b"], last, opsets))
    path.write_bytes(model.SerializeToString())
    refused(path, "its functions make [0-9,]+ nodes")


def test_constants_in_nodes_may_not_lie_elsewhere(tmp_path):
    tensor = numpy_helper.from_array(numbers(4), "c")
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="../secret.bin")
    nodes = [helper.make_node("Constant", [], ["c"], value=tensor), node("Add", ["x", "c"], "y")]
    path = graph(tmp_path / "net.onnx", nodes, {}, {"x": ("n", 4)}, {"y": ("n", 4)})
    refused(path, "wanted a file in its own folder")
