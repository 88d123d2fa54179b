"""Joins a bias that is added after a convolution to the convolution."""

from __future__ import annotations

from fpgaprune.files import Graph


def join_bias(graph: Graph) -> bool:
    """Makes the constant that the only reader of a `Conv` adds to each channel the bias of the `Conv`; exact."""
    for node in graph.proto.node:
        if node.op_type != "Conv" or len(node.input) != 2:
            continue
        reader = graph.only_reader(node.output[0])
        if reader is None or reader.op_type != "Add":
            continue
        other = next((name for name in reader.input if name != node.output[0]), "")
        constant, kernel = graph.constant(other), graph.shape(node.input[1])
        shape = graph.shape(node.output[0])
        if constant is None or kernel is None or shape is None:
            continue
        if constant.shape not in ((kernel[0], *[1] * (len(shape) - 2)), (1, kernel[0], *[1] * (len(shape) - 2))):
            continue
        node.input.append(graph.add_constant(f"{other}_bias", constant.reshape(-1)))
        # The addition now returns its input unchanged.
        reader.input[:] = [node.output[0]]
        graph.drop(reader)
        return True
    return False
