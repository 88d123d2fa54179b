"""Rules of convolutions: output channel o reads input channel i unless all of `W[..., i, o]` is zero.

An output is constant if everything that it reads is constant. This fails at a zero-padded border for constants other
than 0, because taps in the padding read 0 instead of the constant.
"""

from __future__ import annotations

from fpgaprune.network.channels import Channels
from fpgaprune.network.parts import in_parts
from fpgaprune.network.role import Role
from fpgaprune.network.rules.activations import activate
from fpgaprune.network.site import LayerRule, Site, of_each_size
from fpgaprune.network.trace import Count
from fpgaprune.network.windows import channel_axis, pads_zeros, positions, spatial


def convolution(site: Site) -> Channels:
    """The rule of Conv1D, Conv2D, Conv3D, with strides, dilation and groups."""
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
    """The rule of Conv1DTranspose, Conv2DTranspose, Conv3DTranspose, whose kernels are (..., C_out, C_in).

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


RULES: dict[type, LayerRule] = {
    **of_each_size(LayerRule(convolution, Role.CONVOLUTION), "Conv{}D"),
    **of_each_size(LayerRule(transposed_convolution, Role.TRANSPOSED), "Conv{}DTranspose"),
}
