"""Depthwise kernels follow their channels: a kernel is locked if its channel is dead or unread, else it is free.

A depthwise kernel is the only connection of its channel: a lock on it alone kills the channel. So a selection without
named weights does not score depthwise kernels; it locks those whose channels other locks have killed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from fpgaprune.network import Role, alive_channels, network_of, weights_of
from fpgaprune.values import Mask, named_weights

if TYPE_CHECKING:
    import keras


def following_paths(model: keras.Model) -> list[str]:
    """The paths of the depthwise kernels that follow their channels: those in the model's graph."""
    network = network_of(model)
    steps = [] if network is None else network.steps
    layers = {id(step.layer) for step in steps if step.role is Role.DEPTHWISE}
    return [
        path for path, weight in weights_of(model).items() if id(weight.layer) in layers and weight.kind == "depthwise"
    ]


def follow(model: keras.Model, masks: Mapping[str, Mask]) -> dict[str, Mask]:
    """A mask for each depthwise kernel that follows: it locks the channels that are not alive under `masks`."""
    paths = following_paths(model)
    alive = alive_channels(model, masks) if paths else None
    if alive is None:
        return {}
    weights = named_weights(model)
    found: dict[str, Mask] = {}
    for path in paths:
        shape = tuple(weights[path].shape)
        flags = alive[path[: path.rfind("/")]]
        found[path] = np.broadcast_to(flags.reshape(shape[-2:]), shape).copy()
    return found
