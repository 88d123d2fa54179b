"""Rules of depthwise convolutions, which filter each channel alone, and of separable ones, with a 1x1 one after."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fpgaprune.network.channels import AxisChannels, Channels
from fpgaprune.network.graph import value_of
from fpgaprune.network.role import Role
from fpgaprune.network.rules.activations import activate
from fpgaprune.network.site import LayerRule, Site, of_each_size
from fpgaprune.network.trace import Count
from fpgaprune.network.windows import channel_axis, pads_zeros, positions, spatial

if TYPE_CHECKING:
    import keras


def depthwise_convolution(site: Site) -> Channels:
    """The rule of `DepthwiseConv1D`, `DepthwiseConv2D`: input c makes the outputs c * m to c * m + m - 1."""
    layer, axis = site.layer, channel_axis(site.layer)
    return activate(site, _filtered(site, site.line(axis), layer.kernel, layer.bias), axis, layer.activation)


def separable_convolution(site: Site) -> Channels:
    """The rule of `SeparableConv1D`, `SeparableConv2D`: depthwise without a bias, then 1x1, which pads nothing."""
    layer, axis = site.layer, channel_axis(site.layer)
    inner = _filtered(site, site.line(axis), layer.depthwise_kernel)
    ids = site.own(layer.filters)
    site.shrinks(filters=Count(ids))
    out = site.linear(inner, layer.pointwise_kernel, ids, bias=layer.bias, uses=_positions(site))
    return activate(site, out, axis, layer.activation)


def _positions(site: Site) -> int:
    return positions(spatial(site.layer, site.shape))


def _filtered(site: Site, line: AxisChannels, variable: keras.Variable, bias: object = None) -> AxisChannels:
    """`line` after a kernel (..., C_in, m) and a bias: constant if the kernel is zero or its input is constant."""
    kernel = value_of(variable)
    site.weight(variable, *(None,) * (kernel.ndim - 2), line.ids, None, uses=_positions(site))
    flat = kernel.reshape(-1, kernel.shape[-2] * kernel.shape[-1])
    ids, known = np.repeat(line.ids, kernel.shape[-1]), np.repeat(line.known, kernel.shape[-1])
    value = np.repeat(line.value, kernel.shape[-1])
    silent = np.abs(flat).max(axis=0) <= site.trace.tolerance  # False for NaN
    if pads_zeros(site.layer, spatial(site.layer, site.inputs[0].shape)):
        site.border(ids[known & (value != 0) & ~silent])
        known = known & (value == 0)
    result = np.where(silent, 0.0, flat.sum(axis=0, dtype=np.float64) * value)
    if bias is not None:
        site.weight(bias, ids)
        result = result + value_of(bias, np.float64)
    return AxisChannels(ids, known | silent, result)


RULES: dict[type, LayerRule] = {
    **of_each_size(LayerRule(depthwise_convolution, Role.DEPTHWISE), "DepthwiseConv{}D", sizes=(1, 2)),
    **of_each_size(LayerRule(separable_convolution, Role.SEPARABLE), "SeparableConv{}D", sizes=(1, 2)),
}
