"""Depthwise convolutions, in which every channel is filtered by itself, alone or before a 1x1 convolution."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpgaprune.network.channels import AxisChannels, Channels
from fpgaprune.network.graph import value_of
from fpgaprune.network.role import Role
from fpgaprune.network.rules.activations import activate
from fpgaprune.network.site import LayerRule, Site, of_each_size
from fpgaprune.network.trace import Count
from fpgaprune.network.windows import channel_axis, pads_zeros, positions, spatial


def depthwise_convolution(site: Site) -> Channels:
    """`DepthwiseConv1D`, `DepthwiseConv2D`: input channel c makes the outputs c * m to c * m + m - 1."""
    layer = site.layer
    axis = channel_axis(layer)
    line = site.line(axis)
    kernel = value_of(layer.kernel)
    site.weight(layer.kernel, *(None,) * (kernel.ndim - 2), line.ids, None, uses=_positions(site))
    ids = np.repeat(line.ids, kernel.shape[-1])
    bias = np.zeros(ids.size)
    if layer.use_bias:
        site.weight(layer.bias, ids)
        bias = value_of(layer.bias, np.float64)
    return activate(site, _filtered(site, line, kernel, bias), axis, layer.activation)


def separable_convolution(site: Site) -> Channels:
    """`SeparableConv1D`, `SeparableConv2D`: depthwise without a bias, then 1x1, so that no constant meets a border."""
    layer = site.layer
    axis = channel_axis(layer)
    line = site.line(axis)
    kernel = value_of(layer.depthwise_kernel)
    site.weight(layer.depthwise_kernel, *(None,) * (kernel.ndim - 2), line.ids, None, uses=_positions(site))
    inner = _filtered(site, line, kernel, np.zeros(line.ids.size * kernel.shape[-1]))
    ids = site.own(layer.filters)
    site.shrinks(filters=Count(ids))
    out = site.linear(inner, layer.pointwise_kernel, ids, bias=layer.bias, uses=_positions(site))
    return activate(site, out, axis, layer.activation)


def _positions(site: Site) -> int:
    return positions(spatial(site.layer, site.shape))


def _filtered(site: Site, line: AxisChannels, kernel: NDArray[Any], bias: NDArray[np.float64]) -> AxisChannels:
    """`line` after a kernel (..., C_in, m) and a bias: constant where the kernel is zero or its source constant."""
    flat = kernel.reshape(-1, kernel.shape[-2] * kernel.shape[-1])
    multiplier = kernel.shape[-1]
    known, value = np.repeat(line.known, multiplier), np.repeat(line.value, multiplier)
    silent = np.abs(flat).max(axis=0) <= site.trace.tolerance  # False for NaN
    if pads_zeros(site.layer, spatial(site.layer, site.inputs[0].shape)):
        site.border(np.repeat(line.ids, multiplier)[known & (value != 0) & ~silent])
        known = known & (value == 0)
    result = np.where(silent, 0.0, flat.sum(axis=0, dtype=np.float64) * value) + bias
    return AxisChannels(np.repeat(line.ids, multiplier), known | silent, result)


RULES: dict[type, LayerRule] = {
    **of_each_size(LayerRule(depthwise_convolution, Role.DEPTHWISE), "DepthwiseConv{}D", sizes=(1, 2)),
    **of_each_size(LayerRule(separable_convolution), "SeparableConv{}D", sizes=(1, 2)),
}
