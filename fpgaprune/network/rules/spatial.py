"""Rules of pooling, resampling and padding: each channel alone; the mean or maximum of a constant is that constant.

With `same` padding, Keras does not count the padding in the mean, so borders change nothing.
"""

from __future__ import annotations

from fpgaprune.network.channels import Channels
from fpgaprune.network.role import Role
from fpgaprune.network.site import LayerRule, Site, of_each_size
from fpgaprune.network.windows import channel_axis


def pooling(site: Site) -> Channels:
    """The rule of a window that slides over the spatial axes."""
    axis = channel_axis(site.layer)
    return site.line(axis).over(site.shape, axis % len(site.shape))


def global_pooling(site: Site) -> Channels:
    """The rule of pooling over all positions; with `keepdims`, the spatial axes stay with length 1."""
    axis = channel_axis(site.layer)
    line = site.line(axis)
    return line.over(site.shape, axis % len(site.shape) if site.layer.keepdims else 0)


def resampling(site: Site) -> Channels:
    """The rule of `UpSampling`, `Cropping`: values are copied, or are weighted means whose weights are rounded."""
    axis = channel_axis(site.layer) if hasattr(site.layer, "data_format") else -1
    line = site.line(axis)
    if getattr(site.layer, "interpolation", "nearest") != "nearest":
        line = line.zeros_only()
    return line.over(site.shape, axis % len(site.shape))


def zero_padding(site: Site) -> Channels:
    """The rule of `ZeroPadding`: only the constant 0 stays constant."""
    axis = channel_axis(site.layer)
    line = site.line(axis)
    if site.shape == site.inputs[0].shape and None not in site.shape:
        return site.inputs[0]
    site.border(line.ids[line.known & (line.value != 0)])
    return line.zeros_only().over(site.shape, axis % len(site.shape))


RULES: dict[type, LayerRule] = {
    **of_each_size(LayerRule(resampling, Role.POSITIONS), "Cropping{}D", "UpSampling{}D"),
    **of_each_size(LayerRule(zero_padding, Role.POSITIONS), "ZeroPadding{}D"),
    **of_each_size(LayerRule(pooling, Role.POSITIONS), "AveragePooling{}D", "MaxPooling{}D"),
    **of_each_size(LayerRule(global_pooling, Role.POSITIONS), "GlobalAveragePooling{}D", "GlobalMaxPooling{}D"),
}
