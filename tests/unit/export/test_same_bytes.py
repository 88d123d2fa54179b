"""The same model gives the same ONNX file, whatever the process did and drew before."""

import keras
import numpy as np
import onnx
import pytest

from fpgaprune.export import export_onnx, settle_order
from fpgaprune.export.ordered_sets import OrderedSet, ordered_sets

L = keras.layers


def loop():
    keras.utils.set_random_seed(3)
    return keras.Sequential([keras.Input((5, 3)), L.SimpleRNN(3, name="loop"), L.Dense(2, name="dense")], name="net")


def test_a_loop_has_no_name_that_was_counted(tmp_path):
    first = export_onnx(loop(), tmp_path / "first.onnx").read_bytes()
    again = export_onnx(loop(), tmp_path / "again.onnx").read_bytes()
    assert again == first
    (made,) = [node for node in onnx.load_from_string(first).graph.node if node.op_type == "Loop"]
    assert made.attribute[0].g.name == f"{made.name}/body"


def test_sets_of_tf2onnx_are_ordered_only_meanwhile():
    import tf2onnx.graph

    with ordered_sets():
        assert tf2onnx.graph.set is OrderedSet
    assert "set" not in vars(tf2onnx.graph)
    with pytest.raises(ValueError, match="stop"), ordered_sets():
        raise ValueError("stop")
    assert "set" not in vars(tf2onnx.graph)


def test_an_ordered_set_is_a_set_in_the_order_of_its_elements():
    made = OrderedSet("cab")
    made.update("d", "a")
    assert list(made) == ["c", "a", "b", "d"]
    assert list(made.union("xa")) == ["c", "a", "b", "d", "x"]
    assert list(made.intersection("dc", "cdb")) == ["c", "d"]
    assert list(made.difference("c", "b")) == ["a", "d"]
    assert list(made - {"a"}) == ["c", "b", "d"]
    assert list(made | {"z"}) == ["c", "a", "b", "d", "z"]
    assert list(made & {"d", "c"}) == ["c", "d"]
    assert made == set("abcd")
    assert made.issubset("abcde")
    assert made.issuperset("ab")
    assert not made.issubset("abc")
    assert {"a", "q"} - made == {"q"}
    made.remove("a")
    assert "a" not in made
    assert list(made.copy()) == ["c", "b", "d"]


def branches(order):
    lines = {
        "a": "a = Relu(x)",
        "b": "b = Neg(x)",
        "c": "c = Add(b, a)",
        "unused": "unused = Abs(x)",
        "y": "y = Add(c, k)",
    }
    text = '<ir_version: 10, opset_import: ["" : 17]> g (float[1,4] x, float[4] k) => (float[1,4] y) {'
    return onnx.parser.parse_model(text + " ".join(lines[name] for name in order) + "}")


@pytest.mark.parametrize("order", [("a", "b", "unused", "c", "y"), ("b", "a", "c", "y", "unused")])
def test_nodes_stand_as_the_outputs_need_them(order):
    made = branches(order)
    settle_order(made.graph)
    assert [node.output[0] for node in made.graph.node] == ["b", "a", "c", "y"]


def test_attributes_stand_by_name_also_inside_a_loop():
    made = branches(("a", "b", "c", "y"))
    inner = onnx.helper.make_node("Conv", ["p", "w"], ["q"], strides=[1], pads=[0, 0], group=1)
    inner.attribute.sort(key=lambda entry: entry.name, reverse=True)
    outer = onnx.helper.make_node("If", ["x"], ["z"])
    outer.attribute.add(name="then_branch", type=onnx.AttributeProto.GRAPH).g.CopyFrom(
        onnx.helper.make_graph([inner], "inside", [], [onnx.helper.make_empty_tensor_value_info("q")])
    )
    made.graph.node.append(outer)
    made.graph.output.append(onnx.helper.make_empty_tensor_value_info("z"))
    settle_order(made.graph)
    (inside,) = made.graph.node[-1].attribute[0].g.node
    assert [entry.name for entry in inside.attribute] == ["group", "pads", "strides"]
    assert np.array_equal([node.op_type for node in made.graph.node], ["Neg", "Relu", "Add", "Add", "If"])
