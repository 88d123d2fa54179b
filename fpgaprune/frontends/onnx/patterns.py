"""Finds functions that an exporter has spelled out in several nodes: GELU before opset 20, and bounds of tf2onnx."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fpgaprune.values import Array

if TYPE_CHECKING:
    import onnx

_CLOSE = 1e-4


def joined(graph: onnx.GraphProto) -> tuple[Any, ...]:
    """Return the nodes of `graph`, where one node stands for each function that is spelled out; `graph` stays.

    `Gelu` stands for x * (erf(x / sqrt(2)) + 1) / 2, and for x * (1 - erf(-x / sqrt(2))) / 2; `Clip` for a `Min` and a
    `Max` with one number each.
    """
    view = _View(graph)
    nodes = list(graph.node)
    for node in graph.node:
        found = _FOUND_AT[node.op_type](node, view) if node.op_type in _FOUND_AT else None
        if found is not None:
            whole, members = found
            places = {id(member) for member in members}
            last = max(at for at, node in enumerate(nodes) if id(node) in places)
            nodes[last + 1 : last + 1] = [whole]
            nodes = [node for node in nodes if id(node) not in places]
    return tuple(nodes)


class _View:
    """Which node gives and which nodes read each tensor, and the constants of one number."""

    def __init__(self, graph: onnx.GraphProto) -> None:
        self.producers = {name: node for node in graph.node for name in node.output}
        self.readers: dict[str, list[Any]] = {}
        for node in graph.node:
            for name in node.input:
                self.readers.setdefault(name, []).append(node)
        self.outputs = {value.name for value in graph.output}
        self.numbers: Mapping[str, float] = dict(_numbers(graph))

    def only_reader(self, name: str, operator: str) -> Any | None:
        """Return the node `operator` that alone reads `name`."""
        readers = self.readers.get(name, [])
        only = len(readers) == 1 and name not in self.outputs and readers[0].op_type == operator
        return readers[0] if only else None

    def by(self, node: Any | None, operator: str, number: float) -> str | None:
        """Return the tensor that a node `operator` combines with the constant `number`; None for another node."""
        if node is None or node.op_type != operator or len(node.input) != 2:
            return None
        first, second = node.input
        if math.isclose(self.numbers.get(second, math.nan), number, rel_tol=_CLOSE):
            return str(first)
        swapped = operator != "Div" and math.isclose(self.numbers.get(first, math.nan), number, rel_tol=_CLOSE)
        return str(second) if swapped else None


def _numbers(graph: onnx.GraphProto) -> Iterator[tuple[str, float]]:
    from onnx import numpy_helper

    stored: Sequence[tuple[str, Any]] = [(tensor.name, tensor) for tensor in graph.initializer]
    made = [(node.output[0], e.t) for node in graph.node if node.op_type == "Constant" for e in node.attribute]
    for name, tensor in (*stored, *made):
        if math.prod(tensor.dims) == 1 and not tensor.external_data and tensor.data_type == 1:
            values: Array = np.asarray(numpy_helper.to_array(tensor))
            yield name, float(values.ravel()[0])


def _gelu(erf: Any, view: _View) -> tuple[Any, list[Any]] | None:
    """Return the node `Gelu` at `erf`, and the nodes for which it stands."""
    from onnx import helper

    inner: Any = view.producers.get(erf.input[0])
    source = view.by(inner, "Div", math.sqrt(2)) or view.by(inner, "Mul", math.sqrt(0.5))
    if source is None or view.only_reader(erf.input[0], "Erf") is None:
        return None
    plus: Any = view.only_reader(erf.output[0], "Add")
    members = [inner, erf]
    if view.by(plus, "Add", 1.0) is None:
        plus, negated = view.only_reader(erf.output[0], "Sub"), view.producers.get(source)
        less = plus is not None and plus.input[1] == erf.output[0] and view.by(plus, "Sub", 1.0) == erf.output[0]
        if not less or negated is None or negated.op_type != "Neg" or view.only_reader(source, inner.op_type) is None:
            return None
        members.append(negated)
        source = str(negated.input[0])
    times = view.only_reader(plus.output[0], "Mul")
    if times is None:
        return None
    other = next((name for name in times.input if name != plus.output[0]), None)
    members += [plus, times]
    if other == source:
        half = view.only_reader(times.output[0], "Mul")
        if view.by(half, "Mul", 0.5) is None or half is None:
            return None
        members.append(half)
        result = half.output[0]
    else:
        half = view.producers.get(str(other))
        if view.by(half, "Mul", 0.5) != source or half is None or view.only_reader(half.output[0], "Mul") is None:
            return None
        members.append(half)
        result = times.output[0]
    return helper.make_node("Gelu", [source], [result], name=erf.name.replace("Erf", "Gelu")), members


def _clip(first: Any, view: _View) -> tuple[Any, list[Any]] | None:
    """Return the node `Clip` for a bound on one side at `first` and one on the other behind it, and both nodes."""
    from onnx import helper

    bounds = {"Min": "Max", "Max": "Min"}
    second: Any = view.only_reader(first.output[0], bounds[first.op_type])
    found = {}
    for node in (first, second):
        names = [name for name in node.input if name in view.numbers] if node is not None else []
        if node is None or len(node.input) != 2 or len(names) != 1:
            return None
        found[node.op_type] = names[0]
    low, high = view.numbers[found["Max"]], view.numbers[found["Min"]]
    if low > high:
        return None
    source = next(name for name in first.input if name not in view.numbers)
    # Before opset 11 the bounds are attributes.
    clip = helper.make_node(
        "Clip", [source, found["Max"], found["Min"]], second.output[:1], name=second.name, min=low, max=high
    )
    return clip, [first, second]


_FOUND_AT = {"Erf": _gelu, "Min": _clip, "Max": _clip}
