"""Reads what a layer of a folded Keras network computes, as an operation of a `Design`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import keras
import numpy as np

import fpgaprune.design as op
from fpgaprune.design import FUNCTIONS, NOTHING
from fpgaprune.errors import UnsupportedLayerError
from fpgaprune.lowering.recurrent_layers import RECURRENT, functions_of
from fpgaprune.lowering.reversed_steps import ReversedSteps
from fpgaprune.network import activation_in
from fpgaprune.quantise import RoundedChannels
from fpgaprune.values import FixedType

MERGES = (
    *(keras.layers.Add, keras.layers.Subtract, keras.layers.Multiply),
    *(keras.layers.Average, keras.layers.Maximum, keras.layers.Minimum),
)
# Layers that are the activation of what they read, and compute each value by itself if that is no softmax.
EACH_VALUE = (keras.layers.Activation, keras.layers.ReLU, keras.layers.LeakyReLU, keras.layers.ELU)
_POOLINGS = (
    *(keras.layers.MaxPooling1D, keras.layers.MaxPooling2D),
    *(keras.layers.AveragePooling1D, keras.layers.AveragePooling2D),
)
_GLOBAL_POOLINGS = (
    *(keras.layers.GlobalMaxPooling1D, keras.layers.GlobalMaxPooling2D),
    *(keras.layers.GlobalAveragePooling1D, keras.layers.GlobalAveragePooling2D),
)
_LARGEST = (*_POOLINGS[:2], *_GLOBAL_POOLINGS[:2])
_ACTIVATIONS = (*EACH_VALUE, keras.layers.PReLU, keras.layers.Softmax)


def operation_of(layer: keras.Layer, table_size: int) -> op.Operation:
    """Return the operation of `layer`, a layer of a folded model.

    Args:
        layer: a layer of what `fold` returned.
        table_size: entries of its table, where it looks its function up.

    Raises:
        UnsupportedLayerError: no operation computes what the layer does.
    """
    if isinstance(layer, _ACTIVATIONS):
        return _activation(layer, table_size)
    if isinstance(layer, RECURRENT):
        return _recurrent(layer, table_size)
    make = next((make for kinds, make in _MAKERS.items() if isinstance(layer, kinds)), None)
    if make is None:
        raise UnsupportedLayerError(
            f"layer {layer.name!r} is a {type(layer).__name__}, for which a design has no operation"
        )
    return make(layer)


def _convolution(layer: keras.Layer) -> op.Operation:
    depthwise = isinstance(layer, keras.layers.DepthwiseConv1D | keras.layers.DepthwiseConv2D)
    return op.Convolution(_window(layer, layer.kernel_size), depthwise=depthwise)


def _window(layer: keras.Layer, size: tuple[int, ...]) -> op.Window:
    """Return where the windows of a convolution or a pooling lie; those of a 1-D layer have height 1."""
    places, strides = layer.input.shape[1:-1], tuple(layer.strides)
    sides = [
        _padding(layer.padding, place, taps, step) for place, taps, step in zip(places, size, strides, strict=True)
    ]
    one = len(size) == 1
    return op.Window(
        (1, size[0]) if one else (size[0], size[1]),
        (1, strides[0]) if one else (strides[0], strides[1]),
        (0, 0, *sides[0]) if one else (*sides[0], *sides[1]),
    )


def _padding(padding: str, places: int, taps: int, stride: int) -> tuple[int, int]:
    """Return the zeros before and behind one axis."""
    if padding == "causal":
        return taps - 1, 0
    if padding == "valid":
        return 0, 0
    both = max((math.ceil(places / stride) - 1) * stride + taps - places, 0)
    return both // 2, both - both // 2


def _activation(layer: keras.Layer, table_size: int) -> op.Operation:
    if isinstance(layer, keras.layers.PReLU):
        return op.Map("prelu")
    known = activation_in(layer)
    if isinstance(layer, keras.layers.Softmax) or (known is not None and known.name == "softmax"):
        return op.Softmax()
    if known is None:
        raise UnsupportedLayerError(f"layer {layer.name!r} has an activation for which a design has no function")
    function = FUNCTIONS[known.name]
    if function.table is not None:
        return op.LookUp(function.name, table_size, known.parameter)
    return op.Map(function.name, known.parameter)


def _recurrent(layer: keras.Layer, table_size: int) -> op.Operation:
    functions = list(functions_of(layer).values())
    if "" in functions:
        raise UnsupportedLayerError(f"layer {layer.name!r} has an activation for which a design has no function")
    cell = {keras.layers.GRU: "gru", keras.layers.LSTM: "lstm"}.get(type(layer), "rnn")
    return op.Recurrent(cell, layer.units, functions[0], functions[-1], layer.return_sequences, table_size)


def _quantise(layer: keras.Layer) -> op.Operation:
    shape = tuple(layer.output.shape[1:])
    own = shape if layer.each_value else shape[-1:]
    parts = [
        np.broadcast_to(np.asarray(part).astype(np.int64).reshape(own), shape)
        for part in (layer.signed, layer.width, layer.integer)
    ]
    rows = np.stack(parts, axis=-1).reshape(-1, shape[-1], 3)
    if (rows == rows[:1]).all():
        rows = rows[:1]
    kinds, places = np.unique(rows.reshape(-1, 3), axis=0, return_inverse=True)
    texts = (
        str(FixedType(width, integer, bool(signed), layer.rounding, layer.overflow)) if width else NOTHING
        for signed, width, integer in kinds.tolist()
    )
    return op.Quantise(tuple(texts), tuple(places.reshape(-1).tolist()))


def _sides(given: Any) -> tuple[int, int, int, int]:
    """Return (top, bottom, left, right) of the padding or cropping of one axis or two."""
    if isinstance(given[0], int):
        return (0, 0, given[0], given[1])
    return (*given[0], *given[1])


_MAKERS: Mapping[Any, Callable[[Any], op.Operation]] = {
    keras.layers.InputLayer: lambda _: op.Input(),
    # A Dense layer over several axes is a convolution of one point at each position.
    keras.layers.Dense: lambda layer: op.Dense() if len(layer.output.shape) == 2 else op.Convolution(op.Window((1, 1))),
    (
        *(keras.layers.DepthwiseConv1D, keras.layers.DepthwiseConv2D),
        *(keras.layers.Conv1D, keras.layers.Conv2D),
    ): _convolution,
    _POOLINGS: lambda layer: op.Pooling(_window(layer, layer.pool_size), isinstance(layer, _LARGEST)),
    _GLOBAL_POOLINGS: lambda layer: op.Pooling(None, isinstance(layer, _LARGEST)),
    keras.layers.BatchNormalization: lambda _: op.Scale(),
    MERGES: lambda layer: op.Merge(type(layer).__name__.lower()),
    keras.layers.Concatenate: lambda layer: op.Concatenate(layer.axis % len(layer.output.shape)),
    (keras.layers.Flatten, keras.layers.Reshape): lambda _: op.Reshape(),
    ReversedSteps: lambda _: op.Reverse(),
    keras.layers.Permute: lambda layer: op.Transpose(tuple(axis - 1 for axis in layer.dims)),
    (keras.layers.ZeroPadding1D, keras.layers.ZeroPadding2D): lambda layer: op.Pad(_sides(layer.padding)),
    (keras.layers.Cropping1D, keras.layers.Cropping2D): lambda layer: op.Crop(_sides(layer.cropping)),
    (keras.layers.UpSampling1D, keras.layers.UpSampling2D): lambda _: op.Resize(),
    RoundedChannels: _quantise,
}
