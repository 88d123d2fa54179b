"""Rules of Dense layers: unit o reads input i unless `W[i, o]` is zero; without padding, every constant folds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from keras import layers

from fpgaprune.network.channels import Channels, Role, positions
from fpgaprune.network.graph import value_of
from fpgaprune.network.in_use import in_parts
from fpgaprune.network.rules.activations import activate
from fpgaprune.network.site import LayerRule, Site
from fpgaprune.network.trace import Count


def dense(site: Site) -> Channels:
    """Return the rule of `Dense`, which works on the last axis."""
    layer = site.layer
    if in_parts(layer):
        return site.keep_all()[0]
    line = site.line(-1)
    ids = site.own(layer.units)
    site.shrinks(units=Count(ids))
    out = site.linear(line, layer.kernel, ids, bias=layer.bias, uses=positions(site.shape[:-1]))
    return activate(site, out, -1, layer.activation)


def einsum_dense(site: Site) -> Channels:
    """Apply the rule of an `EinsumDense` that sums over one axis: `...x,xy->...y` is a `Dense`; others keep outputs."""
    layer = site.layer
    source, kernel, result = _letters(layer.equation, len(site.inputs[0].shape) + 1)
    made = kernel[1:]
    simple = (
        kernel[0] in source
        and result.endswith(made)
        and not set(made) & set(source)
        and result.removesuffix(made) == source.replace(kernel[0], "")
        and kernel[0] != source[0]
        and layer.bias_axes in (None, made)
    )
    if not simple or in_parts(layer):
        return site.keep_all()[0]
    line = site.line(source.index(kernel[0]) - 1)
    bias, uses = layer.bias, positions(site.shape[: len(site.shape) - len(made)])
    # A layer without bias would need axes for a new one, so only the constant 0 leaves it.
    options: dict[str, Any] = {"uses": uses, "absorbs": bias is not None, "mergeable": False}
    if len(made) > 1:
        outputs = site.trace.own(layer, "outputs", math.prod(layer.kernel.shape[1:]))
        site.hold(outputs, "layout")
        values = None if bias is None else value_of(bias, np.float64).reshape(-1)
        site.linear(line, layer.kernel, outputs, bias_values=values, flat_outputs=True, **options)
        channels = site.trace.opaque(site.shape)
        site.hold(channels.ids, "layout")
        site.owns(np.broadcast_to(channels.ids.reshape(-1), (layer.kernel.shape[-1],)))
        return channels
    ids = site.own(layer.kernel.shape[-1])
    site.shrinks(output_shape=(*layer.partial_output_shape[:-1], Count(ids)))
    out = site.linear(line, layer.kernel, ids, bias=bias, **options)
    return activate(site, out, -1, layer.activation)


def _letters(equation: str, rank: int) -> tuple[str, str, str]:
    """Return the subscripts of input, kernel and output; letters replace an ellipsis, for an input of `rank` axes."""
    left, result = equation.replace(" ", "").split("->")
    source, kernel = left.split(",")
    unused = [chr(code) for code in range(ord("A"), ord("Z") + 1) if chr(code) not in equation]
    filled = "".join(unused[: rank - len(source.replace("...", ""))])
    return source.replace("...", filled), kernel, result.replace("...", filled)


RULES: dict[type, LayerRule] = {layers.Dense: LayerRule(dense, Role.DENSE), layers.EinsumDense: LayerRule(einsum_dense)}
