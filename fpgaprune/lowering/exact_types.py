"""The types of a network whose data are rounded to types of its own: everything between is exact.

HGQ2's networks are such ones: each layer with weights reads what a `RoundedChannels` layer leaves, so that no range is
read from samples, and nothing is lost but what the network itself rounds.
"""

from __future__ import annotations

import math
from typing import Any

import keras
import numpy as np

from fpgaprune.errors import DesignError, UnsupportedLayerError
from fpgaprune.lowering.accumulators import exact_accumulator
from fpgaprune.lowering.folding import FOLDABLE
from fpgaprune.lowering.precision import AVERAGES, MOVES, Types, move_types
from fpgaprune.network import producer, readers_of, scale_and_shift
from fpgaprune.quantise import RoundedChannels, exact_type
from fpgaprune.values import MAX_WIDTH, FixedType

_SUMS = (keras.layers.Add, keras.layers.Subtract)
_CHOICES = (keras.layers.Maximum, keras.layers.Minimum, keras.layers.Concatenate)
# Modes of rounding to which a number may be cut before, if one bit more is left.
_BITS_KEPT = {"TRN": 0, "RND": 1}


def exact_types(folded: Any) -> Types:
    """Layer name to role to type, for every layer of `folded`; no result rounds or overflows.

    Args:
        folded: what `prepare.fold` returned, with a `RoundedChannels` layer behind each input.

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
                types[layer.name] = {"result": _entering(layer, readers.get(id(layer), []))}
            else:
                incoming = [types[producer(source).name]["result"] for source in sources]
                types[layer.name] = _types(layer, incoming)
        except DesignError as error:
            raise UnsupportedLayerError(f"layer {layer.name!r}: {error}") from error
    return types


def _types(layer: Any, incoming: list[FixedType]) -> dict[str, FixedType]:
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
        scale, shift = scale_and_shift(layer)
        kinds = {"scale": exact_type(scale), "bias": exact_type(shift)}
        largest = np.abs(scale).max() * _largest(first) + np.abs(shift).max()
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
        found = _holding(_largest(first) * _largest(incoming[1]), first.fraction + incoming[1].fraction)
        return {"result": found, "accum": found}
    activation = getattr(layer, "activation", None)
    if activation is keras.activations.linear:
        return {"result": first}
    if activation is keras.activations.relu:
        positive = FixedType(max(first.width - 1, 1), max(first.width - 1, 1) - first.fraction, False)
        return {"result": positive if first.signed else first}
    if isinstance(layer, AVERAGES):
        raise UnsupportedLayerError(f"layer {layer.name!r} averages, which rounds here and not in the network; use max")
    raise UnsupportedLayerError(
        f"layer {layer.name!r} is a {type(layer).__name__} in a network that rounds its data itself, and is not exact "
        "in fixed point; leave it out, or round what it reads and what it gives to types of [hls]"
    )


def _entering(layer: Any, readers: list[Any]) -> FixedType:
    """A type from which each of `readers` gets what it gets from the real number."""
    if not readers or not all(isinstance(reader, RoundedChannels) for reader in readers):
        raise UnsupportedLayerError(
            f"input {layer.name!r} is read as floats; wanted a quantiser before whatever reads it (in HGQ2 "
            "enable_iq=True)"
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


def _largest(kind: FixedType) -> float:
    return float(max(-kind.raw_min, kind.raw_max) * kind.lsb)


def _holding(magnitude: float, fraction: int) -> FixedType:
    integer = math.floor(math.log2(magnitude)) + 2 if magnitude > 0 else 1
    width = max(integer + fraction, 2)
    if width > MAX_WIDTH:
        raise DesignError(f"its results take {width} bits; wanted {MAX_WIDTH} at most")
    return FixedType(width, integer)
