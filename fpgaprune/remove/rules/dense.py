"""Dense: unit o reads input i unless `W[i, o]` is zero; nothing is padded, so every constant folds."""

from __future__ import annotations

from keras import layers

from fpgaprune.remove.channels import Channels
from fpgaprune.remove.rules.activations import activate
from fpgaprune.remove.rules.convolution import positions
from fpgaprune.remove.trace import Count, Rule, Site


def dense(site: Site) -> Channels:
    """`Dense` on the last axis."""
    layer = site.layer
    if getattr(layer, "lora_enabled", False) or getattr(layer, "quantization_mode", None):
        return site.keep_all()[0]
    line = site.line(-1)
    ids = site.own(layer.units)
    site.shrinks(units=Count(ids))
    bias = layer.bias if layer.use_bias else None
    out = site.linear(line, layer.kernel, ids, bias=bias, uses=positions(site.shape[:-1]))
    return activate(site, out, -1, layer.activation)


RULES: dict[type, Rule] = {layers.Dense: dense}
