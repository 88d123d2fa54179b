"""`Conv` of ONNX as Conv1D, Conv2D, DepthwiseConv1D or DepthwiseConv2D of Keras."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fpgaprune.frontends.onnx.node import NodeStep, Operator
from fpgaprune.frontends.onnx.parameter import Parameter
from fpgaprune.frontends.onnx.sliding_windows import SlidingWindows, padded, windows_of
from fpgaprune.frontends.onnx.value import Value, channels_last

# Layers that commute with a positive factor.
_MOVES = tuple(
    f"{kind}{axes}D" for kind in ("MaxPooling", "AveragePooling", "ZeroPadding", "UpSampling") for axes in (1, 2)
)
Layer = Callable[[NodeStep, Value, Parameter, Parameter | None], Value]


def with_codes(
    step: NodeStep, value: Value, weight: Parameter, axis: int, bias: Parameter | None, layer: Layer
) -> Value:
    """Return the output of `layer`; if `weight` has codes, its weights are whole numbers, with the scale behind.

    So a weight of two bits stays one although its scale is no power of two. A scale of the whole tensor `value` moves
    behind the layer, too.

    Args:
        step: the node.
        value: what the layer reads, with its channels last.
        weight: the weights.
        axis: the axis of `weight` that is the output channels.
        bias: what is added for each output channel.
        layer: adds the layer.
    """
    scale = None if weight.codes is None else weight.codes.for_outputs(axis)
    if scale is None:
        return layer(step, value, weight, bias)
    value, factor = _unscaled(step, value)
    scale = scale * factor
    summed = layer(step, value, weight.as_codes(), None)
    return step.plan.times(f"{step.name}_scale", summed, np.asarray(scale, np.float32), bias)


def _unscaled(step: NodeStep, value: Value) -> tuple[Value, np.float32]:
    """Return `value` without a factor of the whole tensor, and that factor; 1 if there is none.

    Layers between the factor and the value, such as a pooling, read what the factor multiplied.
    """
    layers, last = step.plan.layers, value.layer
    path = [value.layer]
    while layers[last].kind in _MOVES and not step.is_shared(last):
        last = layers[last].given[0]
        path.append(last)
    before, factor = step.before_scale(value.given_by(last))
    if factor is None or not (factor == factor[0]).all() or (len(path) > 1 and factor[0] <= 0):
        return value, np.float32(1)
    if len(path) == 1:
        return before, factor[0]
    layers[path[-2]].given = (before.layer,)
    return value, factor[0]


def conv(step: NodeStep) -> Value:
    """Return a convolution of one or two spatial axes; its weight is (C_out, C_in / groups, ...)."""
    value, weight = step.value(), step.weight(1)
    bias = step.weight(2) if len(step.given) > 2 and step.given[2] is not None else None
    if value.rank not in (3, 4):
        step.refuse(f"has {value.rank - 2} spatial axes; wanted 1 or 2")
    groups, channels = int(step.settings.get("group", 1)), value.size(1)
    if weight.ndim != value.rank or groups < 1 or weight.values.shape[1] * groups != channels:
        step.refuse(
            f"has a weight of shape {weight.values.shape} and {groups} groups for an input of {channels} channels"
        )
    filters = weight.values.shape[0]
    if filters % groups or not weight.size:
        step.refuse(f"has {filters} filters in {groups} groups")
    if bias is not None and bias.values.shape != (filters,):
        step.refuse(f"has a bias of shape {bias.values.shape}; wanted ({filters},)")
    size = weight.values.shape[2:]
    if list(step.settings.get("kernel_shape", size)) != list(size):
        step.refuse(f"has kernel_shape {list(step.settings['kernel_shape'])}; its weight has {list(size)}")
    windows = windows_of(step, value, size)
    if max(windows.strides) > 1 and max(windows.dilations) > 1:
        step.refuse("has strides and dilations above 1, which no layer of Keras has: use one of them")
    value = step.plan.ordered(value, channels_last(value.rank))
    return with_codes(step, value, weight, 0, bias, lambda *given: _layer(*given, windows=windows, groups=groups))


def _layer(
    step: NodeStep, value: Value, weight: Parameter, bias: Parameter | None, *, windows: SlidingWindows, groups: int
) -> Value:
    filters, size = weight.values.shape[0], windows.size
    settings: dict[str, Any] = {"strides": windows.strides, "dilation_rate": windows.dilations, "padding": "same"}
    shape = (*windows.outputs, filters)
    is_depthwise = groups == value.shape[-1] > 1 and len(set(windows.strides)) == 1
    if not windows.is_same or not windows.is_padded:
        value = padded(step, value, windows)
        settings["padding"] = "valid"
    weights = {
        "kernel": _depthwise(weight, groups) if is_depthwise else weight.transposed((*range(2, weight.ndim), 1, 0))
    }
    if bias is not None:
        weights["bias"] = bias
    settings["use_bias"] = bias is not None
    own = {"depth_multiplier": filters // groups} if is_depthwise else {"filters": filters, "groups": groups}
    kind = f"{'Depthwise' if is_depthwise else ''}Conv{len(size)}D"
    layer = step.plan.add(kind, step.name, (value,), shape, {"kernel_size": size, **own, **settings}, weights)
    return Value(layer, shape, value.axes, value.rank)


def _depthwise(weight: Parameter, groups: int) -> Parameter:
    """Turn (C * multiplier, 1, ...) into (..., C, multiplier)."""
    shape = weight.values.shape
    split = weight.reshaped((groups, shape[0] // groups, *shape[2:]))
    return split.transposed((*range(2, split.ndim), 0, 1))


OPERATORS: dict[str, Operator] = {"Conv": conv}
