"""`squashing_layers` finds the softmax or sigmoid of each output, which hides what it reads where it saturates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import keras

from fpgaprune.keras_classes import keras_class
from fpgaprune.keras_functions import activation_in
from fpgaprune.network import IDENTITIES, Call, calls_of, graph_of, nested_graph

# Layers behind it that hand on every number that they read.
_HANDING_ON = IDENTITIES | {"Flatten", "Permute", "Reshape"}


def squashing_layers(model: keras.Model) -> tuple[Any | None, ...]:
    """For each output of `model`, the layer whose softmax or sigmoid makes it and nothing else; None if there is none.

    The layer may stand in a model inside `model`, and before layers that only reshape.
    """
    graph = graph_of(model)
    uses = Counter(id(call.operation) for call in _all_calls(graph))
    return tuple(_squashing(graph, tensor, uses) for tensor in graph.outputs)


def squashing_functions(model: keras.Model) -> tuple[str | None, ...]:
    """For each output of `model`, which function the layer of `squashing_layers` applies, as `softmax`."""
    return tuple(None if layer is None else _function(layer) for layer in squashing_layers(model))


def _function(layer: keras.Layer) -> str:
    known = activation_in(layer)
    return known.name if known is not None else f"softmax over {layer.axis}"


def _all_calls(graph: object) -> Iterator[Call]:
    for call in calls_of(graph):
        yield call
        inner = nested_graph(call)
        if inner is not None:
            yield from _all_calls(inner)


def _squashing(graph: Any, tensor: Any, uses: Counter[int]) -> Any | None:
    calls = calls_of(graph)
    makers = {id(made): call for call in calls for made in call.outputs}
    read = Counter(id(given) for call in calls for given in call.inputs) + Counter(map(id, graph.outputs))
    # An output is read once, by whoever calls the model.
    while read[id(tensor)] == 1 and id(tensor) in makers:
        call = makers[id(tensor)]
        layer, inner = call.operation, nested_graph(call)
        if uses[id(layer)] > 1:
            return None
        if inner is not None:
            place = [id(made) for made in call.outputs].index(id(tensor))
            return _squashing(inner, inner.outputs[place], uses)
        if _squashes(layer):
            return layer
        if getattr(keras_class(layer), "__name__", None) not in _HANDING_ON:
            return None
        tensor = call.inputs[0]
    return None


def _squashes(layer: keras.Layer) -> bool:
    known = activation_in(layer)
    return type(layer) is keras.layers.Softmax or (known is not None and known.name in ("softmax", "sigmoid"))
