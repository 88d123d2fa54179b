"""Reads hls4ml's graph as the layers of a `Design`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpgaprune.design import LayerSpec, roles_of
from fpgaprune.errors import HlsError
from fpgaprune.files import stored_forms
from fpgaprune.hls.from_hls4ml import layer_of
from fpgaprune.values import FixedType

# Attributes of hls4ml's layers that the Design does not take, because it has fields of its own for them.
_NOT_DATA = frozenset(
    {"name", "class_name", "module", "inputs", "outputs", "trace", "precision", "index", "strategy", "include_header"}
    | {"input_keras_tensor_names", "output_keras_tensor_names", "reuse_factor"}
)
_WEIGHT_ROLES = ("weight", "recurrent_weight", "bias", "recurrent_bias", "scale", "param")


def extract_layers(
    graph: Any,
    raws: Mapping[str, Mapping[str, NDArray[Any]]],
    types: Mapping[str, Mapping[str, FixedType]],
    names: Mapping[str, str] | None = None,
) -> tuple[tuple[LayerSpec, ...], tuple[str, ...]]:
    """The layers of hls4ml's `graph`, inputs first, and the names of the layers that make its outputs.

    Args:
        graph: hls4ml's `ModelGraph`.
        raws: layer name to role to raw integers; the graph must hold the same.
        types: layer name to role to type; needed for layers of strategy `distributed_arithmetic`, because hls4ml does
            not keep their weights.
        names: name of each node to the design's name of the layer; the names are equal where a node has none.

    Raises:
        HlsError: the graph's weights are not those in `raws`.
    """
    # Inputs in the order of the top function's arguments; in hls4ml's graph they are before their first use.
    entries = [graph.graph[name] for name in graph.inputs]
    others = [node for node in graph.get_layers() if node not in entries]
    back = {node.name: (names or {}).get(node.name, node.name) for node in graph.get_layers()}
    layers = tuple(_layer(node, raws, types, back) for node in (*entries, *others))
    return layers, tuple(back[_producer(graph, variable.name)] for variable in graph.get_output_variables())


def _layer(
    node: Any, raws: Mapping[str, Any], given: Mapping[str, Mapping[str, FixedType]], back: Mapping[str, str]
) -> LayerSpec:
    name = back[node.name]
    attributes = node.attributes.attributes
    types = {key.removesuffix("_t"): _type(value) for key, value in attributes.items() if _is_type(key, value)}
    # A flattened tensor or a copied stream has the type of its source, not that in the layer's attributes.
    types["result"] = _type(node.get_output_variable().type)
    if node.class_name == "Softmax" and node.attributes["inv_inp_t"].name == "model_default_t":
        # The template of softmax uses the exponentials' type there.
        types["inv_inp"] = types["exp_table"]
    weights: dict[str, NDArray[np.int64]] = {}
    for role in _WEIGHT_ROLES:
        if role in node.weights:
            variable = node.weights[role]
            types[role] = _type(variable.type)
            wanted = raws.get(name, {}).get(role)
            weights[role] = _as_keras(types[role].to_raw(_written(variable, wanted)), wanted, node, role)
        elif role in raws.get(name, {}) and attributes.get("strategy") == "distributed_arithmetic":
            types[role] = given[name][role]
            weights[role] = np.asarray(raws[name][role], dtype=np.int64)
    plain = {key: _plain(value) for key, value in attributes.items() if key not in _NOT_DATA and _is_plain(value)}
    if hasattr(node, "mask_kbi"):
        from fpgaprune.hls.stream_quantizer import quantiser_words

        plain |= quantiser_words(node)
    made = layer_of(
        name=name,
        kind=node.class_name,
        # In hls4ml an input has a placeholder as its input, and a folded layer leaves an empty name.
        inputs=tuple(
            back[_producer(node.model, source)] for source in node.inputs if source and node.class_name != "Input"
        ),
        output_shape=tuple(int(size) for size in node.get_output_variable().shape),
        types=types,
        weights=weights,
        attributes=plain,
        project_name=str(node.name),
        reuse_factor=int(attributes.get("reuse_factor") or 1),
        strategy=attributes.get("strategy") if "weight" in weights else None,
    )
    read = {"result", *weights, *roles_of(made.operation)}
    return replace(made, types={role: kind for role, kind in made.types.items() if role in read})


def _written(variable: Any, wanted: NDArray[np.int64] | None) -> NDArray[np.float64]:
    """The values of `variable` as in the project's text files."""
    data = np.asarray(variable.data, dtype=np.float64)
    if wanted is not None:
        # hls4ml writes f decimal places, which are enough for multiples of 2**-f.
        return data
    return np.array([float(variable.precision_fmt.format(value)) for value in data.ravel()]).reshape(data.shape)


def _as_keras(found: NDArray[np.int64], wanted: NDArray[np.int64] | None, node: Any, role: str) -> NDArray[np.int64]:
    """`found` in Keras's axis order; strategy `resource` stores kernels with the outputs first."""
    if wanted is None:
        turned = role == "weight" and node.get_attr("_weights_transposed", False)
        return np.ascontiguousarray(np.moveaxis(found, 0, -1)) if turned else found
    for stored in stored_forms(wanted, int(node.get_attr("reuse_factor") or 1)):
        if found.size == stored.size and np.array_equal(found.ravel(), stored.ravel()):
            # A Dense layer on several axes has become a convolution of one point.
            shape = found.shape if found.ndim > wanted.ndim and found.shape[-1] == wanted.shape[-1] else wanted.shape
            return np.ascontiguousarray(wanted.reshape(shape))
    raise HlsError(
        f"layer {node.name!r} has other {role} integers in hls4ml's graph (shape {found.shape}) than were quantised "
        f"(shape {wanted.shape}); this version of hls4ml changes weights in an unknown way"
    )


def _producer(graph: Any, name: str) -> str:
    """The name of the layer whose output is called `name`."""
    for node in graph.get_layers():
        if name == node.name or name in node.outputs or node.get_output_variable().name == name:
            return str(node.name)
    raise HlsError(f"no layer of hls4ml's graph makes {name!r}")


def _is_type(key: str, value: Any) -> bool:
    # Softmax has types that it does not use, which are unspecified.
    return key.endswith("_t") and hasattr(getattr(value, "precision", None), "width")


def _type(named: Any) -> FixedType:
    precision = named.precision
    integer = getattr(precision, "integer", precision.width)
    rounding = getattr(precision, "rounding_mode", None) or "TRN"
    overflow = getattr(precision, "saturation_mode", None) or "WRAP"
    return FixedType(int(precision.width), int(integer), bool(precision.signed), str(rounding), str(overflow))


def _is_plain(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(isinstance(item, int | float | str | bool | np.integer) for item in value)
    return isinstance(value, int | float | bool | np.integer | np.floating) or (
        isinstance(value, str) and "\n" not in value and "<" not in value
    )


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value
