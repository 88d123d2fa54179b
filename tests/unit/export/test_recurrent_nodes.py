"""A stand-in of a recurrent layer becomes the layer's node, and nothing of the stand-in stays."""

import keras
import numpy as np
import onnx
import onnxruntime
import pytest

from fpgaprune.errors import ExportError
from fpgaprune.export import put_nodes, with_stand_ins
from fpgaprune.files import IR_VERSION

L = keras.layers
STEPS, FEATURES, UNITS = 3, 2, 2


def network(layer):
    model = keras.Sequential([keras.Input((STEPS, FEATURES)), layer])
    rng = np.random.default_rng(4)
    model.set_weights([rng.normal(size=weight.shape) for weight in model.weights])
    return keras.Model(model.inputs[0], model.outputs[0])


def product(number):
    """What tf2onnx makes of a stand-in: a product with a matrix of one number."""
    head = f'<ir_version: {IR_VERSION}, opset_import: ["" : 17]>'
    text = f"g (float[1,{STEPS},{FEATURES}] x) => (float[1,{STEPS},{UNITS}] y) {{ y = MatMul(x, m) }}"
    made = onnx.parser.parse_model(head + text)
    made.graph.node[0].name = "r/product"
    made.graph.initializer.append(onnx.numpy_helper.from_array(np.full((FEATURES, UNITS), number, np.float32), "m"))
    return made


@pytest.mark.parametrize("cell", [L.GRU, L.LSTM])
def test_a_stand_in_is_the_node_of_its_layer(cell):
    model = network(cell(UNITS, return_sequences=True, name="r"))
    _, marks = with_stand_ins(model)
    ((mark, layer),) = marks.items()
    assert layer is model.get_layer("r")
    made = product(mark)
    put_nodes(made.graph, marks, lambda variable: variable.numpy())
    assert "m" not in {tensor.name for tensor in made.graph.initializer}
    assert {node.op_type for node in made.graph.node} >= {cell.__name__, "Transpose"}
    assert "MatMul" not in {node.op_type for node in made.graph.node}
    x = np.random.default_rng(5).normal(size=(1, STEPS, FEATURES)).astype("float32")
    (found,) = onnxruntime.InferenceSession(made.SerializeToString()).run(None, {"x": x})
    np.testing.assert_allclose(found, model(x), atol=1e-6)


def test_a_stand_in_that_is_not_there_is_an_error():
    model = network(L.GRU(UNITS, return_sequences=True, name="r"))
    _, marks = with_stand_ins(model)
    with pytest.raises(ExportError, match="layer 'r' \\(GRU\\) is missing from what tf2onnx wrote"):
        put_nodes(product(1.0).graph, marks, lambda variable: variable.numpy())
