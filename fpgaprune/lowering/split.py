"""Splits a separable convolution into two layers: a depthwise convolution, then one of 1 x 1.

hls4ml converts Keras's separable layers on two backends only, and gives both halves the same types. As two layers, each
half has its own types, strategy and certificate, on every backend with depthwise layers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras

from fpgaprune.lowering.layer_names import free_name
from fpgaprune.network import cloned, copied, keras_class

_HALVES: Mapping[type | None, Any] = {
    keras.layers.SeparableConv1D: (keras.layers.DepthwiseConv1D, keras.layers.Conv1D),
    keras.layers.SeparableConv2D: (keras.layers.DepthwiseConv2D, keras.layers.Conv2D),
}
_DEPTHWISE = ("kernel_size", "strides", "padding", "data_format", "dilation_rate", "depth_multiplier")
_POINTWISE = ("filters", "data_format", "activation", "use_bias")


def is_separable(layer: keras.Layer) -> bool:
    """Whether `split_separable` splits `layer`."""
    return keras_class(layer) in _HALVES


def depthwise_names(functional: keras.Model) -> dict[str, str]:
    """Name of each separable layer to the name of its depthwise half; the other half keeps the layer's name."""
    taken = {layer.name for layer in functional.layers}
    found: dict[str, str] = {}
    for layer in functional.layers:
        if is_separable(layer):
            found[layer.name] = free_name(f"{layer.name}_depthwise", taken)
            taken.add(found[layer.name])
    return found


def split_separable(functional: keras.Model) -> keras.Model:
    """`functional` without separable convolutions, which computes the same; itself if it has none.

    Args:
        functional: a model from `keras.Model(model.inputs, model.outputs)`; it is not changed.
    """
    separable = [layer for layer in functional.layers if is_separable(layer)]
    if not separable:
        return functional

    def clone(layer: keras.Layer) -> keras.Layer:
        if not is_separable(layer):
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
