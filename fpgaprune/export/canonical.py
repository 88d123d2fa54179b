"""Makes the ONNX file of a model the same in every process: its nodes are sorted by the graph alone."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from fpgaprune.files import bodies, replace_entries

if TYPE_CHECKING:
    import onnx

# tf2onnx's count of names continues from one export to the next, and TensorFlow's count of a loop's functions too.
_NUMBER = re.compile(r"__\d+|(?<=_cond)_\d+|(?<=_body)_\d+")


def plain_zeros(graph: onnx.GraphProto) -> None:
    """Replace -0.0 by 0.0 in all initialisers; a BatchNorm with a negative scale makes -0.0 of a locked zero."""
    from onnx import TensorProto, numpy_helper

    for tensor in graph.initializer:
        if tensor.data_type == TensorProto.FLOAT:
            array = numpy_helper.to_array(tensor)
            if (np.signbit(array) & (array == 0)).any():
                tensor.CopyFrom(numpy_helper.from_array(array + np.float32(0), tensor.name))


def settle(exported: onnx.ModelProto, kept: Collection[str]) -> None:
    """Make order and names in the model `exported` depend on its graph alone; the weights' names in `kept` stay.

    Constants are named `constant_1`, ... in the order in which they are read, and equal constants are merged. Outputs
    are named `output` or `output_1`, .... Other tensors and nodes lose the numbers that a library counted and keep the
    rest of their names. Names inside a loop begin with the loop's name.
    """
    settle_order(exported.graph)
    _settle_names(exported.graph, kept)
    domains = sorted((entry.domain, entry.version) for entry in exported.opset_import)
    del exported.opset_import[:]
    for domain, number in domains:
        exported.opset_import.add(domain=domain, version=number)


def _settle_names(graph: onnx.GraphProto, kept: Collection[str]) -> None:
    inputs = {value.name for value in graph.input}
    renamed = {name: name for name in (*inputs, *kept)}
    taken = set(renamed)
    several = len(graph.output) > 1
    for number, value in enumerate(graph.output, start=1):
        _settle(renamed, taken, value.name, f"output_{number}" if several else "output")
    constants = {tensor.name: tensor for tensor in graph.initializer if tensor.name not in kept}
    known: dict[tuple[int, tuple[int, ...], bytes], str] = {}
    nodes: set[str] = set()
    for node in graph.node:
        for name in tensors_read(node):
            if name in constants and name not in renamed:
                content = _content(constants[name])
                if content not in known:
                    known[content] = f"constant_{len(known) + 1}"
                    _settle(renamed, taken, name, known[content])
                renamed[name] = known[content]
        for name in node.output:
            _settle(renamed, taken, name, _NUMBER.sub("", name))
        node.input[:] = [renamed.get(name, name) for name in node.input]
        node.output[:] = [renamed[name] for name in node.output]
        node.name = _free(nodes, _NUMBER.sub("", node.name))
        for body in bodies(node):
            _settle_body(body, renamed, taken, node.name)
    found = {}
    for tensor in graph.initializer:
        if tensor.name in renamed:
            tensor.name = renamed[tensor.name]
            found[tensor.name] = tensor
    replace_entries(graph.initializer, (found[name] for name in sorted(found)))
    for value in graph.output:
        value.name = renamed[value.name]
    values = {renamed[value.name]: value for value in graph.value_info if value.name in renamed}
    for name, value in values.items():
        value.name = name
    replace_entries(graph.value_info, (values[name] for name in sorted(values)))
    for value in (*graph.input, *graph.output, *graph.value_info):
        for axis in value.type.tensor_type.shape.dim:
            if axis.dim_param:
                axis.dim_param = "batch"
    graph.name, graph.doc_string = "fpgaprune", ""


def _settle_body(body: Any, outer: Mapping[str, str], taken: set[str], loop: str) -> None:
    """Name everything in the graph inside node `loop` after the node; `outer` are the new names outside."""
    renamed = dict(outer)
    for number, value in enumerate(body.input, start=1):
        renamed[value.name] = value.name = _free(taken, f"{loop}/input_{number}")
    constants = {tensor.name: tensor for tensor in body.initializer}
    read = (name for node in body.node for name in tensors_read(node))
    order = [name for name in dict.fromkeys((*read, *(value.name for value in body.output))) if name in constants]
    for name in order:
        renamed[name] = constants[name].name = _free(taken, f"{loop}/constant")
    replace_entries(body.initializer, (constants[name] for name in order))
    nodes: set[str] = set()
    for node in body.node:
        node.input[:] = [renamed.get(name, name) for name in node.input]
        for number, name in enumerate(node.output):
            if name:
                renamed[name] = node.output[number] = _free(taken, f"{loop}/{node.op_type}")
        node.name, node.doc_string = _free(nodes, f"{loop}/{node.op_type}"), ""
        for inner in bodies(node):
            _settle_body(inner, renamed, taken, node.name)
    for value in body.output:
        value.name = renamed.get(value.name, value.name)
    for value in (*body.input, *body.output):
        for axis in value.type.tensor_type.shape.dim:
            if axis.dim_param:
                axis.Clear()
    # Readers infer the shapes inside again; some of them are stored under names with a counted number.
    del body.value_info[:]
    body.name, body.doc_string = f"{loop}/body", ""


def _settle(renamed: dict[str, str], taken: set[str], name: str, wanted: str) -> None:
    if name not in renamed:
        renamed[name] = _free(taken, wanted) if name else name


def _free(taken: set[str], wanted: str) -> str:
    name = next(n for n in (wanted, *(f"{wanted}_{i}" for i in range(2, len(taken) + 3))) if n not in taken)
    taken.add(name)
    return name


def _content(tensor: onnx.TensorProto) -> tuple[int, tuple[int, ...], bytes]:
    from onnx import numpy_helper

    return tensor.data_type, tuple(tensor.dims), numpy_helper.to_array(tensor).tobytes()


def settle_order(graph: onnx.GraphProto) -> None:
    """Sort nodes by the order in which the outputs, one after another, need them, and attributes by name.

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


def tensors_read(node: onnx.NodeProto) -> Iterator[str]:
    """Yield the tensors that `node` and the graphs inside it read, in order, those of the inner graphs included."""
    yield from (name for name in node.input if name)
    for body in bodies(node):
        for inner in body.node:
            yield from tensors_read(inner)
        yield from (value.name for value in body.output)


def _need(graph: onnx.GraphProto, makers: dict[str, int], tensor: str, order: dict[int, None]) -> None:
    """Append to `order` the node that makes `tensor`, after all the nodes that it needs."""
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
