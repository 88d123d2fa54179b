"""Describes the window of a convolution or pooling: its axes, its positions, and whether it reads padding."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from fpgaprune.network.channels import Shape

if TYPE_CHECKING:
    import keras


def channel_axis(layer: keras.Layer) -> int:
    """The axis of channels in a shape without the batch axis."""
    return 0 if layer.data_format == "channels_first" else -1


def spatial(layer: keras.Layer, shape: Shape) -> Shape:
    """The sizes of the spatial axes."""
    return shape[1:] if layer.data_format == "channels_first" else shape[:-1]


def positions(sizes: Shape) -> int:
    """The number of positions of a kernel; an unknown size counts as 1."""
    return math.prod(size or 1 for size in sizes)


def pads_zeros(layer: keras.Layer, sizes: Shape) -> bool:
    """Whether some tap of the kernel reads a zero of the padding."""
    if layer.padding == "valid":
        return False
    steps = zip(sizes, layer.kernel_size, layer.strides, layer.dilation_rate, strict=True)
    return any(_pads_axis(*step, causal=layer.padding == "causal") for step in steps)


def _pads_axis(size: int | None, kernel: int, stride: int, dilation: int, causal: bool) -> bool:
    reach = (kernel - 1) * dilation + 1
    if reach == 1 or causal or size is None:
        return reach > 1
    return (math.ceil(size / stride) - 1) * stride + reach > size
