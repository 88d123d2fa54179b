"""Applies rules that turn tf2onnx's graph into the plain graph of the model; each rule keeps every number.

A rule changes one place and returns whether it found one. The rules run until none finds a place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from fpgaprune.design import FUNCTIONS
from fpgaprune.files import Graph, attributes, set_attribute

if TYPE_CHECKING:
    import onnx

_ELEMENTWISE = frozenset({"Clip", "Neg", "Abs"} | {function.onnx for function in FUNCTIONS.values() if function.onnx})
_ARITHMETIC = frozenset({"Add", "Sub", "Mul", "Div", "Max", "Min"})
_WINDOWS = frozenset({"Conv", "MaxPool", "AveragePool"})
# These attributes of a window have one number for each axis; its padding has two.
_PER_AXIS = ("kernel_shape", "strides", "dilations")


def drop_dummy_axis(graph: Graph) -> bool:
    """Remove one axis of size 1, from the `Unsqueeze` that makes it to every `Squeeze` that ends it.

    Kernels of height 1 lose that axis. Each output is computed from the same numbers; exact over the reals. If some
    other node reads a tensor with the axis, the axis stays.
    """
    for node in graph.proto.node:
        region = _region(graph, node) if node.op_type == "Unsqueeze" else None
        if region is not None:
            _collapse(graph, node, *region)
            return True
    return False


def _region(graph: Graph, start: Any) -> tuple[dict[str, int], list[Any], list[Any]] | None:
    """Return the place, by tensor, of the axis that `start` makes, the nodes in between and those that end the axis."""
    axis, shape = _one_axis(graph, start), graph.shape(start.output[0])
    if axis is None or shape is None:
        return None
    places = {start.output[0]: axis % len(shape)}
    inner: list[Any] = []
    ends: list[Any] = []
    waiting = [start.output[0]]
    while waiting:
        tensor = waiting.pop()
        if tensor in graph.outputs:
            return None
        for node in graph.readers(tensor):
            if any(node is known for known in (*inner, *ends)):
                continue
            if _ends(graph, node, places[tensor]):
                ends.append(node)
                continue
            place = _passes(graph, node, tensor, places[tensor])
            if place is None:
                return None
            inner.append(node)
            places[node.output[0]] = place
            waiting.append(node.output[0])
    return (places, inner, ends) if ends else None


def _one_axis(graph: Graph, node: onnx.NodeProto) -> int | None:
    axes = graph.constant(node.input[1]) if len(node.input) > 1 else None
    return int(axes.ravel()[0]) if axes is not None and axes.size == 1 else None


def _ends(graph: Graph, node: onnx.NodeProto, place: int) -> bool:
    axis, shape = _one_axis(graph, node) if node.op_type == "Squeeze" else None, graph.shape(node.input[0])
    return axis is not None and shape is not None and axis % len(shape) == place


def _passes(graph: Graph, node: onnx.NodeProto, tensor: str, place: int) -> int | None:
    """Return the place of the axis after `node`; None if `node` does not keep the axis."""
    others = [name for name in node.input if name != tensor]
    if node.op_type in _ELEMENTWISE:
        return place
    if node.op_type == "Transpose":
        return list(attributes(node)["perm"]).index(place)
    if node.op_type in _ARITHMETIC and len(others) == 1:
        constant, shape = graph.constant(others[0]), graph.shape(tensor)
        if constant is None or shape is None:
            return None
        return place if constant.size == 1 or (constant.ndim == len(shape) and constant.shape[place] == 1) else None
    if node.op_type in _WINDOWS and place == 2 and node.input[0] == tensor:
        found = attributes(node)
        pads = list(found.get("pads", (0, 0, 0, 0)))
        kernel = graph.constant(node.input[1]) if node.op_type == "Conv" else None
        window = list(found.get("kernel_shape", ()))
        is_flat = len(window) == 2 and window[0] == 1 and pads[0] == pads[2] == 0
        return place if is_flat and (node.op_type != "Conv" or kernel is not None) else None
    return None


def _collapse(graph: Graph, start: object, places: dict[str, int], inner: list[Any], ends: list[Any]) -> None:
    for node in inner:
        place = next(places[name] for name in node.input if name in places)
        if node.op_type == "Transpose":
            kept = [axis for axis in attributes(node)["perm"] if axis != place]
            set_attribute(node, "perm", [int(np.sum(np.array(kept) < axis)) for axis in kept])
        elif node.op_type in _WINDOWS:
            _flatten_window(graph, node)
        elif node.op_type in _ARITHMETIC:
            for number, name in enumerate(node.input):
                constant = graph.constant(name)
                if constant is not None and constant.size > 1:
                    node.input[number] = graph.add_constant(f"{name}_flat", np.squeeze(constant, place))
                elif constant is not None:
                    node.input[number] = graph.add_constant(f"{name}_flat", constant.reshape(()))
    for node in (start, *ends):
        graph.drop(node)


def _flatten_window(graph: Graph, node: onnx.NodeProto) -> None:
    found = attributes(node)
    for name in _PER_AXIS:
        if name in found:
            set_attribute(node, name, list(found[name])[1:])
    if "pads" in found:
        set_attribute(node, "pads", [found["pads"][1], found["pads"][3]])
    if node.op_type == "Conv":
        kernel = graph.constant(node.input[1])
        if kernel is not None:
            node.input[1] = graph.add_constant(f"{node.input[1]}_flat", np.squeeze(kernel, 2))


def join_bias(graph: Graph) -> bool:
    """Make the constant that the only reader of a `Conv` adds to each channel the bias of the `Conv`; exact."""
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


def multiply_last_axis(graph: Graph) -> bool:
    """Replace `Reshape`, `MatMul`, `Reshape` by the `MatMul` where they only merge and split the leading axes.

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


RULES: tuple[Callable[[Graph], bool], ...] = (drop_dummy_axis, join_bias, multiply_last_axis)


def rewrite(exported: onnx.ModelProto) -> onnx.ModelProto:
    """Apply all rules to `exported`; return it with the shapes of its tensors as far as they can be inferred."""
    exported = _with_shapes(exported)
    while any(rule(Graph(exported.graph)) for rule in RULES):
        exported = _with_shapes(exported)
    return exported


def _with_shapes(exported: onnx.ModelProto) -> onnx.ModelProto:
    import onnx

    del exported.graph.value_info[:]
    return onnx.shape_inference.infer_shapes(exported, check_type=True, strict_mode=True, data_prop=True)
