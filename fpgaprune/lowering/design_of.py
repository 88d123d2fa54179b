"""Makes the `Design` of a folded network: an operation, types and integer weights for each of its layers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import keras
import numpy as np
from numpy.typing import NDArray

import fpgaprune.design as op
from fpgaprune.backends import AP_BACKENDS, as_built
from fpgaprune.design import USUAL_SIZE, Design, LayerSpec
from fpgaprune.lowering.folding import DEPTHWISE, PRODUCTS
from fpgaprune.lowering.layer_names import names_of
from fpgaprune.lowering.layer_operations import operation_of
from fpgaprune.lowering.layout import Layout
from fpgaprune.lowering.precision import TABLE, Types
from fpgaprune.lowering.shaped import shaped
from fpgaprune.lowering.softmax_types import softmax_table_sizes
from fpgaprune.network import LINEAR, activation_of, producer, scale_and_shift
from fpgaprune.target import Target
from fpgaprune.values import Array, FixedType

Raws = Mapping[str, Mapping[str, Array]]

# What a bias of zeros takes.
_NO_BIAS = FixedType(1, 1, signed=False)
# The type of a table's entries where none is chosen.
_ENTRY = FixedType(18, 8)


def design_of(
    folded: keras.Model,
    types: Types,
    raws: Raws,
    sources: Mapping[str, Mapping[str, str]],
    layouts: Mapping[str, Layout],
    sizes: Mapping[str, int],
    target: Target,
    name: str,
) -> Design:
    """Return the `Design` of `folded` with exactly `types` and the integer weights `raws`.

    Args:
        folded: what `fold` returned.
        types: layer name to role to type.
        raws: layer name to role to raw integers, from `quantise_weights`.
        sources: layer name to role to Keras weight path.
        layouts: layer name to strategy and reuse factor, for each layer that multiplies by weights.
        sizes: layer name to the number of entries of its tables, where that is not hls4ml's own.
        target: part, clock, backend, io type.
        name: the design's name.
    """
    names = names_of(folded, name)
    layers: list[LayerSpec] = []
    # A layer that is left out, to the one whose values it would hand on.
    instead: dict[str, str] = {}
    made: dict[str, LayerSpec] = {}
    for layer in _in_order(folded):
        inputs = tuple(instead.get(source, source) for source in _sources(layer))
        kinds = types[layer.name]
        if _changes_nothing(layer, kinds, made[inputs[0]].types if inputs else {}):
            instead[layer.name] = inputs[0]
            continue
        weights = _weights(layer, raws.get(layer.name, {}), kinds)
        layout = layouts.get(layer.name) if isinstance(layer, PRODUCTS) else None
        strategy = None if layout is None else layout.strategy
        incoming = made[inputs[0]].types["result"] if inputs else kinds["result"]
        size = sizes.get(layer.name, USUAL_SIZE)
        operation = _operation(layer, size, strategy, target)
        if isinstance(operation, op.Softmax):
            operation = replace(operation, **softmax_table_sizes(kinds, size, incoming))
        spec = LayerSpec(
            name=layer.name,
            inputs=inputs,
            output_shape=tuple(layer.output.shape[1:]),
            types=_roles(operation, kinds, weights, raws.get(layer.name, {})),
            weights=weights,
            sources={role: path for role, path in sources.get(layer.name, {}).items() if role in weights},
            operation=operation,
            reuse_factor=target.reuse_factor if layout is None else layout.reuse_factor,
            strategy=strategy,
            project_name=names[layer.name],
        )
        made[layer.name] = spec
        layers.append(spec)
    outputs = [instead.get(found, found) for found in (producer(tensor).name for tensor in folded.outputs)]
    layers, outputs = shaped(layers, outputs, names, target)
    given = {
        output: tuple(tensor.shape[1:])
        for output, tensor in zip(outputs, folded.outputs, strict=True)
        if outputs.count(output) == 1
    }
    return as_built(
        Design(
            name=name,
            layers=tuple(_in_shape(layer, given.get(layer.name)) for layer in layers),
            outputs=tuple(outputs),
            io_type=target.io_type,
            backend=target.backend,
            clock_ns=target.clock_ns,
            part=target.order_number,
        )
    )


def outline(folded: keras.Model, layouts: Mapping[str, Layout], target: Target) -> Design:
    """Return `folded` as a design without types and weights: it shows what the target's backend cannot build.

    Args:
        folded: what `fold` returned, trained or not.
        layouts: as for `design_of`; a layer without one has the strategy of `target`.
        target: backend, io type and strategy.
    """
    layers = []
    for layer in _in_order(folded):
        layout = layouts.get(layer.name)
        strategy = (target.strategy if layout is None else layout.strategy) if isinstance(layer, PRODUCTS) else None
        operation, shape = _operation(layer, USUAL_SIZE, strategy, target), tuple(layer.output.shape[1:])
        layers.append(LayerSpec(layer.name, tuple(_sources(layer)), shape, {}, operation=operation, strategy=strategy))
    outputs = tuple(producer(tensor).name for tensor in folded.outputs)
    return Design(folded.name, tuple(layers), outputs, target.io_type, target.backend)


def _in_shape(layer: LayerSpec, wanted: tuple[int, ...] | None) -> LayerSpec:
    """Give `layer` the shape in which the model gives its output, if that is another."""
    if wanted in (None, layer.output_shape) or math.prod(wanted or ()) != math.prod(layer.output_shape):
        return layer
    return replace(layer, model_shape=wanted)


def _in_order(folded: keras.Model) -> list[Any]:
    """Return the layers of `folded`, the inputs first and in the model's order."""
    entries = [producer(tensor) for tensor in folded.inputs]
    return [*entries, *(layer for layer in folded.layers if not any(layer is entry for entry in entries))]


def _sources(layer: keras.Layer) -> list[str]:
    if isinstance(layer, keras.layers.InputLayer):
        return []
    return [producer(tensor).name for tensor in (layer.input if isinstance(layer.input, list) else [layer.input])]


def _changes_nothing(layer: keras.Layer, kinds: Mapping[str, FixedType], incoming: Mapping[str, FixedType]) -> bool:
    """Return whether `layer` changes no number in hardware: a linear activation of the same type, or a scale of one."""
    if isinstance(layer, keras.layers.Activation) and activation_of(layer.activation) == LINEAR:
        return kinds["result"] == incoming["result"]
    if isinstance(layer, keras.layers.BatchNormalization):
        scale, shift = scale_and_shift(layer)
        return bool((scale == 1).all() and (shift == 0).all())
    return False


def _weights(
    layer: keras.Layer, raws: Mapping[str, Array], kinds: Mapping[str, FixedType]
) -> dict[str, NDArray[np.int64]]:
    """Return the integers of `layer` by role; a layer of `PRODUCTS` without a bias has one of zeros."""
    if isinstance(layer, keras.layers.BatchNormalization):
        values = dict(zip(("scale", "bias"), single_scale_and_shift(layer), strict=True))
        return {role: kinds[role].to_raw(value) for role, value in values.items()}
    if isinstance(layer, keras.layers.PReLU):
        # Slopes that are shared are one for each value here.
        slopes = np.broadcast_to(np.asarray(layer.alpha, dtype=np.float64), layer.output.shape[1:])
        return {"param": kinds["param"].to_raw(slopes)}
    found = {role: np.asarray(raw, dtype=np.int64) for role, raw in raws.items()}
    if "weight" not in found:
        return found
    if isinstance(layer, keras.layers.Dense):
        found["weight"] = found["weight"].reshape((1,) * (len(layer.output.shape) - 2) + found["weight"].shape)
    for role in ("bias", "recurrent_bias") if "recurrent_weight" in found else ("bias",):
        if role not in found:
            found[role] = np.zeros(found["weight"].shape[-2 if isinstance(layer, DEPTHWISE) else -1], np.int64)
    return found


def single_scale_and_shift(layer: keras.Layer) -> tuple[Array, Array]:
    """Return the scales and shifts of a BatchNormalization in single precision, as Keras computes them."""
    mean, variance = (np.asarray(array) for array in (layer.moving_mean, layer.moving_variance))
    gamma = np.asarray(layer.gamma) if layer.scale else 1
    scale = gamma / np.sqrt(variance + layer.epsilon)
    return scale, (np.asarray(layer.beta) if layer.center else 0) - scale * mean


def _operation(layer: keras.Layer, size: int, strategy: str | None, target: Target) -> Any:
    """Return the operation of `layer` with what hls4ml's project for `target` adds to it."""
    found = operation_of(layer, size)
    if isinstance(found, op.Convolution):
        places = math.prod(layer.output.shape[1:-1])
        return replace(
            found,
            pointwise=_is_pointwise(found, layer, strategy, target),
            partitions=1 if _is_at_once(found, layer, target.backend) else places,
        )
    return found


def _is_at_once(operation: op.Convolution, layer: keras.Layer, backend: str) -> bool:
    """Return whether hls4ml computes all windows of an image at once in io_parallel."""
    image = len(layer.output.shape) == 4
    return backend == "oneAPI" or (backend == "Catapult" and operation.depthwise and image)


def _is_pointwise(operation: op.Convolution, layer: keras.Layer, strategy: str | None, target: Target) -> bool:
    if operation.depthwise or operation.window.size != (1, 1):
        return False
    if target.backend == "oneAPI" and target.io_type == "io_stream":
        return False
    one = len(layer.output.shape) == 3
    return not (strategy == "distributed_arithmetic" and one and target.backend in AP_BACKENDS)


def _roles(
    operation: op.Operation, kinds: Mapping[str, FixedType], weights: Mapping[str, object], raws: Mapping[str, object]
) -> dict[str, FixedType]:
    """Return the types of the roles that `operation` has."""
    found = {"result": kinds["result"]}
    for role in op.roles_of(operation):
        if role == "table":
            found[role] = _table(kinds)
        elif role != "inp_norm" or role in kinds:
            found[role] = kinds.get(role, TABLE) if isinstance(operation, op.Softmax) else kinds[role]
    for role in weights:
        # A layer without a bias has one of zeros; an LSTM has the bias of its state in another place than Keras.
        absent = "weight" in weights and role not in raws and not (role == "recurrent_bias" and role in kinds)
        found[role] = _NO_BIAS if absent else kinds[role]
    return found


def _table(kinds: Mapping[str, FixedType]) -> FixedType:
    found = kinds.get("table", TABLE)
    return _ENTRY if found == TABLE else found
