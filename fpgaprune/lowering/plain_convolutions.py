"""Writes separable, dilated and grouped convolutions as plain ones.

hls4ml converts Keras's separable layers on two backends only, and gives both halves the same types. As two layers, a
depthwise convolution and one of 1 x 1, each half has its own types, strategy and certificate, on every backend with
depthwise layers. A dilated or grouped convolution becomes a plain one whose kernels hold zeros between taps and outside
groups. Our Verilog has no product for a zero, at once or by a schedule; in an hls4ml project a zero is dropped by the
strategies `latency` and `distributed_arithmetic`, and takes a multiplier with `resource`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras

from fpgaprune.lowering.layer_names import free_name
from fpgaprune.network import cloned, copied, keras_class
from fpgaprune.values import spread

_PLAIN: Mapping[type[Any], Any] = {
    keras.layers.DepthwiseConv1D: keras.layers.Conv1D,
    keras.layers.DepthwiseConv2D: keras.layers.Conv2D,
}
_CONVOLUTIONS: tuple[Any, ...] = (keras.layers.Conv1D, keras.layers.Conv2D, *_PLAIN)
_KEPT = ("strides", "padding", "data_format", "activation", "use_bias")


def plain_convolutions(functional: keras.Model) -> keras.Model:
    """Put a plain convolution in place of each dilated or grouped one, or one with a depth multiplier.

    It computes the same; a dilated depthwise convolution stays depthwise.

    Args:
        functional: a functional model; it is not changed.
    """
    weights = {layer.name: _weights(layer) for layer in functional.layers if _has_zeros(layer)}
    if not weights:
        return functional

    def clone(layer: keras.Layer) -> keras.Layer:
        if layer.name not in weights:
            return copied(layer)
        shape = _shape(layer)
        if _multiplier(layer) == 1:
            plain = {} if type(layer) in _PLAIN else {"groups": 1}
            return copied(layer, kernel_size=shape[:-2], dilation_rate=1, **plain)
        settings = {key: getattr(layer, key) for key in _KEPT}
        kind = _PLAIN[type(layer)]
        return kind(shape[-1], shape[:-2], name=layer.name, dtype=layer.dtype_policy, **settings)

    return cloned(functional, clone, None, weights)


def _has_zeros(layer: keras.Layer) -> bool:
    if not isinstance(layer, _CONVOLUTIONS):
        return False
    return max(layer.dilation_rate) > 1 or getattr(layer, "groups", 1) > 1 or _multiplier(layer) > 1


def _multiplier(layer: keras.Layer) -> int:
    return int(getattr(layer, "depth_multiplier", 1))


def _shape(layer: keras.Layer) -> tuple[int, ...]:
    """Return the shape of the plain kernel; that of a depthwise one without a multiplier stays depthwise."""
    taps = ((size - 1) * step + 1 for size, step in zip(layer.kernel_size, layer.dilation_rate, strict=True))
    channels = int(layer.input.shape[-1])
    if type(layer) in _PLAIN:
        return (*taps, channels, 1 if _multiplier(layer) == 1 else channels * _multiplier(layer))
    return (*taps, channels, layer.filters)


def _weights(layer: keras.Layer) -> list[Any]:
    kernel, *bias = layer.get_weights()
    return [spread(kernel, _shape(layer)), *bias]


_HALVES: Mapping[type | None, Any] = {
    keras.layers.SeparableConv1D: (keras.layers.DepthwiseConv1D, keras.layers.Conv1D),
    keras.layers.SeparableConv2D: (keras.layers.DepthwiseConv2D, keras.layers.Conv2D),
}
SEPARABLE = (keras.layers.SeparableConv1D, keras.layers.SeparableConv2D)
_DEPTHWISE = ("kernel_size", "strides", "padding", "data_format", "dilation_rate", "depth_multiplier")
_POINTWISE = ("filters", "data_format", "activation", "use_bias")


def depthwise_names(functional: keras.Model) -> dict[str, str]:
    """Name of each separable layer to the name of its depthwise half; the other half keeps the layer's name."""
    taken = {layer.name for layer in functional.layers}
    found: dict[str, str] = {}
    for layer in functional.layers:
        if keras_class(layer) in _HALVES:
            found[layer.name] = free_name(f"{layer.name}_depthwise", taken)
            taken.add(found[layer.name])
    return found


def split_separable(functional: keras.Model) -> keras.Model:
    """Split separable convolutions in two; the result computes the same, and is `functional` itself if it has none.

    Args:
        functional: a model from `keras.Model(model.inputs, model.outputs)`; it is not changed.
    """
    separable = [layer for layer in functional.layers if keras_class(layer) in _HALVES]
    if not separable:
        return functional

    def clone(layer: keras.Layer) -> keras.Layer:
        if keras_class(layer) not in _HALVES:
            return copied(layer)
        pointwise = _HALVES[keras_class(layer)][1]
        settings = {key: getattr(layer, key) for key in _POINTWISE}
        return pointwise(kernel_size=1, name=layer.name, dtype=layer.dtype_policy, **settings)

    def call(layer: keras.Layer, *args: object, **kwargs: object) -> keras.KerasTensor:
        if layer.name not in halves:
            return layer(*args, **kwargs)
        return layer(halves[layer.name](*args))

    names = depthwise_names(functional)
    halves = {
        layer.name: _HALVES[keras_class(layer)][0](
            name=names[layer.name],
            use_bias=False,
            dtype=layer.dtype_policy,
            **{key: getattr(layer, key) for key in _DEPTHWISE},
        )
        for layer in separable
    }
    copy = cloned(functional, clone, call, {layer.name: layer.get_weights()[1:] for layer in separable})
    for layer in separable:
        halves[layer.name].set_weights(layer.get_weights()[:1])
    return copy
