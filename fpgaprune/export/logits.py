"""Gives an ONNX file the inputs of its final softmax or sigmoid as outputs, because these hide what they saturate."""

from __future__ import annotations

import os

import onnx

_SQUASHING = ("Softmax", "Sigmoid")
# Nodes that hand on what they read, at most in another type.
_HANDING_ON = ("Identity", "Cast")


def with_logits(path: str | os.PathLike[str]) -> tuple[bytes, tuple[bool, ...]]:
    """The content of the ONNX file at `path` with logits as outputs, and for each output whether it is one of these.

    An output that no softmax or sigmoid makes stays.
    """
    model = onnx.load(os.fspath(path))
    makers = {name: node for node in model.graph.node for name in node.output}
    changed = []
    for output in model.graph.output:
        node = makers.get(output.name)
        while node is not None and node.op_type in _HANDING_ON:
            node = makers.get(node.input[0])
        changed.append(node is not None and node.op_type in _SQUASHING)
        if node is not None and changed[-1]:
            # The type stays; onnxruntime finds the shape.
            output.name = node.input[0]
            output.type.tensor_type.ClearField("shape")
    return model.SerializeToString(), tuple(changed)
