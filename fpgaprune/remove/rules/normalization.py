"""Normalisation layers and scales. At inference BatchNormalization is one line per channel:

y = gamma * (x - mean) / sqrt(variance + epsilon) + beta

so that a constant goes through it, and gamma = 0 makes a constant of anything. The others take their
statistics from the input itself, over the channels, so that no channel may leave.
"""

from __future__ import annotations

import numpy as np
from keras import layers

from fpgaprune.remove.channels import Channels, Line
from fpgaprune.remove.graph import value_of
from fpgaprune.remove.rules.activations import apply_elementwise
from fpgaprune.remove.site import Rule, Site


def batch_normalization(site: Site) -> Channels:
    """`BatchNormalization` with its moving statistics."""
    layer, channels = site.layer, site.inputs[0]
    axis = layer.axis % (len(channels.shape) + 1) - 1
    line = site.line(axis)
    zero, one = np.zeros(line.ids.shape), np.ones(line.ids.shape)
    for variable in layer.variables:
        site.weight(variable, line.ids)
    gamma = value_of(layer.gamma, np.float64) if layer.scale else one
    beta = value_of(layer.beta, np.float64) if layer.center else zero
    mean = value_of(layer.moving_mean, np.float64)
    variance = value_of(layer.moving_variance, np.float64)
    known = line.known | (gamma == 0)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        value = gamma * (line.value - mean) / np.sqrt(variance + layer.epsilon) + beta
    known &= np.isfinite(value)
    return Line(line.ids, known, np.where(known, value, 0.0)).over(channels.shape, axis)


def own_statistics(site: Site) -> Channels:
    """A layer that normalises over some axes by what it finds there."""
    channels = site.inputs[0]
    axis = site.layer.axis
    axes = axis if isinstance(axis, list | tuple) else [axis]
    if {k % (len(channels.shape) + 1) - 1 for k in axes} & set(channels.varying):
        site.hold(channels.ids, "mixed")
    return channels.unknown()


def grouped_statistics(site: Site) -> Channels:
    """`GroupNormalization`, whose groups of channels must stay whole."""
    site.hold(site.inputs[0].ids, "mixed")
    return site.inputs[0].unknown()


def rescaling(site: Site) -> Channels:
    """`Rescaling`: x * scale + offset; one with a number for each channel keeps them all."""
    scale, offset = site.layer.scale, site.layer.offset
    if not isinstance(scale, int | float) or not isinstance(offset, int | float):
        site.hold(site.inputs[0].ids, "layout")
        return site.inputs[0].unknown()
    return apply_elementwise(lambda x: x * scale + offset, site.inputs[0])


def input_normalization(site: Site) -> Channels:
    """`Normalization` with fixed statistics, which has a number for each channel."""
    site.hold(site.inputs[0].ids, "layout")
    return site.inputs[0].unknown()


RULES: dict[type, Rule] = {
    layers.BatchNormalization: batch_normalization,
    layers.GroupNormalization: grouped_statistics,
    layers.LayerNormalization: own_statistics,
    layers.Normalization: input_normalization,
    layers.RMSNormalization: own_statistics,
    layers.Rescaling: rescaling,
    layers.UnitNormalization: own_statistics,
}
