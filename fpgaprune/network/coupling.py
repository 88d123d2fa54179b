"""Groups the channels that additions couple; the channels of a group can only leave together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fpgaprune.network.channels import MAKERS, Ids, Role, Slots
from fpgaprune.network.flat import Network, network_of

if TYPE_CHECKING:
    import keras

_KERNEL_NAMES = ("kernel", "depthwise_kernel")


@dataclass(frozen=True)
class Groups:
    """The number of each channel's group; channels that additions couple have the same number.

    Attributes:
        made: path of a layer that makes channels to the groups of its output channels.
        tensors: tensor to the groups of its channels; a flattened tensor repeats them for each position.
        count: all numbers of groups are below it.
    """

    made: dict[str, Ids]
    tensors: dict[int, Ids]
    count: int


def groups_of(network: Network) -> Groups:
    """Return the groups of all channels of `network`.

    Channels that the model adds, subtracts, averages or compares element by element are in one group. The output of a
    depthwise convolution is in the group of the channel that it reads. A layer without a rule makes new groups.
    """
    slots = Slots()

    def tied(ids: Ids, others: Ids) -> Ids:
        both = (ids >= 0) & (others >= 0)
        slots.unite(ids[both], others[both])
        return np.where(ids >= 0, ids, others)

    made: dict[str, Ids] = {}
    tensors = {tensor: slots.fresh(network.width(tensor)) for tensor in network.inputs}
    for step in network.steps:
        first, *others = step.outputs
        ids = None if step.role in MAKERS else network.carried(step, tensors, tied, -1)
        tensors[first] = slots.fresh(network.width(first)) if ids is None else ids
        tensors |= {tensor: slots.fresh(network.width(tensor)) for tensor in others}
        if step.role in MAKERS:
            tensors[first] = made.setdefault(step.path, tensors[first])
        if step.role is Role.DEPTHWISE and len(tensors[step.inputs[0]]) == len(tensors[first]):
            slots.unite(tensors[first], tensors[step.inputs[0]])
    roots = slots.roots()
    return Groups(
        {layer: roots[ids] for layer, ids in made.items()},
        {tensor: roots[ids] for tensor, ids in tensors.items()},
        slots.count,
    )


def coupled_outputs(model: keras.Model, paths: Iterable[str]) -> dict[str, Ids]:
    """Return the group of each output channel for each weight path in `paths` that makes channels.

    The result is empty if the model's graph cannot be read.
    """
    network = network_of(model)
    if network is None:
        return {}
    made = groups_of(network).made
    layers = {path: path[: path.rfind("/")] for path in paths if path.split("/")[-1] in _KERNEL_NAMES}
    return {path: made[layer] for path, layer in layers.items() if layer in made}
