"""Removes the reshapes around a Dense layer on several axes, because it multiplies the last axis only."""

from __future__ import annotations

from fpgaprune.files import Graph


def multiply_last_axis(graph: Graph) -> bool:
    """Replaces `Reshape`, `MatMul`, `Reshape` by the `MatMul` where they only merge and split the leading axes.

    ONNX's MatMul, like numpy.matmul, multiplies the last axis whatever axes come before it.
    """
    for node in graph.proto.node:
        before = graph.producers.get(node.input[0]) if node.op_type == "MatMul" else None
        if before is None or before.op_type != "Reshape" or graph.constant(node.input[1]) is None:
            continue
        after = graph.only_reader(node.output[0])
        if after is None or after.op_type != "Reshape" or graph.only_reader(before.output[0]) is None:
            continue
        whole, merged, product, parted = (
            graph.shape(name) for name in (before.input[0], before.output[0], node.output[0], after.output[0])
        )
        if whole is None or merged is None or product is None or parted is None:
            continue
        if len(merged) == 2 and merged[-1] == whole[-1] and parted == (*whole[:-1], product[-1]):
            graph.drop(before)
            graph.drop(after)
            return True
    return False
