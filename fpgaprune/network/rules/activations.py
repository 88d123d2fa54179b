"""Element-wise functions: channels stay what they are, a constant c becomes f(c)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
from keras import activations, layers

from fpgaprune.design.functions import FUNCTIONS
from fpgaprune.network.channels import Channels, Line
from fpgaprune.network.graph import value_of
from fpgaprune.network.site import Rule, Site

# By identity: a function that merely has a known name is not one of these.
ELEMENTWISE = {getattr(activations, name) for name in FUNCTIONS if hasattr(activations, name)}


def apply_elementwise(function: Callable[[Any], Any], channels: Channels) -> Channels:
    """`channels` after an element-wise function: every constant goes through it, in float64."""
    if not channels.known.any():
        return channels
    inside = keras.ops.convert_to_tensor(channels.value[channels.known], dtype="float64")
    outside = value_of(function(inside), np.float64)
    known, value = channels.known.copy(), channels.value.copy()
    value[known] = outside
    known &= np.isfinite(value)
    return Channels(channels.shape, channels.ids, known, np.where(known, value, 0.0))


def activate(site: Site, line: Line, axis: int, function: Any) -> Channels:
    """The output of a layer whose linear part gave `line` along `axis`, after the layer's own activation."""
    channels = line.over(site.shape, axis % len(site.shape))
    if function is None:
        return channels
    if function in ELEMENTWISE:
        return apply_elementwise(function, channels)
    # Softmax and the like mix channels, and so does, for all that is known, a function of the user's.
    site.hold(channels.ids, "mixed")
    return channels.unknown()


def activation(site: Site) -> Channels:
    """`Activation`, which names its function."""
    channels = site.inputs[0]
    if site.layer.activation in ELEMENTWISE:
        return apply_elementwise(site.layer.activation, channels)
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


RULES: dict[type, Rule] = {
    layers.Activation: activation,
    layers.ELU: elementwise,
    layers.LeakyReLU: elementwise,
    layers.ReLU: elementwise,
    layers.Softmax: softmax,
    layers.ActivityRegularization: identity,
    layers.AlphaDropout: identity,
    layers.Dropout: identity,
    layers.GaussianDropout: identity,
    layers.GaussianNoise: identity,
    layers.Identity: identity,
    layers.SpatialDropout1D: identity,
    layers.SpatialDropout2D: identity,
    layers.SpatialDropout3D: identity,
}
