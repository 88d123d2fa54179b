"""Writes a GRU or LSTM as one ONNX node that reads the weights in Keras's order.

tf2onnx writes a GRU as a loop, and an LSTM as a loop or a node, depending on the batch size. So the layer is exported
as a stand-in, one product with a marked matrix, and the node replaces the stand-in afterwards. ONNX transposes the
weights of a node and orders the gates of an LSTM differently. Masks are in Keras's order, so the initialisers keep that
order, and further nodes, which every runtime computes once, reorder them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import keras
import numpy as np

from fpgaprune.design import FUNCTIONS
from fpgaprune.errors import ExportError
from fpgaprune.files import replace_entries
from fpgaprune.network import activation_of, keras_class
from fpgaprune.values import Array

if TYPE_CHECKING:
    import onnx
    import tensorflow as tf

_ACTIVATIONS = {function.name: function.onnx for function in FUNCTIONS.values() if function.recurrent}
# For each of ONNX's gates (z, r, h of a GRU; i, o, f, c of an LSTM), the index of Keras's block.
_GATES = {"GRU": (0, 1, 2), "LSTM": (0, 3, 1, 2)}


class _StandIn(keras.layers.Layer):
    """Multiplies every step's features by a matrix whose elements all are `mark`."""

    def __init__(self, units: int, sequences: bool, mark: float, **options: object) -> None:
        super().__init__(**options)
        self.units, self.sequences, self.mark = units, sequences, mark

    # With the arguments that the layer itself was called with.
    def call(self, x: tf.Tensor, mask: tf.Tensor = None, training: bool | None = None) -> tf.Tensor:  # noqa: ARG002
        import tensorflow as tf

        matrix = np.full((x.shape[-1], self.units), self.mark, np.float32)
        # One operation on the operands as they are; Keras would reshape them.
        product = tf.raw_ops.BatchMatMulV2(x=x, y=tf.constant(matrix))
        return product if self.sequences else product[:, -1]

    def compute_output_shape(self, shape: Any) -> Any:
        return (*shape[:-1], self.units) if self.sequences else (shape[0], self.units)


def with_stand_ins(functional: keras.Model) -> tuple[Any, dict[float, Any]]:
    """Replace each GRU and LSTM that ONNX has a node for by a stand-in; also map each stand-in's mark to its layer.

    If there is no such layer, it is `functional` itself. Other recurrent layers stay, and become loops.

    Args:
        functional: a functional Keras model; it is not changed.
    """
    masked = any(isinstance(x, keras.layers.Masking) or getattr(x, "mask_zero", False) for x in functional.layers)
    found = [layer for layer in functional.layers if not masked and _has_node(layer)]
    if not found:
        return functional, {}
    marks = {float(number): layer for number, layer in enumerate(found, start=2)}
    names = {layer.name: mark for mark, layer in marks.items()}

    def clone(layer: keras.Layer) -> keras.Layer:
        if layer.name in names:
            return _StandIn(layer.units, layer.return_sequences, names[layer.name], name=layer.name)
        # All other layers keep the model's own weights.
        return layer

    return keras.models.clone_model(functional, clone_function=clone), marks


def put_nodes(graph: onnx.GraphProto, marks: Mapping[float, Any], values: Callable[[Any], Array]) -> None:
    """Replace each stand-in in `graph` by the node of its layer.

    Args:
        graph: the graph that tf2onnx made of the model from `with_stand_ins`.
        marks: the marks from `with_stand_ins`.
        values: weight of such a layer to the array that its initialiser holds.

    Raises:
        ExportError: a stand-in is missing.
    """
    from onnx import numpy_helper

    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    placed: set[float] = set()
    stood: set[str] = set()
    for node in list(graph.node):
        matrix = constants.get(node.input[1]) if node.op_type == "MatMul" else None
        mark = float(matrix.flat[0]) if matrix is not None and matrix.size else 0.0
        if matrix is None or mark not in marks or (matrix != mark).any():
            continue
        if matrix.shape != (marks[mark].input.shape[-1], marks[mark].units):
            continue
        _put(graph, node, marks[mark], values)
        placed.add(mark)
        stood.add(node.input[1])
    for mark, layer in marks.items():
        if mark not in placed:
            raise ExportError(
                f"layer {layer.name!r} ({type(layer).__name__}) is missing from what tf2onnx wrote: install the "
                "tf2onnx that this fpgaprune names"
            )
    replace_entries(graph.initializer, (t for t in graph.initializer if t.name not in stood))


def _has_node(layer: keras.Layer) -> bool:
    """Return whether ONNX has a node that computes the same as `layer`."""
    if keras_class(layer) not in (keras.layers.GRU, keras.layers.LSTM) or isinstance(layer.input, list):
        return False
    plain = not (layer.return_state or layer.go_backwards or layer.stateful)
    return plain and layer.compute_dtype == "float32" and None not in _functions(layer)


def _functions(layer: keras.Layer) -> list[str | None]:
    """Return ONNX's names of the recurrent activation and of the activation of `layer`; None where there is none."""
    found = (activation_of(getattr(layer, what)) for what in ("recurrent_activation", "activation"))
    return [None if known is None else _ACTIVATIONS.get(known.name) for known in found]


def _put(graph: onnx.GraphProto, node: onnx.NodeProto, layer: keras.Layer, values: Callable[[Any], Array]) -> None:
    """Replace `node` by the ONNX node of `layer`, and by nodes that reorder its inputs, weights and outputs."""
    kind = "GRU" if isinstance(layer, keras.layers.GRU) else "LSTM"
    made, path = _Nodes(graph, node.name.rpartition("/")[0]), layer.name
    kernel, recurrent, *biases = (values(variable) for variable in layer.weights)
    weights = [made.weight(name, w, _GATES[kind]) for name, w in (("kernel", kernel), ("recurrent", recurrent))]
    weights += [made.bias(bias, _GATES[kind]) for bias in biases]
    steps = made.add("Transpose", [node.input[0]], "steps", perm=[1, 0, 2])
    gate, function = _functions(layer)
    options: dict[str, Any] = {"hidden_size": layer.units}
    if kind == "GRU":
        options |= {"activations": [gate, function], "linear_before_reset": int(layer.reset_after)}
    else:
        options["activations"] = [gate, function, function]
    states = made.add(kind, [steps, *weights], path, **options)
    flat = made.add("Squeeze", [states, made.constant("direction", np.array([1]))], "one_direction")
    made.add("Transpose", [flat], "samples", output=node.output[0], perm=[1, 0, 2])
    place = list(graph.node).index(node)
    graph.node.remove(node)
    for number, one in enumerate(made.nodes):
        graph.node.insert(place + number, one)


class _Nodes:
    """Nodes and constants under names that begin with `prefix`."""

    def __init__(self, graph: onnx.GraphProto, prefix: str) -> None:
        self.graph, self.prefix = graph, prefix
        self.nodes: list[Any] = []

    def add(self, kind: str, inputs: list[str], name: str, output: str | None = None, **attributes: object) -> str:
        """Add a node and return the name of its output."""
        from onnx import helper

        whole = f"{self.prefix}/{name}"
        output = output or f"{whole}:0"
        self.nodes.append(helper.make_node(kind, inputs, [output], name=whole, **attributes))
        return output

    def constant(self, name: str, values: object) -> str:
        """Add an initialiser and return its name."""
        from onnx import numpy_helper

        whole = f"{self.prefix}/{name}"
        self.graph.initializer.append(numpy_helper.from_array(np.ascontiguousarray(values), whole))
        return whole

    def weight(self, name: str, keras_weight: Any, gates: tuple[int, ...]) -> str:
        """Add the initialiser (inputs, gates x units), and nodes that make (1, gates x units, inputs) of it."""
        stored = self._in_order(name, self.constant(name, keras_weight), keras_weight.shape[-1], gates, axis=1)
        turned = self.add("Transpose", [stored], f"{name}_turned", perm=[1, 0])
        return self.add("Unsqueeze", [turned, self.constant(f"{name}_axis", np.array([0]))], f"{name}_placed")

    def bias(self, bias: Any, gates: tuple[int, ...]) -> str:
        """Add a bias, and nodes that make (1, 2 x gates x units) of it, with zeros for the state if it has none."""
        stored = self._in_order("bias", self.constant("bias", bias), bias.shape[-1], gates, axis=bias.ndim - 1)
        if bias.ndim == 1:
            stored = self.add("Concat", [stored, self.constant("none", np.zeros_like(bias))], "bias_joined", axis=0)
        return self.add("Reshape", [stored, self.constant("bias_shape", np.array([1, -1]))], "bias_placed")

    def _in_order(self, name: str, stored: str, length: int, gates: tuple[int, ...], axis: int) -> str:
        if gates == tuple(range(len(gates))):
            return stored
        units = length // len(gates)
        order = np.concatenate([np.arange(gate * units, (gate + 1) * units) for gate in gates])
        return self.add("Gather", [stored, self.constant(f"{name}_order", order)], f"{name}_gates", axis=axis)
