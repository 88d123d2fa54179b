"""Refuses a graph of hls4ml that is not the design of which it was made, layer by layer and bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np

import fpgaprune.design as op
from fpgaprune.design import Design, LayerSpec
from fpgaprune.errors import HlsError
from fpgaprune.files import stored_forms
from fpgaprune.hls.layer_list import attributes_of
from fpgaprune.values import FixedType

_INSTEAD = "choose another io type, or write the design as Verilog"
# Where one back end has a name of its own for the same template.
_SAME_NAME = {"dense_tanh": "tanh"}
_Facts = dict[str, tuple[Any, Any]]


def require_same(graph: Any, design: Design) -> None:
    """Check that every layer of hls4ml's `graph` is that of `design`.

    Raises:
        HlsError: one differs; the message names the layer, what hls4ml made and what the design has.
    """
    layers = {layer.project_name: layer for layer in design.layers}
    nodes = {str(node.name): node for node in graph.get_layers()}
    for name in layers.keys() - nodes.keys():
        raise HlsError(
            f"hls4ml leaves out layer {layers[name].name!r} of the design, and changes the layers beside it instead: "
            f"{_INSTEAD}"
        )
    for name in nodes.keys() - layers.keys():
        raise HlsError(f"hls4ml adds layer {name!r}, which the design does not have: {_INSTEAD}")
    makers: dict[str, str] = {}
    for name, node in nodes.items():
        made = {name, *node.outputs, node.get_output_variable().name}
        makers |= dict.fromkeys(made, layers[name].name)
    outputs = tuple(makers[variable.name] for variable in graph.get_output_variables())
    if outputs != design.outputs:
        raise HlsError(
            f"hls4ml's graph has outputs {', '.join(outputs)}; the design has {', '.join(design.outputs)}: {_INSTEAD}"
        )
    for name, node in nodes.items():
        layer = layers[name]
        # In hls4ml an input has a placeholder as its input, and a folded layer leaves an empty name.
        inputs = () if node.class_name == "Input" else tuple(makers[source] for source in node.inputs if source)
        facts: _Facts = {"inputs": (inputs, layer.inputs)}
        facts |= _shape_and_layout(node, layer)
        facts |= _operation(node, layer, [design[source] for source in layer.inputs], design.io_type)
        facts |= _types(node, layer, design.backend)
        for what, (found, asked) in facts.items():
            if found != asked:
                raise HlsError(
                    f"hls4ml made layer {layer.name!r} with {what} {found}; the design has {asked}: give the layer "
                    "another strategy, reuse factor or type"
                )
        _require_same_weights(node, layer)


def _shape_and_layout(node: Any, layer: LayerSpec) -> _Facts:
    attributes = node.attributes.attributes
    return {
        "output shape": (tuple(int(size) for size in node.get_output_variable().shape), layer.output_shape),
        "strategy": (attributes.get("strategy") if layer.strategy else None, layer.strategy),
        "reuse factor": (int(attributes.get("reuse_factor") or 1), layer.reuse_factor),
    }


def _operation(node: Any, layer: LayerSpec, sources: list[LayerSpec], io_type: str) -> _Facts:
    """Return what the node computes: its class, what the list of layers said, and what hls4ml's back end added."""
    from hls4ml.model.layers import layer_map

    operation, has = layer.operation, node.attributes.attributes
    wanted = attributes_of(layer, sources, io_type)
    kind = wanted.pop("class_name")
    kind = getattr(layer_map.get(kind), "__name__", kind)
    if isinstance(operation, op.Convolution) and operation.pointwise:
        kind = f"Pointwise{kind}"
    facts: _Facts = {"class": (node.class_name, "Repack" if operation == op.Reshape(repacks=True) else kind)}
    if isinstance(operation, op.Quantise):
        parts = wanted.pop("mask_kbi")
        same = np.array_equal([np.broadcast_to(part, parts[0].shape) for part in node.mask_kbi], parts)
        facts["types of channels"] = ("its own" if same else "others", "its own")
        facts |= {mode: (getattr(node, mode), wanted.pop(mode)) for mode in ("SAT", "RND")}
    encoded = str(has.get("implementation", "")).lower() == "encoded"
    match operation:
        case op.Convolution():
            facts["partitions"] = (has.get("n_partitions"), operation.partitions)
            facts["encoding"] = (encoded, operation.encoded)
        case op.Pooling():
            facts["pooling"] = (str(has["pool_op"]).lower() == "max", operation.largest)
            facts["padding"] = (bool(has.get("count_pad", False)), False)
            facts["encoding"] = (encoded, operation.encoded)
        case op.LookUp() | op.Recurrent():
            facts["table size"] = (has.get("table_size"), operation.table_size)
        case op.Softmax():
            wanted |= {"implementation": "stable", "table_size": operation.table_size}
            wanted |= {"exp_table_size": operation.exp_table_size, "inv_table_size": operation.inverse_table_size}
    values = {name: value for name, value in wanted.items() if not name.endswith("_data")}
    return facts | {name: (_plain(has.get(name)), _plain(value)) for name, value in values.items()}


def _types(node: Any, layer: LayerSpec, backend: str) -> _Facts:
    found: dict[str, FixedType | None] = {}
    for role in {*layer.types, *op.roles_of(layer.operation)} - layer.weights.keys():
        named = node.attributes.attributes.get(f"{role}_t")
        # A softmax has types that it does not use, which are unspecified.
        found[role] = _type(named) if hasattr(getattr(named, "precision", None), "width") else None
        if role == "inv_inp" and named is not None and named.name == "model_default_t":
            # Its template takes the type of the exponentials there.
            found[role] = layer.types["exp_table"]
    # A flattened tensor or a copied stream has the type of its source, not that in the layer's attributes.
    found["result"] = _type(node.get_output_variable().type)
    if backend == "Catapult" and isinstance(layer.operation, op.Pooling):
        # It widens this type by itself, for sums that cannot overflow.
        found.pop("accum")
    return {f"type of {role}": (kind, layer.types.get(role)) for role, kind in sorted(found.items())}


def _require_same_weights(node: Any, layer: LayerSpec) -> None:
    for role, raw in layer.weights.items():
        variable = node.weights.get(role)
        # hls4ml keeps no weights of a layer that it has made into adders.
        if variable is None and layer.strategy == "distributed_arithmetic":
            continue
        kind = layer.types[role]
        made = None if variable is None else kind.to_raw(np.asarray(variable.data, dtype=np.float64)).ravel()
        if made is None or _type(variable.type) != kind or not _is_stored(made, raw, layer.reuse_factor):
            raise HlsError(f"hls4ml made layer {layer.name!r} with other {role} integers than the design has")


def _is_stored(made: Any, raw: Any, reuse: int) -> bool:
    return any(np.array_equal(made, stored.ravel()) for stored in stored_forms(raw, reuse))


def _type(named: Any) -> FixedType:
    precision = named.precision
    integer = getattr(precision, "integer", precision.width)
    rounding = getattr(precision, "rounding_mode", None) or "TRN"
    overflow = getattr(precision, "saturation_mode", None) or "WRAP"
    return FixedType(int(precision.width), int(integer), bool(precision.signed), str(rounding), str(overflow))


def _plain(value: object) -> Any:
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(item) for item in value]
    return _SAME_NAME.get(value, value) if isinstance(value, str) else value
