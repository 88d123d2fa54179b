"""Recurrent networks of ONNX that read their steps in both directions, as the exporter of PyTorch writes them."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper, save_model

from fpgaprune.frontends import load_onnx
from tests.unit.frontends.graphs import numbers

STEPS, WIDTH, UNITS, GATES = 6, 3, 4, {"GRU": 3, "LSTM": 4, "RNN": 1}


class Graph:
    """The graph of a module whose recurrent layers have `batch_first=True`."""

    def __init__(self, kind="LSTM", direction="bidirectional"):
        self.kind, self.direction = kind, direction
        self.nodes, self.constants = [], []

    def add(self, operator, given, count=1, **settings):
        """Return the names of what a node gives, the name itself if it is one."""
        number = len(self.nodes)
        names = [f"t{number}_{at}" for at in range(count)]
        self.nodes.append(helper.make_node(operator, given, names, name=f"n{number}", **settings))
        return names[0] if count == 1 else names

    def constant(self, values):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def recurrent(self, steps, width):
        """Return the states of all steps, (steps, directions, batch, units), and the last ones."""
        ways, rows = 1 + (self.direction == "bidirectional"), GATES[self.kind] * UNITS
        weights = [self.constant(numbers(ways, rows, one)) for one in (width, UNITS)]
        bias = self.constant(numbers(ways, 2 * rows))
        after = {"linear_before_reset": 1} if self.kind == "GRU" else {}
        settings = {"hidden_size": UNITS, "direction": self.direction, **after}
        return self.add(self.kind, [steps, *weights, bias], 2, **settings)

    def joined(self, states):
        """Return states of all steps as (steps, batch, directions * units)."""
        turned = self.add("Transpose", [states], perm=[0, 2, 1, 3])
        return self.add("Reshape", [turned, self.constant(np.int64([0, 0, -1]))])

    def of_directions(self, last):
        """Return `torch.cat([h[-2], h[-1]], 1)`."""
        parts = [self.add("Gather", [last, self.constant(np.int64(at))], axis=0) for at in (-2, -1)]
        return self.add("Concat", parts, axis=1)

    def load(self, end, path):
        given = helper.make_tensor_value_info("x", TensorProto.FLOAT, (None, STEPS, WIDTH))
        ends = helper.make_tensor_value_info(end, TensorProto.FLOAT, (None,))
        graph = helper.make_graph(self.nodes, "g", [given], [ends], self.constants)
        save_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
        return load_onnx(path)

    def begun(self):
        return self.add("Transpose", ["x"], perm=[1, 0, 2])


def all_states(graph):
    states, _ = graph.recurrent(graph.begun(), WIDTH)
    return graph.add("Transpose", [graph.joined(states)], perm=[1, 0, 2])


def last_of_all(graph):
    """`out[:, -1]`."""
    return graph.add("Gather", [all_states(graph), graph.constant(np.int64(-1))], axis=1)


def last_states(graph):
    _, last = graph.recurrent(graph.begun(), WIDTH)
    return graph.of_directions(last)


def permuted_states(graph):
    """`h.permute(1, 0, 2).flatten(1)`."""
    _, last = graph.recurrent(graph.begun(), WIDTH)
    return graph.add("Flatten", [graph.add("Transpose", [last], perm=[1, 0, 2])], axis=1)


def two_layers(graph):
    """The last states of the second of two layers: PyTorch joins those of all layers, and reads the last two."""
    states, first = graph.recurrent(graph.begun(), WIDTH)
    _, last = graph.recurrent(graph.joined(states), 2 * UNITS)
    return graph.of_directions(graph.add("Concat", [first, last], axis=0))


def all_and_last(graph):
    """The mean of all states beside the last ones."""
    states, last = graph.recurrent(graph.begun(), WIDTH)
    mean = graph.add(
        "ReduceMean", [graph.add("Transpose", [graph.joined(states)], perm=[1, 0, 2])], axes=[1], keepdims=0
    )
    return graph.add("Concat", [mean, graph.of_directions(last)], axis=1)


@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize(
    ("ending", "shape", "kinds"),
    [
        (all_states, (STEPS, 2 * UNITS), {"Bidirectional"}),
        (last_of_all, (2 * UNITS,), {"Bidirectional", "Cropping1D"}),
        (last_states, (2 * UNITS,), {"LSTM", "GRU", "SimpleRNN", "Concatenate"}),
        (permuted_states, (2 * UNITS,), {"LSTM", "GRU", "SimpleRNN", "Concatenate"}),
        (two_layers, (2 * UNITS,), {"Bidirectional", "LSTM", "GRU", "SimpleRNN", "Concatenate"}),
        (
            all_and_last,
            (4 * UNITS,),
            {"Bidirectional", "Cropping1D", "Concatenate", "GlobalAveragePooling1D", "Permute"},
        ),
    ],
)
def test_both_directions_come_in(kind, ending, shape, kinds, tmp_path):
    """`load_onnx` itself compares with onnxruntime, and refuses what differs by 1e-5."""
    graph = Graph(kind)
    net = graph.load(ending(graph), tmp_path / "net.onnx")
    assert net.model.output_shape[1:] == shape
    assert {type(layer).__name__ for layer in net.model.layers} <= kinds | {"InputLayer", "Reshape", "Flatten"}


def test_the_last_state_of_a_layer_that_reads_backwards_comes_in(tmp_path):
    graph = Graph("GRU", "reverse")
    _, last = graph.recurrent(graph.begun(), WIDTH)
    net = graph.load(graph.add("Gather", [last, graph.constant(np.int64(0))], axis=0), tmp_path / "net.onnx")
    assert [layer.go_backwards for layer in net.model.layers if hasattr(layer, "go_backwards")] == [True]
