"""The calls of a Keras functional or Sequential model, in execution order, as plain records.

The only module that reads Keras' private graph attributes.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
from keras.src.models.functional import Functional
from keras.src.ops.numpy import Concatenate
from numpy.typing import NDArray

from fpgaprune.errors import RemovalError


@dataclass(frozen=True)
class Call:
    """One call of an operation (mostly a layer) in a graph.

    Attributes:
        key: unique in the model: the path, with `#1` for the operation's second call, `#2` for its third.
        path: names of the enclosing models and of the operation, as in weight paths: `encoder/conv2`.
        operation: the Keras layer or operation.
        args, kwargs: its arguments, with symbolic tensors in them.
        inputs, outputs: the symbolic tensors in them, flat.
    """

    key: str
    path: str
    operation: Any
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    inputs: tuple[Any, ...]
    outputs: tuple[Any, ...]


def is_model(operation: Any) -> bool:
    """Whether `operation` is a model whose graph says all that it computes."""
    if isinstance(operation, keras.Sequential):
        return type(operation).call is keras.Sequential.call
    return isinstance(operation, Functional) and type(operation).call is Functional.call


def joins(operation: Any) -> bool:
    """Whether `operation` sets tensors side by side, so that one of them may be missing."""
    return type(operation) in (keras.layers.Concatenate, Concatenate)


def graph_of(model: Any) -> Any:
    """The functional graph of `model`.

    Raises:
        RemovalError: it is neither functional nor Sequential, overrides `call`, or is not built.
    """
    if not is_model(model):
        raise RemovalError(
            f"model {getattr(model, 'name', model)!r} is a {type(model).__name__}; wanted a functional or Sequential "
            "keras model, whose graph can be read: build it with keras.Model(inputs, outputs)"
        )
    if not isinstance(model, keras.Sequential):
        return model
    if getattr(model, "_functional", None) is None:
        raise RemovalError(f"Sequential model {model.name!r} has no input shape yet; give it a keras.Input or build it")
    return model._functional


def calls_of(graph: Any, key_prefix: str = "", path_prefix: str = "") -> list[Call]:
    """Every call of `graph` but its inputs, producers before consumers."""
    calls = []
    seen: dict[int, int] = {}
    for depth in sorted(graph._nodes_by_depth, reverse=True):
        for node in graph._nodes_by_depth[depth]:
            if node.is_input:
                continue
            operation = node.operation
            number = seen.get(id(operation), 0)
            seen[id(operation)] = number + 1
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


def producer(tensor: Any) -> Any:
    """The operation that makes `tensor`; for an input of a graph its InputLayer."""
    return tensor._keras_history.operation


def structures(graph: Any) -> tuple[Any, Any]:
    """The inputs and the outputs of `graph`, nested as its maker nested them."""
    return graph._inputs_struct, graph._outputs_struct


def unconnected(operation: Any) -> Any:
    """A copy of an operation without state that is in no graph; a second call of the operation itself would show."""
    twin = copy.copy(operation)
    object.__setattr__(twin, "_inbound_nodes", [])
    object.__setattr__(twin, "_outbound_nodes", [])
    return twin


def value_of(variable: Any, dtype: Any = None) -> NDArray[Any]:
    """The value of a variable or tensor as NumPy, in its own dtype or in `dtype`."""
    return np.asarray(variable, dtype=dtype)
