"""Convolutions: output channel o reads input channel i unless all of `W[..., i, o]` is zero.

An output is constant if everything that it reads is. That fails at a zero-padded border for constants
other than 0: there the taps outside the image read 0 instead of the constant.
"""

from __future__ import annotations

import math
from typing import Any

from keras import layers

from fpgaprune.network.channels import Channels, Shape
from fpgaprune.network.rules.activations import activate
from fpgaprune.network.site import Rule, Site
from fpgaprune.network.trace import Count


def channel_axis(layer: Any) -> int:
    """The axis of channels in a shape without the batch axis."""
    return 0 if layer.data_format == "channels_first" else -1


def spatial(layer: Any, shape: Shape) -> Shape:
    """The sizes of the spatial axes."""
    return shape[1:] if layer.data_format == "channels_first" else shape[:-1]


def positions(sizes: Shape) -> int:
    """How many places a kernel is put at; 1 for an unknown size."""
    return math.prod(size or 1 for size in sizes)


def pads_zeros(layer: Any, sizes: Shape) -> bool:
    """Whether some tap of the kernel reads a zero outside the image."""
    if layer.padding == "valid":
        return False
    steps = zip(sizes, layer.kernel_size, layer.strides, layer.dilation_rate, strict=True)
    return any(_pads_axis(*step, causal=layer.padding == "causal") for step in steps)


def _pads_axis(size: int | None, kernel: int, stride: int, dilation: int, causal: bool) -> bool:
    reach = (kernel - 1) * dilation + 1
    if reach == 1 or causal or size is None:
        return reach > 1
    return (math.ceil(size / stride) - 1) * stride + reach > size


def convolution(site: Site) -> Channels:
    """Conv1D, Conv2D, Conv3D, with strides, dilation and groups."""
    layer = site.layer
    if getattr(layer, "lora_enabled", False) or getattr(layer, "quantization_mode", None):
        return site.keep_all()[0]
    axis = channel_axis(layer)
    line = site.line(axis)
    ids = site.own(layer.filters)
    site.shrinks(filters=Count(ids))
    if layer.groups > 1:
        grouped_in, grouped_out = line.ids.reshape(layer.groups, -1), ids.reshape(layer.groups, -1)
        site.trace.even.append((grouped_in, grouped_out, site.path))
        site.shrinks(groups=Count(grouped_out))
    out = site.linear(
        line,
        layer.kernel,
        ids,
        bias=layer.bias if layer.use_bias else None,
        groups=layer.groups,
        uses=positions(spatial(layer, site.shape)),
        absorbs=not pads_zeros(layer, spatial(layer, site.inputs[0].shape)),
    )
    return activate(site, out, axis, layer.activation)


def transposed_convolution(site: Site) -> Channels:
    """Conv1DTranspose, Conv2DTranspose, Conv3DTranspose, whose kernels are (..., C_out, C_in).

    Neighbouring positions sum different numbers of taps, so that only the constant 0 stays constant.
    """
    layer = site.layer
    axis = channel_axis(layer)
    line = site.line(axis)
    ids = site.own(layer.filters)
    site.shrinks(filters=Count(ids))
    out = site.linear(
        line,
        layer.kernel,
        ids,
        bias=layer.bias if layer.use_bias else None,
        in_axis=-1,
        out_axis=-2,
        uses=positions(spatial(layer, site.inputs[0].shape)),
        absorbs=set(layer.kernel_size) == set(layer.strides) == {1},
    )
    return activate(site, out, axis, layer.activation)


RULES: dict[type, Rule] = {
    layers.Conv1DTranspose: transposed_convolution,
    layers.Conv2DTranspose: transposed_convolution,
    layers.Conv3DTranspose: transposed_convolution,
    layers.Conv1D: convolution,
    layers.Conv2D: convolution,
    layers.Conv3D: convolution,
}
