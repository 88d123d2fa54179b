"""Nodes in an order that follows from the graph alone, whatever order they were made in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fpgaprune.onnx_graph import bodies


def settle_order(graph: Any) -> None:
    """Nodes stand in the order in which the outputs, one after another, need them; attributes are sorted by name.

    tf2onnx keeps the readers of a tensor in sets of text. Their order differs from process to process, and with it the
    order of branches. Nodes that no output needs are gone.
    """
    for node in graph.node:
        for body in bodies(node):
            settle_order(body)
        _copied(node.attribute, sorted(node.attribute, key=lambda entry: entry.name))
    makers = {tensor: number for number, node in enumerate(graph.node) for tensor in node.output if tensor}
    order: dict[int, None] = {}
    for value in graph.output:
        _need(graph, makers, value.name, order)
    _copied(graph.node, [graph.node[number] for number in order])


def tensors_read(node: Any) -> Iterator[str]:
    """What `node` and the graphs inside it read, in order; tensors of those graphs are among these."""
    yield from (name for name in node.input if name)
    for body in bodies(node):
        for inner in body.node:
            yield from tensors_read(inner)
        yield from (value.name for value in body.output)


def _need(graph: Any, makers: dict[str, int], tensor: str, order: dict[int, None]) -> None:
    """`order` holds the node that makes `tensor`, after all that it needs."""
    if tensor not in makers:
        return
    # Not by recursion: a deep network is a long chain.
    waiting = [(makers[tensor], tensors_read(graph.node[makers[tensor]]))]
    while waiting:
        number, reads = waiting[-1]
        missing = next((makers[name] for name in reads if name in makers and makers[name] not in order), None)
        if missing is None:
            order[number] = None
            waiting.pop()
        elif missing not in order:
            waiting.append((missing, tensors_read(graph.node[missing])))


def _copied(field: Any, entries: list[Any]) -> None:
    """The repeated `field` holds `entries`; these may be its own entries in another order."""
    kept = [type(entry).FromString(entry.SerializeToString()) for entry in entries]
    del field[:]
    field.extend(kept)
