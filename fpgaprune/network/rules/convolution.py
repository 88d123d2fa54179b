"""Rules of convolutions: output channel o reads input channel i unless all of `W[..., i, o]` is zero.

An output is constant if everything that it reads is constant. This fails at a zero-padded border for constants other
than 0, because taps in the padding read 0 instead of the constant.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fpgaprune.network.channels import AxisChannels, Channels, Role, channel_axis, pads_zeros, positions, spatial
from fpgaprune.network.graph import value_of
from fpgaprune.network.in_use import in_parts
from fpgaprune.network.rules.activations import activate
from fpgaprune.network.site import LayerRule, Site, of_each_size
from fpgaprune.network.trace import Count

if TYPE_CHECKING:
    import keras


def convolution(site: Site) -> Channels:
    """Return the rule of Conv1D, Conv2D, Conv3D, with strides, dilation and groups."""
    layer = site.layer
    if in_parts(layer):
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
        bias=layer.bias,
        groups=layer.groups,
        uses=positions(spatial(layer, site.shape)),
        absorbs=not pads_zeros(layer, spatial(layer, site.inputs[0].shape)),
    )
    return activate(site, out, axis, layer.activation)


def transposed_convolution(site: Site) -> Channels:
    """Return the rule of Conv1DTranspose, Conv2DTranspose, Conv3DTranspose, whose kernels are (..., C_out, C_in).

    Neighbouring positions sum different numbers of taps, so only the constant 0 stays constant.
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
        bias=layer.bias,
        in_axis=-1,
        out_axis=-2,
        uses=positions(spatial(layer, site.inputs[0].shape)),
        absorbs=set(layer.kernel_size) == set(layer.strides) == {1},
    )
    return activate(site, out, axis, layer.activation)


def depthwise_convolution(site: Site) -> Channels:
    """Return the rule of `DepthwiseConv1D`, `DepthwiseConv2D`: input c makes the outputs c * m to c * m + m - 1."""
    layer, axis = site.layer, channel_axis(site.layer)
    return activate(site, _filtered(site, site.line(axis), layer.kernel, layer.bias), axis, layer.activation)


def separable_convolution(site: Site) -> Channels:
    """Apply the rule of `SeparableConv1D` and `2D`: depthwise without a bias, then 1x1, which pads nothing."""
    layer, axis = site.layer, channel_axis(site.layer)
    inner = _filtered(site, site.line(axis), layer.depthwise_kernel)
    ids = site.own(layer.filters)
    site.shrinks(filters=Count(ids))
    out = site.linear(inner, layer.pointwise_kernel, ids, bias=layer.bias, uses=_positions(site))
    return activate(site, out, axis, layer.activation)


def _positions(site: Site) -> int:
    return positions(spatial(site.layer, site.shape))


def _filtered(site: Site, line: AxisChannels, variable: keras.Variable, bias: object = None) -> AxisChannels:
    """Apply a kernel (..., C_in, m) and a bias to `line`: a zero kernel or a constant input makes a constant."""
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
    **of_each_size(LayerRule(convolution, Role.CONVOLUTION), "Conv{}D"),
    **of_each_size(LayerRule(transposed_convolution, Role.TRANSPOSED), "Conv{}DTranspose"),
    **of_each_size(LayerRule(depthwise_convolution, Role.DEPTHWISE), "DepthwiseConv{}D", sizes=(1, 2)),
    **of_each_size(LayerRule(separable_convolution, Role.SEPARABLE), "SeparableConv{}D", sizes=(1, 2)),
}
