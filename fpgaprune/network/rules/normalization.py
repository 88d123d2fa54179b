"""Rules of normalisation layers and scales.

At inference BatchNormalization computes for each channel

y = gamma * (x - mean) / sqrt(variance + epsilon) + beta

so a constant stays a constant, and gamma = 0 makes any input a constant. Most of the others take their statistics from
the input itself, over the channels, so no channel can leave.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import keras
import numpy as np
from keras import layers

from fpgaprune.network.channels import AxisChannels, Channels, Role
from fpgaprune.network.graph import value_of
from fpgaprune.network.rules.activations import apply_elementwise
from fpgaprune.network.site import LayerRule, Site
from fpgaprune.network.trace import Listed


def batch_normalization(site: Site) -> Channels:
    """Return the rule of `BatchNormalization` with its moving statistics."""
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
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        value = gamma * (line.value - mean) / np.sqrt(variance + layer.epsilon) + beta
    return AxisChannels(line.ids, line.known | (gamma == 0), value).over(channels.shape, axis)


def own_statistics(site: Site) -> Channels:
    """Return the rule of a layer that normalises over some axes by the statistics of its input."""
    channels = site.inputs[0]
    axis = site.layer.axis
    axes = axis if isinstance(axis, list | tuple) else [axis]
    if {k % (len(channels.shape) + 1) - 1 for k in axes} & set(channels.varying):
        site.hold(channels.ids, "mixed")
    return channels.unknown()


def grouped_statistics(site: Site) -> Channels:
    """Return the rule of `GroupNormalization`, whose groups of channels must stay complete."""
    site.hold(site.inputs[0].ids, "mixed")
    return site.inputs[0].unknown()


def rescaling(site: Site) -> Channels:
    """Return the rule of `Rescaling`: x * scale + offset, with one number for all channels or one for each."""
    scale, offset = (np.asarray(x, np.float64) for x in (site.layer.scale, site.layer.offset))
    if not scale.ndim and not offset.ndim:
        return apply_elementwise(lambda x: x * float(scale) + float(offset), site.inputs[0])
    axis = len(site.inputs[0].shape) - 1
    line = site.line(axis)
    if any(array.shape not in ((), line.ids.shape) for array in (scale, offset)):
        site.hold(line.ids, "layout")
        return site.inputs[0].unknown()
    _keep_listed(site, line, scale=scale, offset=offset)
    return replace(line, value=line.value * scale + offset).over(site.shape, axis)


def input_normalization(site: Site) -> Channels:
    """Apply the rule of `Normalization`: (x - mean) / sqrt(variance), or its inverse, with fixed statistics."""
    layer, channels = site.layer, site.inputs[0]
    given = layer.input_mean is not None
    if len(layer._keep_axis) > 1 or (given and np.ndim(layer.input_mean) > 1):
        site.hold(channels.ids, "layout")
        for variable in layer.variables:
            site.weight(variable, *[None] * len(variable.shape))
        return channels.unknown()
    axis = layer._keep_axis[0] - 1 if layer._keep_axis else len(channels.shape) - 1
    line = site.line(axis)
    for variable in layer.variables:
        site.weight(variable, *[line.ids] * len(variable.shape))
    mean, variance = (value_of(x, np.float64).reshape(-1) for x in (layer.mean, layer.variance))
    if given:
        _keep_listed(site, line, mean=np.asarray(layer.input_mean), variance=np.asarray(layer.input_variance))
    deviation = np.maximum(np.sqrt(variance), keras.config.epsilon())
    value = mean + line.value * deviation if layer.invert else (line.value - mean) / deviation
    return replace(line, value=value).over(channels.shape, axis)


def _keep_listed(site: Site, line: AxisChannels, **entries: Any) -> None:
    """Keep, in config entries with a number for each channel of `line`, the numbers of the channels that stay."""
    site.shrinks(
        **{key: Listed(line.ids, tuple(x.tolist())) for key, x in entries.items() if x.shape == line.ids.shape}
    )


RULES: dict[type, LayerRule] = {
    layers.BatchNormalization: LayerRule(batch_normalization, Role.NORM),
    layers.GroupNormalization: LayerRule(grouped_statistics),
    layers.Normalization: LayerRule(input_normalization),
    layers.Rescaling: LayerRule(rescaling),
    **dict.fromkeys(
        (layers.LayerNormalization, layers.RMSNormalization, layers.UnitNormalization), LayerRule(own_statistics)
    ),
}
