"""What is known of each channel of each tensor when locked elements are zero: is it zero, constant, read?

Nothing is claimed where it cannot be shown: a layer without a rule reads all that it is given and makes channels of
which nothing is known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from fpgaprune.network.flat import (
    CHANNELWISE,
    DEPTHWISE,
    KERNEL,
    MERGE,
    NORM,
    PLACEWISE,
    Call,
    Graph,
    flat_positions,
    is_ungrouped,
    joins_channels,
    keeps_zero,
    mixes_channels,
)

Flags = NDArray[np.bool_]


def none_of(mask: Flags, axis: int) -> Flags:
    """For each index along `axis` (from the end), whether all that stands there is locked."""
    others = tuple(at for at in range(mask.ndim) if at != axis % mask.ndim)
    locked: Flags = ~np.any(mask, axis=others, keepdims=True)
    return locked.ravel()


class Flow:
    """Facts about channels, found anew by `update`.

    Attributes:
        zero: tensor to channels that are zero for every input of the model.
        unfed: tensor to channels that no free kernel feeds, so that they are a constant.
    """

    def __init__(self, graph: Graph, masks: Mapping[str, Flags]) -> None:
        self._graph = graph
        self._masks = masks
        self.zero: dict[int, Flags] = {}
        self.unfed: dict[int, Flags] = {}
        self._unread: dict[int, Flags] = {}

    def update(self) -> None:
        """The facts are those of the masks as they are now."""
        self.zero = {tensor: self._nothing(tensor) for tensor in self._graph.inputs}
        self.unfed = dict(self.zero)
        for call in self._graph.calls:
            for tensor in call.outputs:
                self.zero[tensor] = self._nothing(tensor)
                self.unfed[tensor] = self._nothing(tensor)
            output = call.outputs[0]
            self.zero[output] = self._zero(call)
            self.unfed[output] = self._unfed(call)
        # A tensor is unread where each of its consumers does not read it; the model's outputs are read.
        self._unread = {tensor: ~self._nothing(tensor) for tensor in range(len(self._graph.channels))}
        for tensor in self._graph.outputs:
            self._unread[tensor] = self._nothing(tensor)
        for call in reversed(self._graph.calls):
            for tensor, flags in zip(call.inputs, self._unread_inputs(call), strict=True):
                self._unread[tensor] = self._unread[tensor] & flags

    def unread(self, tensor: int) -> Flags:
        """The channels of `tensor` that no consumer reads."""
        return self._unread[tensor]

    def norm_is_last(self, calls: Sequence[Call]) -> bool:
        """Whether each of these batch normalizations runs over the last axis."""
        return all(call.layer.axis in (-1, len(self._graph.shapes[call.inputs[0]]) - 1) for call in calls)

    def _nothing(self, tensor: int) -> Flags:
        return np.zeros(self._graph.channels[tensor] or 0, dtype=bool)

    def _zero(self, call: Call) -> Flags:
        output = call.outputs[0]
        inputs = [self.zero[tensor] for tensor in call.inputs]
        if call.kind in KERNEL and is_ungrouped(call) and keeps_zero(call):
            live = self._masks[f"{call.path}/kernel"] & ~inputs[0][:, None]
            return none_of(live, -1) & self._locked(call, "bias", output)
        if call.kind in DEPTHWISE and self._is_plain(call) and keeps_zero(call):
            dead = inputs[0] | none_of(self._masks[f"{call.path}/kernel"], -2)
            return dead & self._locked(call, "bias", output)
        if call.kind == NORM and self.norm_is_last([call]):
            if f"{call.path}/gamma" not in self._masks:
                return self._nothing(output)
            return self._locked(call, "gamma", output) & self._locked(call, "beta", output)
        if call.kind in CHANNELWISE and (call.kind not in PLACEWISE or keeps_zero(call)):
            return self._same(inputs[0], output)
        if call.kind in MERGE and all(len(flags) == len(inputs[0]) for flags in inputs):
            return self._same(np.logical_and.reduce(inputs), output)
        return self._rearranged(call, inputs)

    def _unfed(self, call: Call) -> Flags:
        output = call.outputs[0]
        inputs = [self.unfed[tensor] for tensor in call.inputs]
        if call.kind in KERNEL and is_ungrouped(call) and not mixes_channels(call):
            return none_of(self._masks[f"{call.path}/kernel"], -1)
        if call.kind in PLACEWISE and not mixes_channels(call):
            return self._same(inputs[0], output)
        return self._nothing(output)

    def _unread_inputs(self, call: Call) -> list[Flags]:
        output = self._unread[call.outputs[0]]
        read = [self._nothing(tensor) for tensor in call.inputs]
        if call.kind in KERNEL and is_ungrouped(call):
            # An unread output's kernels count as free until the rule has locked them: a round later.
            return [none_of(self._masks[f"{call.path}/kernel"], -2)]
        if call.kind in DEPTHWISE and self._is_plain(call):
            return [output | none_of(self._masks[f"{call.path}/kernel"], -2)]
        one_to_one = call.kind in CHANNELWISE and not (call.kind in PLACEWISE and mixes_channels(call))
        if one_to_one or (call.kind == NORM and self.norm_is_last([call])):
            return [self._same(output, call.inputs[0])]
        if call.kind in MERGE:
            return [self._same(output, tensor) for tensor in call.inputs]
        if joins_channels(call, self._graph):
            ends = np.cumsum([self._graph.channels[tensor] or 0 for tensor in call.inputs])
            return list(np.split(output, ends[:-1]))
        positions = flat_positions(call, self._graph)
        if positions is not None:
            return [none_of(~output.reshape(positions, -1), -1)]
        return read

    def _rearranged(self, call: Call, inputs: list[Flags]) -> Flags:
        if joins_channels(call, self._graph):
            return np.concatenate(inputs)
        positions = flat_positions(call, self._graph)
        if positions is not None:
            return np.tile(inputs[0], positions)
        return self._nothing(call.outputs[0])

    def _locked(self, call: Call, name: str, tensor: int) -> Flags:
        path = f"{call.path}/{name}"
        return ~self._masks[path] if path in self._masks else ~self._nothing(tensor)

    def _same(self, flags: Flags, tensor: int) -> Flags:
        # A layer that changes the number of channels is none of those that keep them.
        return flags if len(flags) == (self._graph.channels[tensor] or 0) else self._nothing(tensor)

    def _is_plain(self, call: Call) -> bool:
        return int(call.layer.depth_multiplier) == 1
