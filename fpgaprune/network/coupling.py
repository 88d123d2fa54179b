"""Output channels that additions tie together: they can only leave as one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpgaprune.network.flat import (
    CHANNELWISE,
    DEPTHWISE,
    KERNEL,
    MERGE,
    NORM,
    RECURRENT,
    TRANSPOSED,
    Call,
    Graph,
    flat_positions,
    graph_of,
    joins_channels,
)

Ids = NDArray[np.intp]
_KERNEL_NAMES = ("kernel", "depthwise_kernel")


@dataclass(frozen=True)
class Channels:
    """The group of each channel: a number that channels share which additions tie together.

    Attributes:
        made: path of a layer that makes channels to the groups of its output.
        tensors: tensor to the groups of its channels; a flat vector names a group once for each position.
        count: groups are numbered below it.
    """

    made: dict[str, Ids]
    tensors: dict[int, Ids]
    count: int


def channels_of(graph: Graph) -> Channels:
    """The groups of all channels of `graph`.

    Channels that the model adds element by element (also subtracts, averages, or takes the larger of) are of one
    group, as are a depthwise convolution's output and the channel that it reads. A layer without a rule makes
    channels of its own.
    """
    groups = _Groups()
    made: dict[str, Ids] = {}
    tensors: dict[int, Ids] = {}
    for tensor in graph.inputs:
        tensors[tensor] = groups.new(graph.channels[tensor] or 0)
    for call in graph.calls:
        for tensor, ids in _outputs(call, graph, tensors, made, groups).items():
            tensors[tensor] = ids
    return Channels(
        {layer: groups.roots(ids) for layer, ids in made.items()},
        {tensor: groups.roots(ids) for tensor, ids in tensors.items()},
        len(groups),
    )


def coupled_outputs(model: Any, paths: Iterable[str]) -> dict[str, Ids]:
    """For each weight path in `paths` that makes channels, the number of each output channel's group.

    A model whose graph cannot be read couples nothing: the answer is empty.
    """
    graph = graph_of(model)
    if graph is None:
        return {}
    made = channels_of(graph).made
    layers = {path: path[: path.rfind("/")] for path in paths if path.split("/")[-1] in _KERNEL_NAMES}
    return {path: made[layer] for path, layer in layers.items() if layer in made}


class _Groups:
    """Numbers, of which some are said to be one."""

    def __init__(self) -> None:
        self._parent: list[int] = []

    def __len__(self) -> int:
        return len(self._parent)

    def new(self, count: int) -> Ids:
        start = len(self._parent)
        self._parent.extend(range(start, start + count))
        return np.arange(start, start + count)

    def join(self, a: Ids, b: Ids) -> None:
        for one, other in zip(a.tolist(), b.tolist(), strict=True):
            low, high = sorted((self._root(one), self._root(other)))
            self._parent[high] = low

    def roots(self, ids: Ids) -> Ids:
        return np.array([self._root(number) for number in ids.tolist()], dtype=np.intp)

    def _root(self, number: int) -> int:
        while self._parent[number] != number:
            self._parent[number] = self._parent[self._parent[number]]
            number = self._parent[number]
        return number


def _outputs(
    call: Call, graph: Graph, tensors: dict[int, Ids], made: dict[str, Ids], groups: _Groups
) -> dict[int, Ids]:
    inputs = [tensors[tensor] for tensor in call.inputs]
    output = call.outputs[0]
    width = graph.channels[output] or 0
    if call.kind in KERNEL | TRANSPOSED | RECURRENT:
        own = {output: made.setdefault(call.path, groups.new(width))}
        return {tensor: groups.new(graph.channels[tensor] or 0) for tensor in call.outputs} | own
    if call.kind in DEPTHWISE:
        ids = made.setdefault(call.path, groups.new(width))
        if len(inputs[0]) == width:
            groups.join(ids, inputs[0])
        return {output: ids}
    if call.kind in CHANNELWISE or call.kind == NORM:
        return {output: inputs[0]}
    if call.kind in MERGE and len({len(ids) for ids in inputs}) == 1:
        for ids in inputs[1:]:
            groups.join(inputs[0], ids)
        return {output: inputs[0]}
    if joins_channels(call, graph):
        return {output: np.concatenate(inputs)}
    positions = flat_positions(call, graph)
    if positions is not None:
        return {output: np.tile(inputs[0], positions)}
    return {tensor: groups.new(graph.channels[tensor] or 0) for tensor in call.outputs}
