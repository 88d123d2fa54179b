"""Pooling, resampling and padding: every channel by itself; the mean or the largest of a constant is that constant.

Keras' `same` padding leaves the outside out of the mean, so borders change nothing.
"""

from __future__ import annotations

from fpgaprune.network.channels import Channels
from fpgaprune.network.role import Role
from fpgaprune.network.site import LayerRule, Site, of_each_size
from fpgaprune.network.windows import channel_axis


def pooling(site: Site) -> Channels:
    """A window that slides over the spatial axes."""
    axis = channel_axis(site.layer)
    return site.line(axis).over(site.shape, axis % len(site.shape))


def global_pooling(site: Site) -> Channels:
    """All spatial axes become one value, or axes of length 1 with `keepdims`."""
    axis = channel_axis(site.layer)
    line = site.line(axis)
    return line.over(site.shape, axis % len(site.shape) if site.layer.keepdims else 0)


def resampling(site: Site) -> Channels:
    """`UpSampling`, `Cropping`: new values are copies of old ones, or weighted means whose weights are rounded."""
    axis = channel_axis(site.layer) if hasattr(site.layer, "data_format") else -1
    line = site.line(axis)
    if getattr(site.layer, "interpolation", "nearest") != "nearest":
        line = line.zeros_only()
    return line.over(site.shape, axis % len(site.shape))


def zero_padding(site: Site) -> Channels:
    """`ZeroPadding`: of all constants only 0 stays one."""
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
