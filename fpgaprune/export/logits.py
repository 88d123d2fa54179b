"""Leaves the final softmax or sigmoid out of an ONNX file, because these hide what they saturate."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import onnx

from fpgaprune.files import Graph

_SQUASHING = ("Softmax", "Sigmoid")
# Nodes that hand on every number that they read, at most in another type.
_HANDING_ON = ("Cast", "Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze")


def with_logits(path: str | os.PathLike[str], chosen: Sequence[bool]) -> tuple[bytes, tuple[bool, ...]]:
    """The content of the ONNX file at `path` with logits as `chosen` outputs, and for each output whether it is one.

    An output that no softmax or sigmoid makes, or one that something else reads, stays.
    """
    model = onnx.load(os.fspath(path))
    graph = Graph(model.graph)
    nodes = [
        _squashing(graph, output.name) if one else None for output, one in zip(model.graph.output, chosen, strict=True)
    ]
    for node in filter(None, nodes):
        node.op_type = "Identity"
        del node.attribute[:]
    return model.SerializeToString(), tuple(node is not None for node in nodes)


def _squashing(graph: Graph, output: str) -> Any | None:
    """The softmax or sigmoid that makes `output` and nothing else."""
    node = None if graph.readers(output) else graph.producers.get(output)
    while node is not None and node.op_type in _HANDING_ON:
        source = node.input[0]
        # A shape stays as it is.
        readers = [reader for reader in graph.readers(source) if reader.op_type != "Shape"]
        node = graph.producers.get(source) if readers == [node] and source not in graph.outputs else None
    return node if node is not None and node.op_type in _SQUASHING else None
