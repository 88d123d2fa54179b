"""Pooling, resampling and padding: every channel by itself; the mean or the largest of a constant is that constant.

Keras' `same` padding leaves the outside out of the mean, so borders change nothing.
"""

from __future__ import annotations

import numpy as np
from keras import layers

from fpgaprune.network.channels import Channels, Line
from fpgaprune.network.rules.convolution import channel_axis
from fpgaprune.network.site import Rule, Site


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
        known = line.known & (line.value == 0)
        line = Line(line.ids, known, np.zeros(known.shape))
    return line.over(site.shape, axis % len(site.shape))


def zero_padding(site: Site) -> Channels:
    """`ZeroPadding`: of all constants only 0 stays one."""
    axis = channel_axis(site.layer)
    line = site.line(axis)
    if site.shape == site.inputs[0].shape and None not in site.shape:
        return site.inputs[0]
    site.border(line.ids[line.known & (line.value != 0)])
    known = line.known & (line.value == 0)
    return Line(line.ids, known, np.zeros(known.shape)).over(site.shape, axis % len(site.shape))


RULES: dict[type, Rule] = {
    layers.Cropping1D: resampling,
    layers.Cropping2D: resampling,
    layers.Cropping3D: resampling,
    layers.UpSampling1D: resampling,
    layers.UpSampling2D: resampling,
    layers.UpSampling3D: resampling,
    layers.ZeroPadding1D: zero_padding,
    layers.ZeroPadding2D: zero_padding,
    layers.ZeroPadding3D: zero_padding,
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
