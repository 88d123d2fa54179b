"""Makes a `Design` from an ONNX file, without any code that reads Keras.

ONNX has no fixed-point types, strategies or reuse factors; these come from another design. Everything else comes from
the file: the layers and their order, their sizes and windows, and every weight.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpgaprune.design import (
    Copy,
    Design,
    LayerSpec,
    Operation,
    Pad,
    Pooling,
    Reshape,
    Softmax,
    as_built,
)
from fpgaprune.errors import HlsError, UnsupportedLayerError
from fpgaprune.fixed import FixedType
from fpgaprune.hls.call_hls4ml import as_problem, needed_options, quiet
from fpgaprune.hls.extract import extract_layers
from fpgaprune.hls.onnx_clean import read_clean
from fpgaprune.hls.onnx_pooling import sizes_channels_last
from fpgaprune.hls.paired_layers import pair_layers, without_idle
from fpgaprune.hls.settings import hls_precision, softmax_types_of, table_settings

# A type in a design has 64 bits at most.
_WIDEST = "fixed<64,32>"


def design_from_onnx(path: str | os.PathLike[str], like: Design) -> Design:
    """The `Design` that hls4ml's ONNX front end makes of the file, with the types and the layout of `like`.

    Layers have the names of their counterparts in `like`. Weights are those of the file, rounded to the types.

    Args:
        path: an ONNX file of `export_onnx`, with a free batch axis or a batch of 1.
        like: a design of the same network, as from `to_hls`; it gives types, strategies, reuse factors, table sizes,
            backend, io type, part and clock.

    Raises:
        UnsupportedLayerError: an operation cannot take this route; the message names it.
        ToolError: qonnx is not installed.
        HlsError: the file cannot be read, qonnx cannot clean it, hls4ml cannot convert it, or `like` has no counterpart
            of a layer and so no types for it.
    """
    file = Path(path)
    with quiet():
        clean = read_clean(file)
    _name_outputs(clean, {node.name: node.name for node in clean.graph.node})
    like = without_idle(like)
    skeleton = _extracted(_converted(clean, file, like, {}), like, {}, {})
    pairs = pair_layers(skeleton, like)
    lone = [layer for layer in skeleton.layers if layer.name not in pairs]
    if lone:
        reads = ", ".join(pairs.get(name, name) for name in lone[0].inputs) or "nothing"
        raise HlsError(
            f"{file.name} has a {lone[0].kind} that reads {reads} and gives {lone[0].output_shape}; the design has no "
            "such layer from which to take its types"
        )
    places = _places(clean, skeleton, {name: like[pairs[name]] for name in pairs})
    _require_known_order(file, places)
    _name_outputs(clean, {node: place.name for node, place in places.items()})
    raws = _quantise(clean, places)
    graph = _converted(clean, file, like, places)
    _settle_types(graph, places)
    types = {place.name: dict(place.like.types) for place in places.values()}
    return _renamed(_extracted(graph, like, raws, types), pairs, like)


@dataclass(frozen=True)
class _Place:
    """The layer that a node of the ONNX graph becomes.

    Attributes:
        name: name of the layer that hls4ml makes of it.
        like: that layer's counterpart.
        bias: name of the node that adds the layer's bias, if another node does.
    """

    name: str
    like: LayerSpec
    bias: str | None = None


def _converted(clean: Any, file: Path, like: Design, places: Mapping[str, _Place]) -> Any:
    import hls4ml

    with (
        as_problem(f"hls4ml cannot convert {file.name} for {like.backend}"),
        quiet(),
        sizes_channels_last(),
        tempfile.TemporaryDirectory() as folder,
    ):
        config = hls4ml.utils.config_from_onnx_model(clean, granularity="name", backend=like.backend)
        # If a type is missing, hls4ml infers one, which must not be wider than the widest here.
        config["Model"]["Precision"]["maximum"] = _WIDEST
        config["Model"]["ReuseFactor"] = like.layers[0].reuse_factor
        for node, place in places.items():
            _configure(config["LayerName"], node, place)
        return hls4ml.converters.convert_from_onnx_model(
            clean,
            hls_config=config,
            output_dir=folder,
            project_name=like.name,
            backend=like.backend,
            io_type=like.io_type,
            part=like.part,
            clock_period=like.clock_ns,
            **needed_options(like.backend),
        )


def _configure(entries: dict[str, Any], node: str, place: _Place) -> None:
    entry = entries[node]
    types = {role: place.like.types[role] for role in place.like.types if role != "index"}
    if place.bias is not None:
        # hls4ml folds a bias into a layer only if the type of the sum is missing; it is set afterwards.
        del types["result"]
    entry["Precision"].update(hls_precision({role: kind for role, kind in types.items() if role != "inp_norm"}))
    if isinstance(place.like.operation, Softmax):
        entry.update(softmax_types_of(types))
    if place.like.strategy is not None:
        entry["Strategy"] = place.like.strategy
    if "ReuseFactor" in entry:
        entry["ReuseFactor"] = place.like.reuse_factor
    entry.update({key: value for key, value in table_settings(place.like.operation).items() if value is not None})


def _places(clean: Any, skeleton: Design, likes: Mapping[str, LayerSpec]) -> dict[str, _Place]:
    """Node or input of the ONNX graph, to the layer that it becomes."""
    made: dict[str, _Place] = {}
    names = {layer.name: layer.operation for layer in skeleton.layers}
    for entry in clean.graph.input:
        if entry.name in names:
            made[entry.name] = _Place(entry.name, likes[entry.name])
    producers = {tensor: node for node in clean.graph.node for tensor in node.output}
    for node in clean.graph.node:
        found = [
            name
            for name, operation in names.items()
            if name == node.name
            or (name.endswith(f"_{node.name}") and (node.op_type == "Pad" or not _added(operation)))
        ]
        if found:
            made[node.name] = _Place(found[0], likes[found[0]])
        elif node.op_type == "Add" and clean.get_initializer(node.input[1]) is not None:
            product = producers[node.input[0]].name
            made[product] = replace(made[product], bias=node.name)
    return made


def _added(operation: Operation) -> bool:
    """Whether hls4ml adds such layers by itself, whose types follow from the layers around them."""
    return isinstance(operation, Pad | Copy) or operation == Reshape(repacks=True)


def _require_known_order(file: Path, places: Mapping[str, _Place]) -> None:
    for place in places.values():
        if place.like.is_depthwise and place.like.strategy == "resource":
            raise UnsupportedLayerError(
                f"layer {place.like.name!r} of {file.name} is a {place.like.kind} with strategy 'resource', whose "
                "weights hls4ml stores in another order when it reads ONNX: choose strategy 'latency'"
            )


def _name_outputs(clean: Any, makers: Mapping[str, str]) -> None:
    """Renames the first output of each node in `makers` to the name given there.

    When hls4ml adds a `Repack` or makes adders, it looks for tensors under the names of its layers.
    """
    names = {node.output[0]: makers[node.name] for node in clean.graph.node if node.name in makers}
    for node in clean.graph.node:
        node.input[:] = [names.get(name, name) for name in node.input]
        node.output[:] = [names.get(name, name) for name in node.output]
    for value in (*clean.graph.value_info, *clean.graph.output):
        value.name = names.get(value.name, value.name)


def _quantise(clean: Any, places: Mapping[str, _Place]) -> dict[str, dict[str, NDArray[np.int64]]]:
    """Rounds the file's weights to their types, and returns their raw integers in Keras's axis order."""
    raws: dict[str, dict[str, NDArray[np.int64]]] = {}
    nodes = {node.name: node for node in clean.graph.node}
    for name, place in places.items():
        node = nodes.get(name)
        if node is None or node.op_type not in ("Conv", "MatMul"):
            continue
        tensors = dict(zip(("weight", "bias"), node.input[1:], strict=False))
        if place.bias is not None:
            tensors["bias"] = nodes[place.bias].input[1]
        raws[place.name] = {}
        for role, tensor in tensors.items():
            kind: FixedType = place.like.types[role]
            raw = kind.to_raw(clean.get_initializer(tensor))
            clean.set_initializer(tensor, kind.to_float(raw).astype(np.float32))
            if role == "weight" and node.op_type == "Conv":
                # Outputs come first in ONNX; those of a depthwise kernel go to the axis of Keras's channels.
                raw = np.moveaxis(raw, 0, place.like.output_axis)
            raws[place.name][role] = np.ascontiguousarray(raw)
    return raws


def _settle_types(graph: Any, places: Mapping[str, _Place]) -> None:
    """Sets the types that were missing for hls4ml's passes, or that the passes changed."""
    for place in places.values():
        node = graph.graph[place.name]
        if place.bias is not None:
            node.get_output_variable().type.precision = _precision(graph, place.like.types["result"])
        if isinstance(place.like.operation, Pooling):
            # The backend Catapult has widened this type, as it has the counterpart's.
            node.get_attr("accum_t").precision = _precision(graph, place.like.types["accum"])


def _precision(graph: Any, kind: FixedType) -> Any:
    return graph.config.backend.convert_precision_string(hls_precision({"result": kind})["result"])


def _extracted(graph: Any, like: Design, raws: Mapping[str, Any], types: dict[str, dict[str, FixedType]]) -> Design:
    layers, outputs = extract_layers(graph, raws, types)
    return as_built(without_idle(replace(like, layers=layers, outputs=outputs)))


def _renamed(design: Design, names: Mapping[str, str], like: Design) -> Design:
    layers = tuple(
        replace(
            layer,
            name=names[layer.name],
            inputs=tuple(names[name] for name in layer.inputs),
            # The ONNX file does not have it.
            model_shape=like[names[layer.name]].model_shape,
        )
        for layer in design.layers
    )
    return replace(design, layers=layers, outputs=tuple(names[name] for name in design.outputs))
