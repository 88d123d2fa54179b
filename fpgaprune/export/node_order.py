"""Sorts nodes into an order that depends on the graph alone, not on the order in which they were made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fpgaprune.files import bodies, replace_entries


def settle_order(graph: Any) -> None:
    """Sorts nodes by the order in which the outputs, one after another, need them, and attributes by name.

    tf2onnx keeps the readers of a tensor in sets of text. The order of a set differs from process to process, and so
    does the order of branches. Nodes that no output needs are removed.
    """
    for node in graph.node:
        for body in bodies(node):
            settle_order(body)
        replace_entries(node.attribute, sorted(node.attribute, key=lambda entry: entry.name))
    makers = {tensor: number for number, node in enumerate(graph.node) for tensor in node.output if tensor}
    order: dict[int, None] = {}
    for value in graph.output:
        _need(graph, makers, value.name, order)
    replace_entries(graph.node, [graph.node[number] for number in order])


def tensors_read(node: Any) -> Iterator[str]:
    """The tensors that `node` and the graphs inside it read, in order; these include tensors of the inner graphs."""
    yield from (name for name in node.input if name)
    for body in bodies(node):
        for inner in body.node:
            yield from tensors_read(inner)
        yield from (value.name for value in body.output)


def _need(graph: Any, makers: dict[str, int], tensor: str, order: dict[int, None]) -> None:
    """Appends to `order` the node that makes `tensor`, after all the nodes that it needs."""
    if tensor not in makers:
        return
    # No recursion, because a deep network is a long chain.
    waiting = [(makers[tensor], tensors_read(graph.node[makers[tensor]]))]
    while waiting:
        number, reads = waiting[-1]
        missing = next((makers[name] for name in reads if name in makers and makers[name] not in order), None)
        if missing is None:
            order[number] = None
            waiting.pop()
        elif missing not in order:
            waiting.append((missing, tensors_read(graph.node[missing])))
