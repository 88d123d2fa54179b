"""Gives a design other weights and narrower types; the types of sums follow from them.

The flow would choose the same types for these widths (`fpgaprune.lowering.precision`), as far as that is known without
model and data: the point of a weight follows from the weights; the point of a result stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from fpgaprune.design import FUNCTIONS, MOVES, Design, Input, LayerSpec, LookUp, Map, Pooling, Recurrent
from fpgaprune.layout import products, with_layers
from fpgaprune.values import MAX_WIDTH, FixedType, integer_bits

Weight = tuple[NDArray[np.int64], FixedType]
# What a layer multiplies by, and what it adds.
WEIGHTS, _BIASES = ("weight", "recurrent_weight"), ("bias", "recurrent_bias")


def retyped(
    design: Design,
    weights: Mapping[str, Mapping[str, Weight]],
    activation_bits: int | None = None,
    of_layers: Mapping[str, int] | None = None,
) -> Design:
    """Return `design` with other raw `weights` by layer and role, and with no activation wider than `activation_bits`.

    `of_layers` has the widths of the layers whose activations are to be others.

    Sums get the narrowest type that holds every partial sum, if it is narrower than the type they have. A table keeps
    the entries that its narrower input and result can tell apart.
    """
    made: dict[str, LayerSpec] = {}
    multiplying = {layer.name for layer in products(design)}
    for layer in design.layers:
        types = dict(layer.types)
        was = now = None
        if layer.inputs:
            was, now = (side.types.get("result") for side in (design[layer.inputs[0]], made[layer.inputs[0]]))
        result = types.get("result")
        new = layer
        if layer.name in multiplying and now is not None:
            given = weights.get(layer.name, {})
            raws = {role: raw for role, (raw, _) in given.items()}
            types |= {role: kind for role, (_, kind) in given.items()}
            if isinstance(layer.operation, Recurrent):
                _narrow_steps(types, now)
            else:
                raw = raws.get("weight", layer.weights["weight"])
                _narrow_sums(types, _exact_sum(layer, raw, types["weight"], now))
            new = replace(layer, weights={**layer.weights, **raws, **_biases(layer, types)})
        elif is_activation(layer) and result is not None:
            bits = (of_layers or {}).get(layer.name, activation_bits)
            if bits is not None and result.width > bits:
                types["result"] = replace(result, width=bits, rounding="RND", overflow="SAT")
            if isinstance(layer.operation, LookUp) and now is not None:
                new = replace(layer, operation=_with_fewer_entries(layer.operation, now, types["result"]))
        elif _moves(layer) and was is not None and now is not None and result == was:
            types["result"] = now
            if "accum" in types:
                types["accum"] = _cut(types["accum"], was.width - now.width)
        made[layer.name] = replace(new, types=types)
    return with_layers(design, tuple(made.values()))


def is_activation(layer: LayerSpec) -> bool:
    """Return whether the flow's `activation_bits` is the width of this layer's result."""
    operation = layer.operation
    average = isinstance(operation, Pooling) and not operation.largest
    return isinstance(operation, Input | Map | LookUp) or average


def trimmed(layer: LayerSpec, role: str) -> Weight:
    """Return the weights of `layer` in `role`, in the narrowest type that holds them and has the same point."""
    kind, raw = layer.types[role], layer.weights[role]
    width = integer_bits(float(np.abs(raw).max(initial=0))) + 1
    if width >= kind.width:
        return raw, kind
    return raw, replace(kind, width=max(width, 2), integer=max(width, 2) - kind.fraction)


def requantised(layer: LayerSpec, role: str, bits: int, clips: bool = False) -> Weight:
    """Round the weights of `layer` in `role` to `bits`, with as many fraction bits as the largest weight allows.

    With `clips` the largest few weights may be cut off, where that changes all weights less.
    """
    values = layer.types[role].to_float(layer.weights[role])
    largest = float(np.abs(values).max(initial=0.0))
    kind = FixedType.with_least_error(values, bits) if clips else FixedType.holding(largest, bits)
    return kind.to_raw(values), kind


def _exact_sum(layer: LayerSpec, raw: NDArray[np.int64], kind: FixedType, incoming: FixedType) -> FixedType | None:
    """Return the narrowest type that holds every sum; None if there is no such hardware type."""
    largest = max(abs(incoming.raw_min), abs(incoming.raw_max)) * incoming.lsb
    outputs = layer.output_axis
    # Rounding can have moved each weight by half a unit.
    magnitudes = np.where(raw == 0, 0.0, np.abs(raw) + 0.5) * kind.lsb
    per_output = np.moveaxis(magnitudes, outputs, -1).reshape(-1, raw.shape[outputs]).sum(axis=0)
    bias = layer.weights.get("bias")
    constant = 0.0 if bias is None else float(np.abs(layer.types["bias"].to_float(bias)).max(initial=0.0))
    integer = integer_bits(float(per_output.max(initial=0.0)) * largest + constant) + 1
    width = max(integer + kind.fraction + incoming.fraction, 2)
    return FixedType(width, integer) if width <= MAX_WIDTH else None


def _narrow_sums(types: dict[str, FixedType], exact: FixedType | None) -> None:
    """Narrow `accum`, `bias` and `result` to at most `exact`; a bias keeps no bit below it."""
    accum, bias = types.get("accum"), types.get("bias")
    if exact is None or accum is None or exact.width >= accum.width:
        return
    if bias is not None and (bias == replace(accum, rounding="RND", overflow="SAT") or bias.fraction > exact.fraction):
        types["bias"] = replace(exact, rounding="RND", overflow="SAT")
    types["accum"] = replace(exact, rounding=accum.rounding, overflow=accum.overflow)
    result = types.get("result")
    if result is not None and exact.width < result.width:
        types["result"] = replace(exact, rounding=result.rounding, overflow=result.overflow)


def _narrow_steps(types: dict[str, FixedType], incoming: FixedType) -> None:
    """Narrow `accum` and the biases of a recurrent layer to the last place of its products and of its table.

    Its state, which is also its result, keeps its type.
    """
    accum = types["accum"]
    products = (
        types["weight"].fraction + incoming.fraction,
        types["recurrent_weight"].fraction + types["result"].fraction,
    )
    fraction = max(*products, types["table"].fraction if "table" in types else 0)
    if fraction >= accum.fraction:
        return
    types["accum"] = replace(accum, width=accum.integer + fraction)
    for role in _BIASES:
        if role in types and types[role].fraction > fraction:
            types[role] = replace(types["accum"], rounding="RND", overflow="SAT")


def _biases(layer: LayerSpec, types: Mapping[str, FixedType]) -> dict[str, NDArray[np.int64]]:
    """Return the raw biases of `layer` in their types of `types`."""
    found = {role: layer.weights[role] for role in _BIASES if role in layer.weights}
    return {role: types[role].to_raw(layer.types[role].to_float(raw)) for role, raw in found.items()}


def _with_fewer_entries(operation: LookUp, source: FixedType, result: FixedType) -> LookUp:
    """Return `operation` with at most the entries that a table from `source` to `result` gets."""
    table = FUNCTIONS[operation.function].table
    size = operation.table_size if table is None else table.entries(source, result, operation.table_size)
    return replace(operation, table_size=min(size, operation.table_size))


def _moves(layer: LayerSpec) -> bool:
    operation = layer.operation
    return isinstance(operation, MOVES) or (isinstance(operation, Pooling) and operation.largest)


def _cut(kind: FixedType, bits: int) -> FixedType:
    return replace(kind, width=max(kind.width - bits, 2))


def weight_bits(design: Design) -> dict[str, int]:
    """Return the width of the weights by layer."""
    return {layer.name: layer.types["weight"].width for layer in products(design)}


def activation_bits(design: Design) -> dict[str, int]:
    """Return the width of the result by layer, for those whose width is `activation_bits` in a flow."""
    activations = (layer for layer in design.layers if is_activation(layer) and "result" in layer.types)
    return {layer.name: layer.types["result"].width for layer in activations}


def sum_bits(design: Design) -> int:
    """Return the width of the widest result of a layer that multiplies."""
    return max((layer.types["result"].width for layer in products(design) if "result" in layer.types), default=16)
