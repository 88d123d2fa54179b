"""Lists the calls of a Keras functional or Sequential model in execution order.

No other module reads the private graph attributes of Keras. Keras itself is loaded only when a model is given.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fpgaprune.errors import RemovalError
from fpgaprune.network.functions import is_of_keras
from fpgaprune.values import Array

if TYPE_CHECKING:
    import keras


@dataclass(frozen=True)
class Call:
    """One call of an operation (mostly a layer) in a graph.

    Attributes:
        key: unique in the model: the path, with `#1` for the operation's second call, `#2` for its third.
        path: names of the enclosing models and of the operation, as in weight paths: `encoder/conv2`.
        operation: the Keras layer or operation.
        args: its positional arguments, with symbolic tensors in them.
        kwargs: its keyword arguments, with symbolic tensors in them.
        inputs: all symbolic tensors in its arguments.
        outputs: all symbolic tensors that it returns.
    """

    key: str
    path: str
    operation: Any
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    inputs: tuple[Any, ...]
    outputs: tuple[Any, ...]


def is_keras_model(model: keras.Model) -> bool:
    """Return whether `model` is Keras's, and not only layers with named arrays, which compute nothing."""
    return any(is_of_keras(kind) for kind in type(model).__mro__)


def is_model(operation: keras.Operation) -> bool:
    """Return whether `operation` is a model whose graph says everything that it computes."""
    if not is_keras_model(operation):
        return False
    import keras
    from keras.src.models.functional import Functional

    known = next((kind for kind in (keras.Sequential, Functional) if isinstance(operation, kind)), None)
    own = type(operation)
    return known is not None and own.call is known.call and own.__call__ is known.__call__


def graph_of(model: keras.Model) -> Any:
    """Return the functional graph of `model`.

    Raises:
        RemovalError: it is neither functional nor Sequential, overrides `call`, or is not built.
    """
    if not is_model(model):
        raise RemovalError(
            f"model {getattr(model, 'name', model)!r} is a {type(model).__name__}; wanted a functional or Sequential "
            "keras model, whose graph can be read: with x = keras.Input(shape), keras.Model(x, model.call(x)) is one, "
            "of the same layers and weights"
        )
    if hasattr(model, "_nodes_by_depth"):
        return model
    if getattr(model, "_functional", None) is None:
        raise RemovalError(f"Sequential model {model.name!r} has no input shape yet; give it a keras.Input or build it")
    return model._functional


def nested_graph(call: Call) -> Any:
    """Return the graph of the model that `call` calls; None for a layer, or a model with other inputs than its own."""
    graph = graph_of(call.operation) if is_model(call.operation) else None
    return graph if graph is not None and len(graph.inputs) == len(call.inputs) else None


def calls_of(graph: Any, key_prefix: str = "", path_prefix: str = "") -> list[Call]:
    """Return every call of `graph` except its inputs, producers before consumers; a model inside it is one call."""
    calls = []
    seen: Counter[int] = Counter()
    for depth in sorted(graph._nodes_by_depth, reverse=True):
        for node in graph._nodes_by_depth[depth]:
            if node.is_input:
                continue
            operation = node.operation
            number = seen[id(operation)]
            seen[id(operation)] += 1
            name = operation.name if number == 0 else f"{operation.name}#{number}"
            calls.append(
                Call(
                    key=key_prefix + name,
                    path=path_prefix + operation.name,
                    operation=operation,
                    args=tuple(node.arguments.args),
                    kwargs=dict(node.arguments.kwargs),
                    inputs=tuple(node.input_tensors),
                    outputs=tuple(node.output_tensors),
                )
            )
    return calls


def count_uses(calls: Iterable[Call]) -> Counter[int]:
    """Return how often each operation is called, by `id(operation)`."""
    return Counter(id(call.operation) for call in calls)


def readers_of(graph: object) -> dict[int, list[Any]]:
    """Map `id(operation)` to the operations that read its tensors, one for each tensor read."""
    readers: dict[int, list[Any]] = {}
    for call in calls_of(graph):
        for tensor in call.inputs:
            readers.setdefault(id(producer(tensor)), []).append(call.operation)
    return readers


def producer(tensor: keras.KerasTensor) -> Any:
    """Return the operation that makes `tensor`; for an input of a graph, its InputLayer."""
    return tensor._keras_history.operation


def structures(graph: Any) -> tuple[Any, Any]:
    """Return the inputs and the outputs of `graph`, nested as they were passed to the model."""
    return graph._inputs_struct, graph._outputs_struct


def signature_of(model: keras.Model) -> Any:
    """Return the inputs of `model`, nested as it takes them, as TensorFlow's own description of each.

    Raises:
        RemovalError: the model was never called, so that their shapes are not known.
    """
    import keras
    import tensorflow as tf

    graph = getattr(model, "_functional", None) or model
    if hasattr(graph, "_inputs_struct"):
        return keras.tree.map_structure(lambda tensor: tf.TensorSpec(tensor.shape, tensor.dtype), graph._inputs_struct)
    shapes = list((getattr(model, "_build_shapes_dict", None) or {}).values())
    if len(shapes) != 1:
        raise RemovalError(f"the input shapes of model {model.name!r} are not known; call it on samples first")
    return keras.tree.map_shape_structure(lambda shape: tf.TensorSpec((None, *shape[1:]), model.input_dtype), shapes[0])


def unconnected(operation: object) -> Any:
    """Return a copy of an operation that is in no graph, because calling the operation itself would change its graph.

    It shares everything with `operation`, weights too. `copy.copy` would save and load it, and fail at a layer of a
    user's own.
    """
    twin = object.__new__(type(operation))
    vars(twin).update(vars(operation))
    vars(twin).update(_inbound_nodes=[], _outbound_nodes=[])
    return twin


def value_of(variable: keras.Variable, dtype: Any = None) -> Array:
    """Return the value of a variable or tensor as a NumPy array, in its own dtype or in `dtype`."""
    return np.asarray(variable, dtype=dtype)
