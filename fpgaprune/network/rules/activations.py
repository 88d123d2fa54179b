"""Rules of element-wise functions f: channels stay as they are, and a constant c becomes f(c)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import keras
import numpy as np
from keras import layers

from fpgaprune.design import FUNCTIONS
from fpgaprune.network.channels import AxisChannels, Channels, Ids, Role
from fpgaprune.network.functions import IDENTITIES, activation_of
from fpgaprune.network.graph import value_of
from fpgaprune.network.site import LayerRule, Site


def apply_elementwise(function: Callable[[Any], Any], channels: Channels) -> Channels:
    """Apply the element-wise `function` to `channels`, in float64 to every constant."""
    if not channels.known.any():
        return channels
    inside = keras.ops.convert_to_tensor(channels.value[channels.known], dtype="float64")
    value = channels.value.copy()
    value[channels.known] = value_of(function(inside), np.float64)
    return replace(channels, value=value)


def activate(site: Site, line: AxisChannels, axis: int, function: object) -> Channels:
    """Return the output of a layer whose linear part makes `line` along `axis`, after its activation `function`."""
    channels = line.over(site.shape, axis % len(site.shape))
    return channels if function is None else _applied(site, channels, function)


def activation(site: Site) -> Channels:
    """Return the rule of `Activation`."""
    return _applied(site, site.inputs[0], site.layer.activation)


def _applied(site: Site, channels: Channels, function: object) -> Channels:
    computes = elementwise_of(function)
    if computes is not None:
        return apply_elementwise(computes, channels)
    # Functions such as softmax mix channels, and a user's function may.
    site.hold(channels.ids, "mixed")
    return channels.unknown()


def elementwise(site: Site) -> Channels:
    """Return the rule of a layer without weights that computes each element from that element alone."""
    return apply_elementwise(site.layer.call, site.inputs[0])


def identity(site: Site) -> Channels:
    """Return the rule of a layer whose output is its input at inference."""
    return site.inputs[0]


def softmax(site: Site) -> Channels:
    """Return the rule of a layer in which each element depends on all elements along some axes."""
    channels = site.inputs[0]
    axes = site.layer.axis if isinstance(site.layer.axis, list | tuple) else [site.layer.axis]
    rank = len(channels.shape) + 1
    if any(axis % rank - 1 in channels.varying for axis in axes):
        site.hold(channels.ids, "mixed")
    return channels.unknown()


def prelu(site: Site) -> Channels:
    """Apply the rule of `PReLU`: a constant stays one unless it is negative and its alphas differ by position."""
    channels, alpha = site.inputs[0], value_of(site.layer.alpha, np.float64)
    if len(channels.varying) > 1:
        site.hold(channels.ids, "layout")
        return channels.unknown()
    axis = channels.varying[0] if channels.varying else len(channels.shape) - 1
    line = channels.line(axis)
    axes: list[Ids | None] = [None] * alpha.ndim
    if alpha.shape[axis] == line.ids.size:
        axes[axis] = line.ids
    site.weight(site.layer.alpha, *axes)
    flat = np.moveaxis(alpha, axis, -1).reshape(-1, alpha.shape[axis])
    known = line.known & ((line.value >= 0) | (flat.max(axis=0) == flat.min(axis=0)))
    value = np.where(line.value >= 0, line.value, flat[0] * line.value)
    return AxisChannels(line.ids, known, value).over(channels.shape, axis)


def elementwise_of(activation: Any) -> Callable[[Any], Any] | None:
    """Return what computes `activation` of any dtype; None if a number may depend on others, or on its place."""
    known = activation_of(activation)
    if known is None or known.name not in FUNCTIONS or known.name == "prelu":
        return None
    if activation is None:
        return lambda x: x
    # A layer that is called casts what it reads to its own dtype.
    return getattr(activation, "call", activation)  # type: ignore[no-any-return]


RULES: dict[type, LayerRule] = {
    layers.Activation: LayerRule(activation, Role.POINTWISE),
    layers.Softmax: LayerRule(softmax),
    **dict.fromkeys((layers.ELU, layers.LeakyReLU, layers.ReLU), LayerRule(elementwise, Role.POINTWISE)),
    # A version of Keras may lack the newest augmentations.
    **{getattr(layers, name): LayerRule(identity, Role.IDENTITY) for name in IDENTITIES if hasattr(layers, name)},
    layers.PReLU: LayerRule(prelu),
}
