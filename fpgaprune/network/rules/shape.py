"""Rules of layers that move, pool, resample or pad elements: channels move with them, or keep their places.

With `same` padding, Keras does not count the padding in a mean, so borders change nothing; the mean or maximum of a
constant is that constant.
"""

from __future__ import annotations

import numpy as np
from keras import layers

from fpgaprune.network.channels import Channels, Role, channel_axis
from fpgaprune.network.site import LayerRule, Site, of_each_size
from fpgaprune.network.trace import Count


def flatten(site: Site) -> Channels:
    """Return the rule of `Flatten`: channel c of (H, W, C) goes to all indices (h * W + w) * C + c."""
    channels = site.inputs[0]
    if site.layer.data_format == "channels_first" and len(channels.shape) > 1:
        channels = channels.transposed((*range(1, len(channels.shape)), 0))
    return _reshaped(site, channels)


def reshape(site: Site) -> Channels:
    """Apply the rule of `Reshape`: row-major order into a new shape, whose entries shrink with their channels."""
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
    """Return the rule of `Permute`, whose `dims` count from 1."""
    return site.inputs[0].transposed(tuple(int(axis) - 1 for axis in np.asarray(site.layer.dims)))


def repeat_vector(site: Site) -> Channels:
    """Return the rule of `RepeatVector`: (F,) to (n, F)."""
    return site.line(0).over(site.shape, 1)


def pooling(site: Site) -> Channels:
    """Return the rule of a window that slides over the spatial axes."""
    axis = channel_axis(site.layer)
    return site.line(axis).over(site.shape, axis % len(site.shape))


def global_pooling(site: Site) -> Channels:
    """Return the rule of pooling over all positions; with `keepdims`, the spatial axes stay with length 1."""
    axis = channel_axis(site.layer)
    line = site.line(axis)
    return line.over(site.shape, axis % len(site.shape) if site.layer.keepdims else 0)


def resampling(site: Site) -> Channels:
    """Apply the rule of `UpSampling`, `Cropping`: values are copied, or are weighted means with rounded weights."""
    axis = channel_axis(site.layer) if hasattr(site.layer, "data_format") else -1
    line = site.line(axis)
    if getattr(site.layer, "interpolation", "nearest") != "nearest":
        line = line.zeros_only()
    return line.over(site.shape, axis % len(site.shape))


def zero_padding(site: Site) -> Channels:
    """Return the rule of `ZeroPadding`: only the constant 0 stays constant."""
    axis = channel_axis(site.layer)
    line = site.line(axis)
    if site.shape == site.inputs[0].shape and None not in site.shape:
        return site.inputs[0]
    site.border(line.ids[line.known & (line.value != 0)])
    return line.zeros_only().over(site.shape, axis % len(site.shape))


RULES: dict[type, LayerRule] = {
    layers.Flatten: LayerRule(flatten, Role.FLAT),
    layers.Permute: LayerRule(permute),
    layers.RepeatVector: LayerRule(repeat_vector),
    layers.Reshape: LayerRule(reshape, Role.FLAT),
    **of_each_size(LayerRule(resampling, Role.POSITIONS), "Cropping{}D", "UpSampling{}D"),
    **of_each_size(LayerRule(zero_padding, Role.POSITIONS), "ZeroPadding{}D"),
    **of_each_size(LayerRule(pooling, Role.POSITIONS), "AveragePooling{}D", "MaxPooling{}D"),
    **of_each_size(LayerRule(global_pooling, Role.POSITIONS), "GlobalAveragePooling{}D", "GlobalMaxPooling{}D"),
}
