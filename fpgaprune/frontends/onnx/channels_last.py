"""Writes the operators of QONNX that have their channels last as ONNX's own between transposes.

Source: qonnx 1.0, `custom_op/channels_last/base_wrapped_op.py`.
"""

from __future__ import annotations

from typing import Any

_DOMAIN = "qonnx.custom_op.channels_last"
_OPERATORS = ("Conv", "MaxPool", "BatchNormalization")


def with_channels_first(model: Any) -> Any:
    """`model`, changed so that its convolutions, poolings and normalisations are those of ONNX.

    Raises:
        ValueError: the number of axes of such an operator is not known.
    """
    if not any(_is_channels_last(node) for node in model.graph.node):
        return model
    from onnx import helper

    ranks = _ranks(model.graph)
    nodes: list[Any] = []
    for at, node in enumerate(model.graph.node):
        if not _is_channels_last(node):
            nodes.append(node)
            continue
        rank = _rank(node, ranks)
        first, last = [0, rank - 1, *range(1, rank - 1)], [0, *range(2, rank), 1]
        name = f"channels_last_{at}"
        moved = 2 if node.op_type == "Conv" else 1
        given = [f"{name}_{place}" if place < moved else one for place, one in enumerate(node.input)]
        for place, one in enumerate(node.input[:moved]):
            nodes.append(helper.make_node("Transpose", [one], [given[place]], name=given[place], perm=first))
        own = type(node).FromString(node.SerializeToString())
        own.domain = ""
        own.input[:], own.output[:] = given, [f"{name}_out"]
        nodes += [own, helper.make_node("Transpose", own.output, node.output[:1], name=own.output[0], perm=last)]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    return model


def _is_channels_last(node: Any) -> bool:
    return node.domain == _DOMAIN and node.op_type in _OPERATORS


def _ranks(graph: Any) -> dict[str, int]:
    """Number of axes of the inputs and of the constants."""
    found = {tensor.name: len(tensor.dims) for tensor in graph.initializer}
    return found | {
        value.name: len(value.type.tensor_type.shape.dim) for value in (*graph.input, *graph.output, *graph.value_info)
    }


def _rank(node: Any, ranks: dict[str, int]) -> int:
    """Number of axes of what `node` reads; its windows have two axes less."""
    for entry in node.attribute:
        if entry.name in ("kernel_shape", "strides", "dilations") and entry.ints:
            return len(entry.ints) + 2
    found = [ranks[name] for name in (*node.input[:1], *node.output[:1]) if ranks.get(name, 0) >= 2]
    if not found:
        raise ValueError(f"its {node.op_type} {node.name!r} reads a tensor of unknown shape; run shape inference on it")
    return found[0]
