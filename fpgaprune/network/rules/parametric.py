"""The rule of `PReLU`: max(x, 0) + alpha * min(x, 0), with an alpha for each element of its shape."""

from __future__ import annotations

import numpy as np
from keras import layers

from fpgaprune.network.channels import AxisChannels, Channels
from fpgaprune.network.graph import value_of
from fpgaprune.network.site import LayerRule, Site
from fpgaprune.network.slots import Ids


def prelu(site: Site) -> Channels:
    """The rule of `PReLU`: a constant stays constant unless it is negative and its alphas differ between positions."""
    channels, alpha = site.inputs[0], value_of(site.layer.alpha, np.float64)
    if len(channels.varying) > 1:
        site.hold(channels.ids, "layout")
        return channels.unknown()
    axis = channels.varying[0] if channels.varying else len(channels.shape) - 1
    line = channels.line(axis)
    axes: list[Ids | None] = [None] * alpha.ndim
    if alpha.shape[axis] == line.ids.size:
        axes[axis] = line.ids
    site.weight(site.layer.alpha, *axes)
    flat = np.moveaxis(alpha, axis, -1).reshape(-1, alpha.shape[axis])
    known = line.known & ((line.value >= 0) | (flat.max(axis=0) == flat.min(axis=0)))
    value = np.where(line.value >= 0, line.value, flat[0] * line.value)
    return AxisChannels(line.ids, known, value).over(channels.shape, axis)


RULES: dict[type, LayerRule] = {layers.PReLU: LayerRule(prelu)}
