"""Writes transposed convolutions as plain ones between layers that move values.

With stride 2, the even outputs of a transposed convolution sum the even taps, and the odd outputs the odd taps. So it
is a plain convolution with the filters of each such phase, behind one another along the channels, whose values then
stand side by side: a `Reshape`, and of an image with several rows in a phase a `Permute` between two. Where the network
cuts off values at its edges, less padding makes fewer of them, and a `Cropping` cuts off the rest. Its activation is
applied before values move, which have fewer bits then.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import keras
import numpy as np

from fpgaprune.lowering.layer_names import free_name
from fpgaprune.lowering.layer_operations import EACH_VALUE
from fpgaprune.network import activation_in, cloned, copied, producer, readers_of
from fpgaprune.values import spread

TRANSPOSED = (keras.layers.Conv1DTranspose, keras.layers.Conv2DTranspose)
_Named = Callable[[str], str]
_CROPPINGS = (keras.layers.Cropping1D, keras.layers.Cropping2D)


def phases_of(functional: keras.Model) -> dict[str, tuple[int, ...]]:
    """Name of each transposed convolution to its strides: (steps,) of a sequence, (rows, columns) of an image."""
    return {layer.name: tuple(layer.strides) for layer in functional.layers if isinstance(layer, TRANSPOSED)}


def with_late_crops(functional: keras.Model) -> keras.Model:
    """Let what treats each value or each channel alone stand before a `Cropping` of a transposed convolution.

    So a BatchNormalization is folded into the convolution, and it computes the same. Itself if there is nothing to do.
    """
    readers = readers_of(functional)
    ends: dict[str, str] = {}
    for layer in functional.layers:
        if isinstance(layer, _CROPPINGS) and isinstance(producer(layer.input), TRANSPOSED):
            end, reader = layer, _only_reader(functional, readers, layer)
            while reader is not None and (_treats_each_value(reader) or _treats_each_channel(reader)):
                end, reader = reader, _only_reader(functional, readers, reader)
            if end is not layer and _only_reader(functional, readers, producer(layer.input)) is layer:
                ends[end.name] = layer.name
    if not ends:
        return functional
    crops: dict[str, keras.Layer] = {}

    def call(layer: keras.Layer, *args: Any, **kwargs: Any) -> keras.KerasTensor:
        if layer.name in ends.values():
            crops[layer.name] = layer
            return args[0]
        y = layer(*args, **kwargs)
        return crops[ends[layer.name]](y) if layer.name in ends else y

    return cloned(functional, copied, call)


def without_transposed(functional: keras.Model) -> keras.Model:
    """Put a plain convolution, with layers that move values, in place of each transposed one; it keeps the name.

    Args:
        functional: a functional model whose transposed convolutions are linear and have the channels last; it is not
            changed.
    """
    transposed = {layer.name: layer for layer in functional.layers if isinstance(layer, TRANSPOSED)}
    if not transposed:
        return functional
    taken = {layer.name for layer in functional.layers}
    # What alone reads a transposed convolution, by its name and by that of the convolution.
    activations = {name: _activation_of(functional, layer) for name, layer in transposed.items()}
    applied = {activation: transposed[name] for name, activation in activations.items()}

    def named(name: str) -> str:
        taken.add(found := free_name(name, taken))
        return found

    def clone(layer: keras.Layer) -> keras.Layer:
        return _plain(layer) if layer.name in transposed else copied(layer)

    def call(layer: keras.Layer, *args: Any, **kwargs: Any) -> keras.KerasTensor:
        if layer.name in applied:
            return _moved(applied[layer.name], layer(*args, **kwargs), named)
        old = transposed.get(layer.name)
        if old is None:
            return layer(*args, **kwargs)
        y = layer(_padded(layer, old, args[0], named))
        return _moved(old, y, named) if activations[old.name] is None else y

    return cloned(functional, clone, call, {name: _weights(layer) for name, layer in transposed.items()})


def _taps(layer: keras.Layer) -> tuple[int, ...]:
    """Return the size of the plain kernel: the most taps that one output of `layer` sums."""
    return tuple(math.ceil(size / step) for size, step in zip(layer.kernel_size, layer.strides, strict=True))


def _plain(layer: keras.Layer) -> keras.Layer:
    made = keras.layers.Conv1D if len(layer.strides) == 1 else keras.layers.Conv2D
    pads, _ = _edges(layer)
    centred = all(pad == ((size - 1) // 2, size // 2) for pad, size in zip(pads, _taps(layer), strict=True))
    return made(
        layer.filters * math.prod(layer.strides),
        _taps(layer),
        padding="same" if centred else "valid",
        use_bias=layer.use_bias,
        name=layer.name,
        dtype=layer.dtype_policy,
    )


def _weights(layer: keras.Layer) -> list[Any]:
    kernel, *bias = layer.get_weights()
    phases = math.prod(layer.strides)
    shape = (*_taps(layer), kernel.shape[-1], phases * layer.filters)
    return [spread(kernel, shape, tuple(layer.strides)), *(np.tile(shift, phases) for shift in bias)]


def _edges(layer: keras.Layer) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Return the positions of padding before and behind each axis, and the outputs that are cut off there."""
    pads, cuts = [], []
    axes = zip(layer.input.shape[1:-1], layer.output.shape[1:-1], layer.kernel_size, layer.strides, strict=True)
    for places, wanted, size, step in axes:
        taps = math.ceil(size / step)
        before = 0 if layer.padding == "valid" else max((places - 1) * step + size - wanted, 0) // 2
        behind = (places + taps - 1) * step - before - wanted
        pads.append((taps - 1 - before // step, taps - 1 - behind // step))
        cuts.append((before % step, behind % step))
    return pads, cuts


def _padded(plain: keras.Layer, old: keras.Layer, x: keras.KerasTensor, named: _Named) -> keras.KerasTensor:
    """Return what `plain`, the convolution in place of `old`, reads in place of `x`."""
    pads, _ = _edges(old)
    if plain.padding == "same" or not any(map(any, pads)):
        return x
    name = named(f"{old.name}_padded")
    if len(pads) == 1:
        return keras.layers.ZeroPadding1D(pads[0], name=name)(x)
    return keras.layers.ZeroPadding2D(tuple(pads), name=name)(x)


def _moved(old: keras.Layer, y: keras.KerasTensor, named: _Named) -> keras.KerasTensor:
    """Return the values of `y`, which a plain convolution in place of `old` computed, where `old` has them."""
    name, steps, places = old.name, old.strides, y.shape[1:-1]
    if len(steps) == 2 and steps[0] > 1 and places[1] > 1:
        y = keras.layers.Reshape((*places, steps[0], steps[1] * old.filters), name=named(f"{name}_phases"))(y)
        y = keras.layers.Permute((1, 3, 2, 4), name=named(f"{name}_rows"))(y)
    if math.prod(steps) > 1:
        whole = (*(size * step for size, step in zip(places, steps, strict=True)), old.filters)
        y = keras.layers.Reshape(whole, name=named(f"{name}_map"))(y)
    _, cuts = _edges(old)
    if not any(map(any, cuts)):
        return y
    if len(cuts) == 1:
        return keras.layers.Cropping1D(cuts[0], name=named(f"{name}_cut"))(y)
    return keras.layers.Cropping2D(tuple(cuts), name=named(f"{name}_cut"))(y)


def _activation_of(functional: keras.Model, layer: keras.Layer) -> str | None:
    """Return the name of the layer that alone reads `layer` and computes each value by itself; None without one."""
    reader = _only_reader(functional, readers_of(functional), layer)
    return str(reader.name) if reader is not None and _treats_each_value(reader) else None


def _only_reader(functional: keras.Model, readers: Mapping[int, list[Any]], layer: keras.Layer) -> Any:
    found = readers.get(id(layer), [])
    leaves = any(producer(tensor) is layer for tensor in functional.outputs)
    return found[0] if len(found) == 1 and not leaves else None


def _treats_each_value(layer: keras.Layer) -> bool:
    known = activation_in(layer) if isinstance(layer, EACH_VALUE) else None
    return known is not None and known.name != "softmax"


def _treats_each_channel(layer: keras.Layer) -> bool:
    rank = len(layer.output.shape)
    return isinstance(layer, keras.layers.BatchNormalization) and layer.axis in (-1, rank - 1)
