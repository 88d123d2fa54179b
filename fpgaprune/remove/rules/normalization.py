"""Normalisation layers. At inference BatchNormalization is one line per channel:

y = gamma * (x - mean) / sqrt(variance + epsilon) + beta

so that a constant goes through it, and gamma = 0 makes a constant of anything.
"""

from __future__ import annotations

import numpy as np
from keras import layers

from fpgaprune.remove.channels import Channels, Line
from fpgaprune.remove.graph import value_of
from fpgaprune.remove.trace import Rule, Site


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


RULES: dict[type, Rule] = {layers.BatchNormalization: batch_normalization}
