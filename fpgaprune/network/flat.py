"""The calls of a Keras functional or Sequential model as plain records, models inside it written out.

Nothing of Keras is imported: the model is only walked. In this package the only module that reads Keras' private
graph attributes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from fpgaprune.design.functions import FUNCTIONS

KERNEL = frozenset({"Conv1D", "Conv2D", "Conv3D", "Dense"})
TRANSPOSED = frozenset({"Conv1DTranspose", "Conv2DTranspose", "Conv3DTranspose"})
DEPTHWISE = frozenset({"DepthwiseConv1D", "DepthwiseConv2D"})
RECURRENT = frozenset({"SimpleRNN", "GRU", "LSTM"})
NORM = "BatchNormalization"
_NOISE = frozenset(
    {"Dropout", "SpatialDropout1D", "SpatialDropout2D", "SpatialDropout3D", "GaussianNoise", "GaussianDropout"}
    | {"AlphaDropout", "ActivityRegularization", "Identity"}
)
_POINTWISE = frozenset({"Activation", "ReLU", "LeakyReLU", "ELU"})
# Channels stay where they are; positions may be moved, pooled, dropped or filled with zero.
_POSITIONS = frozenset(
    {f"{kind}Pooling{n}D" for kind in ("Max", "Average", "GlobalMax", "GlobalAverage") for n in (1, 2, 3)}
    | {f"{kind}{n}D" for kind in ("ZeroPadding", "Cropping", "UpSampling") for n in (1, 2, 3)}
)
# Output channel c depends on input channel c alone, and zeros give zeros where the activation does.
CHANNELWISE = _NOISE | _POINTWISE | _POSITIONS
# Each position by itself, too: a constant channel stays constant.
PLACEWISE = _NOISE | _POINTWISE
MERGE = frozenset({"Add", "Subtract", "Average", "Maximum", "Minimum"})
_ZERO_AT_ZERO = frozenset(function.name for function in FUNCTIONS.values() if function.at_zero == 0)
_ACROSS_CHANNELS = frozenset({"softmax", "log_softmax", "sparsemax", "sparse_softmax", "glu"})


@dataclass(frozen=True)
class Call:
    """One call of a layer.

    Attributes:
        path: names of the enclosing models and of the layer, as in weight paths.
        layer: the Keras layer or operation.
        kind: its class name where it is Keras's own and has its channels last, else "".
        inputs, outputs: numbers of the tensors that it reads and makes.
    """

    path: str
    layer: Any
    kind: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


@dataclass
class Graph:
    """All calls, producers before consumers; `channels[t]` is the last axis of tensor `t`, None where unknown."""

    calls: list[Call] = field(default_factory=list)
    channels: list[int | None] = field(default_factory=list)
    shapes: list[tuple[int | None, ...]] = field(default_factory=list)
    tensors: list[Any] = field(default_factory=list)
    inputs: tuple[int, ...] = ()
    outputs: tuple[int, ...] = ()

    def add_tensor(self, tensor: Any) -> int:
        """The number of a new tensor."""
        shape = tuple(tensor.shape)
        self.shapes.append(shape)
        self.channels.append(shape[-1] if shape else None)
        self.tensors.append(tensor)
        return len(self.channels) - 1

    def consumers(self, tensor: int) -> list[Call]:
        """The calls that read `tensor`."""
        return [call for call in self.calls if tensor in call.inputs]


def graph_of(model: Any) -> Graph | None:
    """The graph of `model`, or None where it has none that says all (a subclassed model, an overridden `call`)."""
    functional = _functional(model)
    if functional is None:
        return None
    graph = Graph()
    graph.inputs = tuple(graph.add_tensor(tensor) for tensor in functional.inputs)
    graph.outputs = _walk(functional, graph.inputs, "", graph)
    return graph


def activation_of(call: Call) -> str:
    """The name of the activation that the call applies; "linear" where none, "" where it cannot be told."""
    if call.kind in ("ReLU", "LeakyReLU", "ELU"):
        floor = float(getattr(call.layer, "threshold", 0.0) or 0.0)
        return "relu" if floor >= 0 else ""
    function = getattr(call.layer, "activation", None)
    if function is None:
        return "linear"
    return getattr(function, "__name__", "") if _is_of_keras(function) else ""


def keeps_zero(call: Call) -> bool:
    """Whether the call's activation is known to map 0 to 0."""
    return activation_of(call) in _ZERO_AT_ZERO


def mixes_channels(call: Call) -> bool:
    """Whether the call's activation reads several channels at once, or is not known."""
    return activation_of(call) in _ACROSS_CHANNELS or activation_of(call) == ""


def is_ungrouped(call: Call) -> bool:
    """Whether each output channel reads every input channel."""
    return int(getattr(call.layer, "groups", 1) or 1) == 1


def joins_channels(call: Call, graph: Graph) -> bool:
    """Whether the call lays its inputs' channels behind one another."""
    if call.kind != "Concatenate":
        return False
    rank = len(graph.shapes[call.inputs[0]])
    return call.layer.axis in (-1, rank - 1) and all(graph.channels[t] is not None for t in call.inputs)


def flat_positions(call: Call, graph: Graph) -> int | None:
    """How often each channel stands in the flat vector that the call makes; None where it is not such a call."""
    channels = graph.channels[call.inputs[0]] if call.inputs else None
    rank = len(graph.shapes[call.outputs[0]])
    if call.kind not in ("Flatten", "Reshape") or rank != 2 or not channels:
        return None
    size = graph.channels[call.outputs[0]]
    return None if size is None else size // channels


def _functional(model: Any) -> Any:
    if not _is_of_keras(type(model)):
        own = type(model).__dict__
        if "call" in own or "__call__" in own:
            return None
    inner = getattr(model, "_functional", None) if type(model).__name__ == "Sequential" else model
    return inner if hasattr(inner, "_nodes_by_depth") and hasattr(inner, "inputs") else None


def _walk(functional: Any, given: Sequence[int], prefix: str, graph: Graph) -> tuple[int, ...]:
    numbers = {id(tensor): number for tensor, number in zip(functional.inputs, given, strict=True)}
    for depth in sorted(functional._nodes_by_depth, reverse=True):
        for node in functional._nodes_by_depth[depth]:
            if node.is_input:
                continue
            layer = node.operation
            inputs = tuple(numbers[id(tensor)] for tensor in node.input_tensors)
            inner = _functional(layer) if hasattr(layer, "layers") else None
            if inner is not None and len(inner.inputs) == len(inputs):
                outputs = _walk(inner, inputs, f"{prefix}{layer.name}/", graph)
            else:
                outputs = tuple(graph.add_tensor(tensor) for tensor in node.output_tensors)
                known = _is_of_keras(type(layer)) and getattr(layer, "data_format", None) != "channels_first"
                kind = type(layer).__name__ if known else ""
                graph.calls.append(Call(prefix + layer.name, layer, kind, inputs, outputs))
            numbers.update({id(tensor): number for tensor, number in zip(node.output_tensors, outputs, strict=True)})
    return tuple(numbers[id(tensor)] for tensor in functional.outputs)


def _is_of_keras(thing: Any) -> bool:
    return str(getattr(thing, "__module__", "")).split(".")[0] == "keras"
