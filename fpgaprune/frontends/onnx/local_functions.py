"""Puts the functions that an ONNX file defines for itself in the places where its nodes call them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_MOST_NODES = 100_000
Name = tuple[str, str]


def without_functions(model: Any) -> Any:
    """`model` with every call of a function of its own replaced by the nodes of that function.

    Raises:
        ValueError: a function calls itself, or the calls make too many nodes.
    """
    if not model.functions:
        return model
    import onnx.inliner

    bodies = {(function.domain, function.name): function.node for function in model.functions}
    sizes: dict[Name, int] = {}
    total = sum(_size(_name(node), bodies, sizes, ()) for node in model.graph.node)
    if total > _MOST_NODES:
        raise ValueError(f"its functions make {total:,} nodes; wanted {_MOST_NODES:,} at most")
    return onnx.inliner.inline_local_functions(model)


def _name(node: Any) -> Name:
    return node.domain, node.op_type


def _size(name: Name, bodies: Mapping[Name, Any], sizes: dict[Name, int], around: tuple[Name, ...]) -> int:
    """Number of nodes that a node `name` becomes; `around` are the functions in which it stands."""
    if name not in bodies:
        return 1
    if name in around or len(around) > 100:
        raise ValueError(f"its function {name[1]!r} calls itself")
    if name not in sizes:
        sizes[name] = sum(_size(_name(node), bodies, sizes, (*around, name)) for node in bodies[name])
    return sizes[name]
