"""Element-wise functions: channels stay what they are, a constant c becomes f(c)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import keras
import numpy as np
from keras import layers

from fpgaprune.network.activation_traits import is_elementwise
from fpgaprune.network.channels import AxisChannels, Channels
from fpgaprune.network.graph import value_of
from fpgaprune.network.role import Role
from fpgaprune.network.site import LayerRule, Site, of_each_size


def apply_elementwise(function: Callable[[Any], Any], channels: Channels) -> Channels:
    """`channels` after an element-wise function: every constant goes through it, in float64."""
    if not channels.known.any():
        return channels
    inside = keras.ops.convert_to_tensor(channels.value[channels.known], dtype="float64")
    value = channels.value.copy()
    value[channels.known] = value_of(function(inside), np.float64)
    return replace(channels, value=value)


def activate(site: Site, line: AxisChannels, axis: int, function: Any) -> Channels:
    """The output of a layer whose linear part gave `line` along `axis`, after the layer's own activation."""
    channels = line.over(site.shape, axis % len(site.shape))
    return channels if function is None else _applied(site, channels, function)


def activation(site: Site) -> Channels:
    """`Activation`, which names its function."""
    return _applied(site, site.inputs[0], site.layer.activation)


def _applied(site: Site, channels: Channels, function: Any) -> Channels:
    if is_elementwise(function):
        return apply_elementwise(function, channels)
    # Softmax and the like mix channels, and so does, for all that is known, a function of the user's.
    site.hold(channels.ids, "mixed")
    return channels.unknown()


def elementwise(site: Site) -> Channels:
    """A layer without weights that computes each element from that element."""
    return apply_elementwise(site.layer.call, site.inputs[0])


def identity(site: Site) -> Channels:
    """A layer that hands its input on at inference."""
    return site.inputs[0]


def softmax(site: Site) -> Channels:
    """A layer in which the elements along some axes weigh on each other."""
    channels = site.inputs[0]
    axes = site.layer.axis if isinstance(site.layer.axis, list | tuple) else [site.layer.axis]
    rank = len(channels.shape) + 1
    if any(axis % rank - 1 in channels.varying for axis in axes):
        site.hold(channels.ids, "mixed")
    return channels.unknown()


_AT_INFERENCE_NOTHING = "ActivityRegularization AlphaDropout Dropout GaussianDropout GaussianNoise Identity"

RULES: dict[type, LayerRule] = {
    layers.Activation: LayerRule(activation, Role.POINTWISE),
    layers.Softmax: LayerRule(softmax),
    **dict.fromkeys((layers.ELU, layers.LeakyReLU, layers.ReLU), LayerRule(elementwise, Role.POINTWISE)),
    **{getattr(layers, name): LayerRule(identity, Role.IDENTITY) for name in _AT_INFERENCE_NOTHING.split()},
    **of_each_size(LayerRule(identity, Role.IDENTITY), "SpatialDropout{}D"),
}
