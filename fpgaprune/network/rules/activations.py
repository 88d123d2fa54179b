"""Rules of element-wise functions f: channels stay as they are, and a constant c becomes f(c)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import keras
import numpy as np
from keras import layers

from fpgaprune.network.channels import AxisChannels, Channels
from fpgaprune.network.each_alone import elementwise_of
from fpgaprune.network.graph import value_of
from fpgaprune.network.identities import IDENTITIES
from fpgaprune.network.role import Role
from fpgaprune.network.site import LayerRule, Site


def apply_elementwise(function: Callable[[Any], Any], channels: Channels) -> Channels:
    """`channels` after the element-wise `function`, which is applied to every constant in float64."""
    if not channels.known.any():
        return channels
    inside = keras.ops.convert_to_tensor(channels.value[channels.known], dtype="float64")
    value = channels.value.copy()
    value[channels.known] = value_of(function(inside), np.float64)
    return replace(channels, value=value)


def activate(site: Site, line: AxisChannels, axis: int, function: object) -> Channels:
    """The output of a layer whose linear part makes `line` along `axis`, after the layer's activation `function`."""
    channels = line.over(site.shape, axis % len(site.shape))
    return channels if function is None else _applied(site, channels, function)


def activation(site: Site) -> Channels:
    """The rule of `Activation`."""
    return _applied(site, site.inputs[0], site.layer.activation)


def _applied(site: Site, channels: Channels, function: object) -> Channels:
    computes = elementwise_of(function)
    if computes is not None:
        return apply_elementwise(computes, channels)
    # Functions such as softmax mix channels, and a user's function may.
    site.hold(channels.ids, "mixed")
    return channels.unknown()


def elementwise(site: Site) -> Channels:
    """The rule of a layer without weights that computes each element from that element alone."""
    return apply_elementwise(site.layer.call, site.inputs[0])


def identity(site: Site) -> Channels:
    """The rule of a layer whose output is its input at inference."""
    return site.inputs[0]


def softmax(site: Site) -> Channels:
    """The rule of a layer in which each element depends on all elements along some axes."""
    channels = site.inputs[0]
    axes = site.layer.axis if isinstance(site.layer.axis, list | tuple) else [site.layer.axis]
    rank = len(channels.shape) + 1
    if any(axis % rank - 1 in channels.varying for axis in axes):
        site.hold(channels.ids, "mixed")
    return channels.unknown()


RULES: dict[type, LayerRule] = {
    layers.Activation: LayerRule(activation, Role.POINTWISE),
    layers.Softmax: LayerRule(softmax),
    **dict.fromkeys((layers.ELU, layers.LeakyReLU, layers.ReLU), LayerRule(elementwise, Role.POINTWISE)),
    # A version of Keras may lack the newest augmentations.
    **{getattr(layers, name): LayerRule(identity, Role.IDENTITY) for name in IDENTITIES if hasattr(layers, name)},
}
