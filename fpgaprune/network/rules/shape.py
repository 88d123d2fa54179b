"""Rules of layers that only move elements: the channels move with them."""

from __future__ import annotations

import numpy as np
from keras import layers

from fpgaprune.network.channels import Channels
from fpgaprune.network.role import Role
from fpgaprune.network.site import LayerRule, Site
from fpgaprune.network.trace import Count


def flatten(site: Site) -> Channels:
    """The rule of `Flatten`: channel c of (H, W, C) goes to all indices (h * W + w) * C + c."""
    channels = site.inputs[0]
    if site.layer.data_format == "channels_first" and len(channels.shape) > 1:
        channels = channels.transposed((*range(1, len(channels.shape)), 0))
    return _reshaped(site, channels)


def reshape(site: Site) -> Channels:
    """The rule of `Reshape`: row-major order into a new shape, whose entries shrink with the channels on them."""
    result = _reshaped(site, site.inputs[0])
    site.shrinks(target_shape=tuple(_size(result, axis) for axis in range(len(result.shape))))
    return result


def _reshaped(site: Site, channels: Channels) -> Channels:
    shape = site.shape
    result = channels.reshaped(shape)
    if result is None:
        site.hold(channels.ids, "layout")
        return site.trace.opaque(shape)
    if len(result.varying) > 1:  # the elements that stay after a removal might not form a full array
        site.hold(result.ids, "layout")
    return result


def _size(channels: Channels, axis: int) -> int | Count:
    size = channels.shape[axis]
    if axis in channels.varying and len(channels.varying) == 1:
        return Count(channels.line(axis).ids)
    return -1 if size is None else size


def permute(site: Site) -> Channels:
    """The rule of `Permute`, whose `dims` count from 1."""
    return site.inputs[0].transposed(tuple(int(axis) - 1 for axis in np.asarray(site.layer.dims)))


def repeat_vector(site: Site) -> Channels:
    """The rule of `RepeatVector`: (F,) to (n, F)."""
    return site.line(0).over(site.shape, 1)


RULES: dict[type, LayerRule] = {
    layers.Flatten: LayerRule(flatten, Role.FLAT),
    layers.Permute: LayerRule(permute),
    layers.RepeatVector: LayerRule(repeat_vector),
    layers.Reshape: LayerRule(reshape, Role.FLAT),
}
