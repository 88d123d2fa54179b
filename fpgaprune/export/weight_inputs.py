"""Computes what a graph derives from its weights, which are inputs of the graph.

An exporter cannot look at the values of inputs, so it treats a kernel of zeros like any other kernel.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fpgaprune.export.tags import Tags, can_be_tagged
from fpgaprune.files import IR_VERSION, bodies
from fpgaprune.values import Array

if TYPE_CHECKING:
    import onnx

# No weight path begins with this.
_COMPUTED = "computed: "


@dataclass(frozen=True)
class Constants:
    """The tensors that a graph computes from its weights alone.

    Attributes:
        tags: tags of the weights, by path, and of arrays that were computed from them.
        arrays: name of each tensor that the rest of the graph reads, to its tags.
        sources: name of each computed array in `tags` to the paths of the weights that it was computed from.
    """

    tags: Tags
    arrays: dict[str, Array]
    sources: dict[str, frozenset[str]]


def find_constants(exported: onnx.ModelProto, weights: Mapping[str, tuple[str, Array]]) -> Constants:
    """Return everything that `exported` computes from weights alone, with tags in place of numbers.

    A constant that holds unchanged elements of weights has their tags. Other constants, such as the scale of a
    BatchNorm, are computed from the true values, exactly as the graph says, and have tags of their own.

    Args:
        exported: an ONNX model in which weights are inputs.
        weights: name of the input to the weight's path and its values.
    """
    graph = exported.graph
    tags = Tags()
    tagged = {
        name: tags.add(path, values) if can_be_tagged(values) else values for name, (path, values) in weights.items()
    }
    fixed = {tensor.name for tensor in graph.initializer}
    derived = {name: frozenset({path}) for name, (path, _) in weights.items()}
    computing, fixing = [], []
    for node in graph.node:
        names = {name for name in node.input if name}
        if any(bodies(node)) or not names <= fixed | derived.keys() or node.op_type.startswith("Random"):
            continue
        if names & derived.keys():
            computing.append(node)
            derived |= dict.fromkeys(node.output, frozenset().union(*(derived.get(name, ()) for name in names)))
        else:
            fixing.append(node)
            fixed |= set(node.output)
    inner = {id(node) for node in computing}
    others = [node for node in graph.node if id(node) not in inner]
    read = _read_by(others) | {value.name for value in graph.output}
    wanted = [name for name in (*weights, *(name for node in computing for name in node.output)) if name in read]
    true = _computed(exported, [*fixing, *computing], {name: values for name, (_, values) in weights.items()}, wanted)
    moved = _computed(exported, [*fixing, *computing], tagged, wanted)
    arrays, sources = {}, {}
    for name in wanted:
        arrays[name] = true[name]
        if not can_be_tagged(true[name]):
            continue
        # Adding a small number to a tag does not change the tag, so the true values must agree too.
        if tags.knows(moved[name]) and tags.values(moved[name]).tobytes() == true[name].tobytes():
            arrays[name] = moved[name]
        else:
            arrays[name] = tags.add(f"{_COMPUTED}{name}", true[name])
            sources[f"{_COMPUTED}{name}"] = derived[name]
    return Constants(tags, arrays, sources)


def _computed(
    exported: onnx.ModelProto, nodes: list[Any], given: Mapping[str, Array], wanted: list[str]
) -> dict[str, Array]:
    """Return the tensors `wanted`, as `nodes` compute them from `given`."""
    import onnx
    import onnxruntime

    found = {name: given[name] for name in wanted if name in given}
    outputs = [name for name in wanted if name not in given]
    if not outputs:
        return found
    helper, read = onnx.helper, _read_by(nodes)
    part = helper.make_graph(
        nodes,
        "weights",
        [value for value in exported.graph.input if value.name in given and value.name in read],
        [helper.make_empty_tensor_value_info(name) for name in outputs],
        [tensor for tensor in exported.graph.initializer if tensor.name in read],
    )
    model = helper.make_model(part, opset_imports=exported.opset_import, ir_version=IR_VERSION)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    results = session.run(outputs, {value.name: given[value.name] for value in part.input})
    return found | dict(zip(outputs, results, strict=True))


def _read_by(nodes: Iterable[Any]) -> set[str]:
    """Return the names of the tensors that `nodes`, and the graphs inside them, read."""
    read: set[str] = set()
    for node in nodes:
        read |= set(node.input)
        for body in bodies(node):
            read |= _read_by(body.node) | {value.name for value in body.output}
    return read
