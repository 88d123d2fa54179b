"""Pooling: every channel by itself; the mean or the largest of a constant is that constant.

Keras' `same` padding leaves the outside out of the mean, so borders change nothing.
"""

from __future__ import annotations

from keras import layers

from fpgaprune.remove.channels import Channels
from fpgaprune.remove.rules.convolution import channel_axis
from fpgaprune.remove.trace import Rule, Site


def pooling(site: Site) -> Channels:
    """A window that slides over the spatial axes."""
    axis = channel_axis(site.layer)
    return site.line(axis).over(site.shape, axis % len(site.shape))


def global_pooling(site: Site) -> Channels:
    """All spatial axes become one value, or axes of length 1 with `keepdims`."""
    axis = channel_axis(site.layer)
    line = site.line(axis)
    return line.over(site.shape, axis % len(site.shape) if site.layer.keepdims else 0)


RULES: dict[type, Rule] = {
    layers.AveragePooling1D: pooling,
    layers.AveragePooling2D: pooling,
    layers.AveragePooling3D: pooling,
    layers.MaxPooling1D: pooling,
    layers.MaxPooling2D: pooling,
    layers.MaxPooling3D: pooling,
    layers.GlobalAveragePooling1D: global_pooling,
    layers.GlobalAveragePooling2D: global_pooling,
    layers.GlobalAveragePooling3D: global_pooling,
    layers.GlobalMaxPooling1D: global_pooling,
    layers.GlobalMaxPooling2D: global_pooling,
    layers.GlobalMaxPooling3D: global_pooling,
}
