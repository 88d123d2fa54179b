"""Joins scales and shifts in front of a quantiser, and replaces them by numbers of few bits that round alike.

A network of QONNX multiplies by the scale of its weights, normalises, and divides by the scale of a quantiser; each
factor is a float of 24 bits. What counts is which sums are rounded to which number. So the factors become one,
`a * x + b`, and `a` and `b` become numbers of few bits with which the quantiser gives what it gave, for every sum that
the layer before can give.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache, partial
from typing import Any

import keras
import numpy as np
from numpy.typing import NDArray

from fpgaprune.lowering.keras_operations import scaled_and_shifted
from fpgaprune.network import Activation, activation_in, cloned, copied, producer, readers_of, scale_and_shift
from fpgaprune.quantise import RoundedChannels
from fpgaprune.values import FixedType, integer_bits

_RELU = Activation("relu")
# Steps of a quantiser that are looked at, and the bits of a sum that float64 multiplies exactly.
_MOST_STEPS = 1 << 10
_MOST_BITS = 53 - 24
# Bits of a factor in float32, and how often it may be halved.
_FACTOR_BITS = 24
_HALVINGS = 40
_MOST_FRACTION = 64
_Reals = NDArray[np.float64]


def joined_scales(functional: keras.Model) -> keras.Model:
    """Put one BatchNormalization in place of several in a row, those behind a relu before it.

    A relu is passed by positive factors without a shift: `a * relu(x)` is `relu(a * x)`.

    Args:
        functional: a functional model of layers, without `Rescaling` and `Normalization`; it is not changed.
    """
    readers = readers_of(functional)
    ends = {id(producer(tensor)) for tensor in functional.outputs}
    originals = {layer.name: layer for layer in functional.layers}
    # Name of a layer in the copy to what it scales, its factors and its shifts; and to what a relu reads, and itself.
    lines: dict[str, tuple[Any, _Reals, _Reals]] = {}
    relus: dict[str, tuple[Any, Any]] = {}
    weights: dict[str, Any] = {}

    def call(layer: keras.Layer, *args: object, **kwargs: object) -> keras.KerasTensor:
        original = originals.get(layer.name)
        if not isinstance(layer, keras.layers.BatchNormalization):
            made = layer(*args, **kwargs)
            if _is_relu(layer) and len(readers.get(id(original), [])) == 1 and id(original) not in ends:
                relus[layer.name] = (args[0], layer)
            return made
        source, behind = args[0], None
        scale, shift = scale_and_shift(original)
        if producer(source).name in relus and (scale > 0).all() and not shift.any():
            source, behind = relus[producer(source).name]
        name = producer(source).name
        if behind is None and name not in lines:
            lines[layer.name] = (source, scale, shift)
            return layer(*args, **kwargs)
        if name in lines:
            source, first, before = lines[name]
            scale, shift = scale * first, scale * before + shift
        joined, made = scaled_and_shifted(layer.name, source, scale, shift)
        weights[layer.name] = joined.get_weights()
        lines[layer.name] = (source, scale, shift)
        return made if behind is None else copied(behind)(made)

    return cloned(functional, copied, call, weights)


def simplify_scale(layer: keras.Layer, incoming: FixedType, readers: Mapping[int, list[Any]]) -> None:
    """Give `layer` factors and shifts of few bits with which all quantisers behind it give what they gave.

    Nothing changes where something other than a quantiser reads it, or a relu before quantisers.

    Args:
        layer: a BatchNormalization of a folded model; it is changed in place.
        incoming: the type that it reads.
        readers: `id` of a layer to the layers that read it.
    """
    found = _quantisers(layer, readers)
    if found is None or incoming.width > _MOST_BITS:
        return
    has_relu, quantisers = found
    kinds = [quantiser.types() for quantiser in quantisers]
    if not all(kind is None or _is_stepped(kind) for one in kinds for kind in one):
        return
    scale, shift = scale_and_shift(layer)
    # Many channels may be alike.
    simplest = cache(partial(_simplest, incoming, has_relu))
    pairs = [
        simplest(float(a), float(b), tuple(kind for kind in own if kind is not None))
        for a, b, *own in zip(scale, shift, *kinds, strict=True)
    ]
    layer.epsilon = 0.0
    for variable, values in zip(layer.weights, (*zip(*pairs, strict=True), 0 * scale, 0 * scale + 1), strict=True):
        variable.assign(np.asarray(values, np.float32))


def _is_relu(layer: keras.Layer) -> bool:
    return isinstance(layer, keras.layers.ReLU | keras.layers.Activation) and activation_in(layer) == _RELU


def _quantisers(layer: keras.Layer, readers: Mapping[int, list[Any]]) -> tuple[bool, list[Any]] | None:
    """Return whether a relu follows `layer`, and the quantisers that read it; None if something else reads it."""
    found = readers.get(id(layer), [])
    has_relu = len(found) == 1 and _is_relu(found[0])
    if has_relu:
        found = readers.get(id(found[0]), [])
    quantised = bool(found) and all(isinstance(one, RoundedChannels) and not one.each_value for one in found)
    return (has_relu, found) if quantised and layer.scale and layer.center else None


def _is_stepped(kind: FixedType) -> bool:
    """Return whether a value of `kind` grows with the number that is rounded, in few enough steps to check each."""
    few = kind.raw_max - kind.raw_min <= _MOST_STEPS
    return few and kind.overflow in ("SAT", "SAT_SYM") and kind.rounding != "TRN_ZERO"


def _simplest(
    incoming: FixedType, has_relu: bool, scale: float, shift: float, kinds: Sequence[FixedType]
) -> tuple[float, float]:
    """Return the factor of the fewest bits, and a shift, with which each of `kinds` holds what it held for every sum.

    Each step of a type lies between two sums that are neighbours. A line that passes it between the same two rounds
    every sum as before, because it grows or falls as the old one does. So for a factor `a` the shifts that do are those
    between two numbers.
    """
    below, above, steps = crossings(scale, shift, incoming, kinds, has_relu)

    def line(a: float) -> tuple[float, float] | None:
        least = (steps[1] - a * above).max(initial=-math.inf)
        most = (steps[0] - a * below).min(initial=math.inf)
        b = _fewest_bits(float(least), float(most))
        return None if b is None or float(np.float32(b)) != b else (a, b)

    constant = line(0.0)
    if constant is not None or not scale:
        return constant or (scale, shift)
    mantissa, exponent = math.frexp(scale)
    for bits in range(1, _FACTOR_BITS + 1):
        number = math.ldexp(round(mantissa * 2**bits), exponent - bits)
        # A smaller factor does where one more of the sum adds more than a step.
        lines = (line(math.ldexp(number, -less)) for less in range(_HALVINGS))
        found = [one for one in lines if one is not None]
        if found:
            return min(found, key=lambda one: _width(one, incoming))
    return scale, shift


def crossings(
    scale: float, shift: float, incoming: FixedType, kinds: Sequence[FixedType], has_relu: bool
) -> tuple[_Reals, _Reals, tuple[_Reals, _Reals]]:
    """Return the sum next to each step of `kinds` that does not reach it, and the one that does; the steps of both.

    A step that no sum reaches, or that every sum does, has only one of the two.
    """
    below, above, steps = [np.zeros(0)], [np.zeros(0)], ([np.zeros(0)], [np.zeros(0)])
    for kind in kinds:
        results = np.arange(kind.raw_min + 1, kind.raw_max + 1)
        at = (results - (0.0 if kind.rounding == "TRN" else 0.5)) * kind.lsb
        if has_relu:
            results, at = results[at > 0], at[at > 0]
        middle = (at - shift) / (scale * incoming.lsb) if scale else np.zeros_like(at)
        sums = np.floor(np.clip(middle, incoming.raw_min, incoming.raw_max))[:, None] + np.arange(-2, 4)
        real = (sums >= incoming.raw_min) & (sums <= incoming.raw_max)
        sums *= incoming.lsb
        reached = kind.to_raw(scale * sums + shift) >= results[:, None]
        upwards = 1.0 if scale >= 0 else -1.0
        last = np.where(real & ~reached, upwards * sums, -np.inf).max(axis=1, initial=-np.inf)
        first = np.where(real & reached, upwards * sums, np.inf).min(axis=1, initial=np.inf)
        for found, place, side in ((last, below, 0), (first, above, 1)):
            place.append(upwards * found[np.isfinite(found)])
            steps[side].append(at[np.isfinite(found)])
    joined = (np.concatenate(steps[0]), np.concatenate(steps[1]))
    return np.concatenate(below), np.concatenate(above), joined


def _fewest_bits(low: float, high: float) -> float | None:
    """Return the number of the fewest bits right of the point above `low` and below `high`; None if there is none."""
    if not low < high:
        return None
    if low < 0 < high:
        return 0.0
    # One end may be infinite.
    low, high = (low, min(high, 2 * low + 1)) if low >= 0 else (max(low, 2 * high - 1), high)
    for fraction in range(-integer_bits(max(abs(low), abs(high))), _MOST_FRACTION):
        found = math.ldexp(math.floor(math.ldexp(low, fraction)) + 1, -fraction)
        if found < high:
            return found
    return None


def _width(line: tuple[float, float], incoming: FixedType) -> int:
    """Return the bits that `a * x + b` takes."""
    fraction = max(_fraction(line[0]) + incoming.fraction, _fraction(line[1]))
    return integer_bits(abs(line[0]) * incoming.magnitude + abs(line[1])) + fraction


def _fraction(number: float) -> int:
    over, under = number.as_integer_ratio()
    return under.bit_length() - 1 if under > 1 or not over else 1 - (over & -over).bit_length()
