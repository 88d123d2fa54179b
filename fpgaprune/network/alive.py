"""Which channels still carry something: they depend on the model's input, and its output depends on them.

A filter whose kernels are all locked makes a constant, and so does all that is computed from constants alone; a
channel that only locked kernels read changes nothing, and neither does what only such channels read.
"""

from __future__ import annotations

from collections.abc import Mapping
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
    is_ungrouped,
    joins_channels,
    mixes_channels,
)
from fpgaprune.network.weight_axes import channel_axes, kind_of, weight_owners

Flags = NDArray[np.bool_]
# Layer path to which of its channels are alive.
Alive = dict[str, Flags]


def alive_channels(model: Any, masks: Mapping[str, Flags]) -> Alive | None:
    """For each layer with a kernel, which of its output channels are alive in at least one of its calls.

    A layer without a rule reads all that it is given, and all that it makes depends on the input: nothing is claimed
    of it. None where the model's graph cannot be read.

    Args:
        model: a Keras model.
        masks: weight path to bool array, True = free; a weight that is not in it is free.
    """
    graph = graph_of(model)
    if graph is None:
        return None
    by_layer: dict[int, dict[str, Flags]] = {}
    for path, layer in weight_owners(model).items():
        mask = masks.get(path)
        if mask is not None and kind_of(path, layer, mask.ndim) != "other":
            by_layer.setdefault(id(layer), {})[path.rsplit("/", maxsplit=1)[-1]] = mask
    return _Walk(graph, by_layer).alive()


class _Walk:
    """Once from the inputs to the outputs, and once back."""

    def __init__(self, graph: Graph, masks: Mapping[int, Mapping[str, Flags]]) -> None:
        self._graph = graph
        self._masks = masks
        self._depends = {tensor: self._all(tensor) for tensor in range(len(graph.channels))}
        self._read = {tensor: ~flags for tensor, flags in self._depends.items()}

    def alive(self) -> Alive:
        """Layer path to the flags of its output channels, in the model's order."""
        made = [self._forward(call) for call in self._graph.calls]
        for tensor in self._graph.outputs:
            self._read[tensor] = self._all(tensor)
        found: Alive = {}
        for call, own in reversed(list(zip(self._graph.calls, made, strict=True))):
            read = self._backward(call)
            if _has_rule(call):
                found[call.path] = found.get(call.path, False) | (own & read)
        return dict(reversed(found.items()))

    def _forward(self, call: Call) -> Flags:
        """What the call makes and depends on the input, before an activation that runs across channels."""
        output = call.outputs[0]
        inputs = [self._depends[tensor] for tensor in call.inputs]
        if _has_rule(call):
            made = self._reached(call, inputs[0] @ self._joined(call), forward=True)
        elif _keeps_channels(call, self._graph):
            made = np.logical_or.reduce(inputs)
        elif joins_channels(call, self._graph):
            made = np.concatenate(inputs)
        else:
            positions = flat_positions(call, self._graph)
            made = self._all(output) if positions is None else np.tile(inputs[0], positions)
        made = made if len(made) == (self._graph.channels[output] or 0) else self._all(output)
        self._depends[output] = made | made.any() if mixes_channels(call) else made
        return made

    def _backward(self, call: Call) -> Flags:
        """What of the call's channels is read; its inputs' flags are noted."""
        read = self._read[call.outputs[0]]
        if mixes_channels(call):
            read = read | read.any()
        reads = [self._all(tensor) for tensor in call.inputs]
        positions = flat_positions(call, self._graph)
        if _has_rule(call):
            read = self._reached(call, read, forward=False)
            reads[0] = np.asarray((self._joined(call) & read).any(axis=1))
        elif _keeps_channels(call, self._graph):
            reads = [read for _ in call.inputs]
        elif joins_channels(call, self._graph):
            reads = np.split(read, np.cumsum([len(flags) for flags in reads])[:-1])
        elif positions is not None:
            reads = [np.asarray(read.reshape(positions, -1).any(axis=0))]
        for tensor, flags in zip(call.inputs, reads, strict=True):
            self._read[tensor] = self._read[tensor] | (flags if len(flags) == len(self._read[tensor]) else True)
        return read

    def _joined(self, call: Call) -> Flags:
        """For each input and output channel, whether a free element of the kernel joins them."""
        n_in, n_out = (self._graph.channels[tensor] or 0 for tensor in (call.inputs[0], call.outputs[0]))
        mask = self._masks.get(id(call.layer), {}).get("kernel")
        if call.kind in DEPTHWISE:
            own = True if mask is None else mask.reshape(-1, n_out).any(axis=0)
            return np.repeat(np.eye(n_in, dtype=bool), n_out // n_in, axis=1) & own
        if mask is None:
            return np.ones((n_in, n_out), dtype=bool)
        if call.kind in RECURRENT:
            return _by_unit(mask, n_out)
        axes = channel_axes("", call.layer)
        free = np.moveaxis(mask, (axes.inputs[0], axes.outputs[0]), (-2, -1))
        return np.asarray(free.reshape(-1, n_in, n_out).any(axis=0))

    def _reached(self, call: Call, flags: Flags, *, forward: bool) -> Flags:
        """The units that `flags` reach from step to step of a recurrent layer; of another layer `flags` themselves."""
        mask = self._masks.get(id(call.layer), {}).get("recurrent_kernel")
        if call.kind not in RECURRENT:
            return flags
        steps = np.ones((len(flags),) * 2, dtype=bool) if mask is None else _by_unit(mask, len(flags))
        while True:
            further = flags | (flags @ steps if forward else steps @ flags)
            if np.array_equal(further, flags):
                return flags
            flags = further

    def _all(self, tensor: int) -> Flags:
        return np.ones(self._graph.channels[tensor] or 0, dtype=bool)


def _by_unit(mask: Flags, units: int) -> Flags:
    """Whether one of the gates of a unit has a free element: gates stand behind one another along the last axis."""
    return np.asarray(mask.reshape(len(mask), -1, units).any(axis=1))


def _has_rule(call: Call) -> bool:
    return call.kind in DEPTHWISE | RECURRENT or (call.kind in KERNEL | TRANSPOSED and is_ungrouped(call))


def _keeps_channels(call: Call, graph: Graph) -> bool:
    if call.kind == NORM:
        return call.layer.axis in (-1, len(graph.shapes[call.inputs[0]]) - 1)
    same = len({graph.channels[tensor] for tensor in call.inputs}) == 1
    return call.kind in CHANNELWISE or (call.kind in MERGE and same)
