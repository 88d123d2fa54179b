"""The same file for the same model, whatever the process exported before."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

import numpy as np

# tf2onnx numbers names through its whole life, and some twice.
_NUMBER = re.compile(r"__\d+")


def plain_zeros(graph: Any) -> None:
    """No initialiser holds -0.0, which a BatchNorm with a negative scale makes of a locked zero."""
    from onnx import TensorProto, numpy_helper

    for tensor in graph.initializer:
        if tensor.data_type == TensorProto.FLOAT:
            array = numpy_helper.to_array(tensor)
            if (np.signbit(array) & (array == 0)).any():
                tensor.CopyFrom(numpy_helper.from_array(array + np.float32(0), tensor.name))


def settle_names(graph: Any, kept: Collection[str]) -> None:
    """Names and order follow from the graph alone; the names in `kept`, those of weights, stay.

    Constants are `constant_1`, ... in the order in which they are read, equal ones are one, outputs are `output` or
    `output_1`, ...; other tensors and nodes keep what is not a number that tf2onnx counted.
    """
    inputs = {value.name for value in graph.input}
    renamed = {name: name for name in (*inputs, *kept)}
    taken = set(renamed)
    several = len(graph.output) > 1
    for number, value in enumerate(graph.output, start=1):
        _settle(renamed, taken, value.name, f"output_{number}" if several else "output")
    constants = {tensor.name: tensor for tensor in graph.initializer if tensor.name not in kept}
    known: dict[tuple[int, tuple[int, ...], bytes], str] = {}
    nodes: set[str] = set()
    for node in graph.node:
        for name in node.input:
            if name in constants and name not in renamed:
                content = _content(constants[name])
                if content not in known:
                    known[content] = f"constant_{len(known) + 1}"
                    _settle(renamed, taken, name, known[content])
                renamed[name] = known[content]
        for name in node.output:
            _settle(renamed, taken, name, _NUMBER.sub("", name))
        node.input[:] = [renamed.get(name, name) for name in node.input]
        node.output[:] = [renamed[name] for name in node.output]
        node.name = _free(nodes, _NUMBER.sub("", node.name))
    found = {}
    for tensor in graph.initializer:
        tensor.name = renamed.get(tensor.name, tensor.name)
        found[tensor.name] = type(tensor).FromString(tensor.SerializeToString())
    del graph.initializer[:]
    graph.initializer.extend(found[name] for name in sorted(found))
    for value in (*graph.output, *graph.value_info):
        value.name = renamed.get(value.name, value.name)
    graph.value_info.sort(key=lambda value: value.name)
    for value in (*graph.input, *graph.output, *graph.value_info):
        for axis in value.type.tensor_type.shape.dim:
            if axis.dim_param:
                axis.dim_param = "batch"
    graph.name, graph.doc_string = "fpgaprune", ""


def _settle(renamed: dict[str, str], taken: set[str], name: str, wanted: str) -> None:
    if name not in renamed:
        renamed[name] = _free(taken, wanted) if name else name


def _free(taken: set[str], wanted: str) -> str:
    name = next(n for n in (wanted, *(f"{wanted}_{i}" for i in range(2, len(taken) + 3))) if n not in taken)
    taken.add(name)
    return name


def _content(tensor: Any) -> tuple[int, tuple[int, ...], bytes]:
    from onnx import numpy_helper

    return tensor.data_type, tuple(tensor.dims), numpy_helper.to_array(tensor).tobytes()
