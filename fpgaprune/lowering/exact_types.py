"""The types of a network whose data are rounded to types of its own: everything between is exact.

HGQ2's networks are such ones: each layer with weights reads what a `RoundedChannels` layer leaves, so that no range is
read from samples, and nothing is lost but what the network itself rounds. An input that no such layer reads is rounded
to a type that the user gives, or that samples show.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import keras
import numpy as np

from fpgaprune.errors import DesignError, UnsupportedLayerError
from fpgaprune.lowering.accumulators import exact_accumulator
from fpgaprune.lowering.folding import FOLDABLE
from fpgaprune.lowering.joined_scales import simplify_scale
from fpgaprune.lowering.precision import AVERAGES, MOVES, Types, is_softmax, move_types, softmax_layer_types
from fpgaprune.network import producer, readers_of, scale_and_shift
from fpgaprune.quantise import RoundedChannels, exact_type
from fpgaprune.values import MAX_WIDTH, FixedType

_SUMS = (keras.layers.Add, keras.layers.Subtract)
_CHOICES = (keras.layers.Maximum, keras.layers.Minimum, keras.layers.Concatenate)
# Modes of rounding to which a number may be cut before, if one bit more is left.
_BITS_KEPT = {"TRN": 0, "RND": 1}


def exact_types(folded: keras.Model, entering: Mapping[str, FixedType] | None = None, backend: str = "Vitis") -> Types:
    """Map layer name to role to type for every layer of `folded`; no result but a last softmax rounds or overflows.

    Args:
        folded: what `prepare.fold` returned; scales in front of quantisers become simpler ones that round alike.
        entering: type of each input that is read otherwise than by `RoundedChannels` layers alone.
        backend: the backend whose softmax computes with the types.

    Raises:
        UnsupportedLayerError: a layer is not exact in fixed point; the message names it.
        HlsError: an accumulator would need more than 64 bits.
    """
    types: Types = {}
    readers = readers_of(folded)
    for layer in folded.layers:
        sources = layer.input if isinstance(layer.input, list) else [layer.input]
        try:
            if isinstance(layer, keras.layers.InputLayer):
                types[layer.name] = {"result": _entering(layer, readers.get(id(layer), []), entering or {})}
            elif is_softmax(layer) and not readers.get(id(layer)):
                types[layer.name] = softmax_layer_types(layer, backend)
            else:
                incoming = [types[producer(source).name]["result"] for source in sources]
                types[layer.name] = _types(layer, incoming, readers)
        except DesignError as error:
            raise UnsupportedLayerError(f"layer {layer.name!r}: {error}") from error
    return types


def unrounded_inputs(folded: keras.Model) -> list[str]:
    """Return the names of the inputs of `folded` that are read otherwise than by `RoundedChannels` layers alone."""
    readers = readers_of(folded)
    entries = [producer(tensor) for tensor in folded.inputs]
    return [entry.name for entry in entries if not _is_rounded(readers.get(id(entry), []))]


def bits_behind(folded: keras.Model, name: str) -> int:
    """Count the bits of the widest quantiser that reads input `name` behind scales and moves alone; 0 if none does."""
    readers = readers_of(folded)
    waiting, widest = list(readers.get(id(folded.get_layer(name)), [])), 0
    while waiting:
        layer = waiting.pop()
        if isinstance(layer, RoundedChannels):
            widest = max(widest, layer.widest().width)
        elif isinstance(layer, (keras.layers.BatchNormalization, *MOVES)):
            waiting += readers.get(id(layer), [])
    return widest


def _is_rounded(readers: list[Any]) -> bool:
    return bool(readers) and all(isinstance(reader, RoundedChannels) for reader in readers)


def _types(layer: keras.Layer, incoming: list[FixedType], readers: dict[int, list[Any]]) -> dict[str, FixedType]:
    first = incoming[0]
    if isinstance(layer, RoundedChannels):
        return {"result": layer.widest()}
    if isinstance(layer, FOLDABLE):
        kernel, bias = (*layer.get_weights(), None)[:2]
        weight = exact_type(kernel)
        start = exact_type(0.0 if bias is None else bias)
        accum = exact_accumulator(layer, weight, first, kernel, bias, start)
        return {"weight": weight, "bias": start, "accum": accum, "result": accum}
    if isinstance(layer, keras.layers.BatchNormalization):
        simplify_scale(layer, first, readers)
        scale, shift = scale_and_shift(layer)
        kinds = {"scale": exact_type(scale), "bias": exact_type(shift)}
        largest = np.abs(scale).max() * first.magnitude + np.abs(shift).max()
        fraction = max(kinds["scale"].fraction + first.fraction, kinds["bias"].fraction)
        return {**kinds, "result": _holding(float(largest), fraction)}
    if isinstance(layer, MOVES):
        return move_types(layer, first)
    if isinstance(layer, (*_SUMS, *_CHOICES)):
        signed = any(kind.signed for kind in incoming) or isinstance(layer, keras.layers.Subtract)
        integer = max(kind.integer + int(signed and not kind.signed) for kind in incoming)
        integer += int(isinstance(layer, _SUMS))
        found = FixedType(integer + max(kind.fraction for kind in incoming), integer, signed)
        return {"result": found, "accum": found}
    if isinstance(layer, keras.layers.Multiply):
        found = _holding(first.magnitude * incoming[1].magnitude, first.fraction + incoming[1].fraction)
        return {"result": found, "accum": found}
    activation = getattr(layer, "activation", None)
    if activation is keras.activations.linear:
        return {"result": first}
    if activation is keras.activations.relu:
        positive = FixedType(max(first.width - 1, 1), max(first.width - 1, 1) - first.fraction, False)
        return {"result": positive if first.signed else first}
    if isinstance(layer, AVERAGES):
        return _average_types(layer, first)
    raise UnsupportedLayerError(
        f"layer {layer.name!r} is a {type(layer).__name__} in a network that rounds its data itself, and is not exact "
        "in fixed point; leave it out, or round what it reads and what it gives to types of [hls]"
    )


def _average_types(layer: keras.Layer, incoming: FixedType) -> dict[str, FixedType]:
    """Return the types of an average over a power of two, which divides by a shift."""
    positions = math.prod(getattr(layer, "pool_size", layer.input.shape[1:-1]))
    bits = positions.bit_length() - 1
    if positions != 1 << bits or getattr(layer, "padding", "valid") != "valid":
        raise UnsupportedLayerError(
            f"layer {layer.name!r} averages {positions} values, or fewer at an edge, which rounds here and not in the "
            "network; wanted 2, 4, 8, ... of them without padding, or a maximum"
        )
    width, integer = incoming.width + bits, incoming.integer
    return {
        "result": FixedType(width, integer, incoming.signed),
        "accum": FixedType(width + bits, integer + bits, incoming.signed),
    }


def _entering(layer: keras.Layer, readers: list[Any], given: Mapping[str, FixedType]) -> FixedType:
    """Return a type from which each of `readers` gets what it gets from the real number; else that of `given`."""
    if not _is_rounded(readers):
        if layer.name in given:
            return given[layer.name]
        raise UnsupportedLayerError(
            f"input {layer.name!r} is not rounded by the network, so its type must be known: give samples (data=...), "
            f"or the type itself, layers={{{layer.name!r}: {{'result': 'fixed<8,1,RND,SAT>'}}}}, in a flow file "
            f'[hls.layers.{layer.name!r}] result = "fixed<8,1,RND,SAT>"'
        )
    known: list[FixedType] = [kind for reader in readers for kind in reader.types() if kind is not None]
    if not known:
        return FixedType(1, 1, signed=False)
    if len(set(known)) == 1:
        return known[0]
    roundings, overflows = {kind.rounding for kind in known}, {kind.overflow.split("_")[0] for kind in known}
    if not roundings <= _BITS_KEPT.keys() or len(overflows) > 1 or "SAT_ZERO" in {kind.overflow for kind in known}:
        raise UnsupportedLayerError(
            f"input {layer.name!r} is rounded to several types with modes {', '.join(sorted(roundings))} and "
            f"{', '.join(sorted(overflows))}; one port holds them exactly for TRN and RND, and WRAP or SAT alone"
        )
    signed = any(kind.signed for kind in known)
    integer = max(kind.integer + int(signed and not kind.signed) for kind in known)
    fraction = max(kind.fraction + _BITS_KEPT[kind.rounding] for kind in known)
    return FixedType(integer + fraction, integer, signed, "TRN", overflows.pop())


def _holding(magnitude: float, fraction: int) -> FixedType:
    integer = math.floor(math.log2(magnitude)) + 2 if magnitude > 0 else 1
    width = max(integer + fraction, 2)
    if width > MAX_WIDTH:
        raise DesignError(f"its results take {width} bits; wanted {MAX_WIDTH} at most")
    return FixedType(width, integer)
