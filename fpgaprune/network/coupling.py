"""Output channels that additions tie together: they can only leave as one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fpgaprune.network.flat import Network, network_of
from fpgaprune.network.role import MAKERS, Role
from fpgaprune.network.slots import Ids, Slots

_KERNEL_NAMES = ("kernel", "depthwise_kernel")


@dataclass(frozen=True)
class Groups:
    """The group of each channel: a number that channels share which additions tie together.

    Attributes:
        made: path of a layer that makes channels to the groups of its output.
        tensors: tensor to the groups of its channels; a flat vector names a group once for each position.
        count: groups are numbered below it.
    """

    made: dict[str, Ids]
    tensors: dict[int, Ids]
    count: int


def groups_of(network: Network) -> Groups:
    """The groups of all channels of `network`.

    Channels that the model adds element by element (also subtracts, averages, or takes the larger of) are of one
    group, as are a depthwise convolution's output and the channel that it reads. A layer without a rule makes
    channels of its own.
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


def coupled_outputs(model: Any, paths: Iterable[str]) -> dict[str, Ids]:
    """For each weight path in `paths` that makes channels, the number of each output channel's group.

    A model whose graph cannot be read couples nothing: the answer is empty.
    """
    network = network_of(model)
    if network is None:
        return {}
    made = groups_of(network).made
    layers = {path: path[: path.rfind("/")] for path in paths if path.split("/")[-1] in _KERNEL_NAMES}
    return {path: made[layer] for path, layer in layers.items() if layer in made}
