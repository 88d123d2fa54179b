"""Finds the channels that are alive: they depend on the model's input, and its output depends on them.

A filter whose kernels are all locked makes a constant, and so does everything computed from constants alone. A channel
that only locked kernels read changes no output, and neither does a channel that only such channels read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from fpgaprune.network.channels import MAKERS, Role
from fpgaprune.network.flat import Flags, FlatStep, Network, network_of
from fpgaprune.network.weight_axes import Weight, weights_of

if TYPE_CHECKING:
    import keras

# Layer path to one flag for each output channel.
Alive = dict[str, Flags]


def alive_channels(model: keras.Model, masks: Mapping[str, Flags]) -> Alive | None:
    """Return for each layer with a kernel which of its output channels are alive in at least one of its calls.

    A layer without a rule is assumed to read all its inputs, and all its outputs are assumed to depend on the input.
    None if the model's graph cannot be read.

    Args:
        model: a Keras model.
        masks: weight path to bool array, True = free; a weight that is not in it is free.
    """
    network = network_of(model)
    if network is None:
        return None
    by_layer: dict[int, dict[str, Flags]] = {}
    for path, weight in weights_of(model).items():
        if path in masks and weight.kind != "other":
            by_layer.setdefault(id(weight.layer), {})[weight.name] = masks[path]
    return _Walk(network, by_layer).alive()


class _Walk:
    """Walks once from the inputs to the outputs, and once back."""

    def __init__(self, network: Network, masks: Mapping[int, Mapping[str, Flags]]) -> None:
        self._network = network
        self._masks = masks
        self._depends = {tensor: self._all(tensor) for tensor in range(len(network.tensors))}
        self._read = {tensor: ~flags for tensor, flags in self._depends.items()}

    def alive(self) -> Alive:
        """Map layer path to the flags of its output channels, in the model's order."""
        made = [self._forward(step) for step in self._network.steps]
        for tensor in self._network.outputs:
            self._read[tensor] = self._all(tensor)
        found: Alive = {}
        for step, own in reversed(list(zip(self._network.steps, made, strict=True))):
            read = self._backward(step)
            if _has_rule(step):
                found[step.path] = found.get(step.path, False) | (own & read)
        return dict(reversed(found.items()))

    def _forward(self, step: FlatStep) -> Flags:
        """Return the step's channels that depend on the input, before an activation across channels."""
        output = step.outputs[0]
        if _has_rule(step):
            made = self._reached(step, self._depends[step.inputs[0]] @ self._joined(step), forward=True)
        else:
            carried = self._network.carried(step, self._depends, np.logical_or, False)
            made = self._all(output) if carried is None else carried
        self._depends[output] = made | made.any() if step.mixes_channels else made
        return made

    def _backward(self, step: FlatStep) -> Flags:
        """Return the step's channels that are read; also marks the channels of its inputs that are read."""
        read = self._read[step.outputs[0]]
        if step.mixes_channels:
            read = read | read.any()
        routes = self._network.routes(step)
        reads = [self._all(tensor) for tensor in step.inputs]
        if _has_rule(step):
            read = self._reached(step, read, forward=False)
            reads[0] = np.asarray((self._joined(step) & read).any(axis=1))
        elif all(route is not None for route in routes):
            reads = [
                self._network.returned(tensor, route, read)
                for tensor, route in zip(step.inputs, routes, strict=True)
                if route is not None
            ]
        for tensor, flags in zip(step.inputs, reads, strict=True):
            self._read[tensor] = self._read[tensor] | flags
        return read

    def _joined(self, step: FlatStep) -> Flags:
        """Return for each input and output channel whether a free element of the kernel connects them."""
        n_in, n_out = (self._network.width(tensor) for tensor in (step.inputs[0], step.outputs[0]))
        mask = self._masks.get(id(step.layer), {}).get("kernel")
        if step.role is Role.DEPTHWISE:
            own = True if mask is None else mask.reshape(-1, n_out).any(axis=0)
            return np.repeat(np.eye(n_in, dtype=bool), n_out // n_in, axis=1) & own
        if mask is None:
            return np.ones((n_in, n_out), dtype=bool)
        if step.role is Role.RECURRENT:
            return _by_unit(mask, n_out)
        axes = Weight("", step.layer, mask.ndim).axes
        free = np.moveaxis(mask, (axes.inputs[0], axes.outputs[0]), (-2, -1))
        return np.asarray(free.reshape(-1, n_in, n_out).any(axis=0))

    def _reached(self, step: FlatStep, flags: Flags, *, forward: bool) -> Flags:
        """Return the units that `flags` reach over the time steps of a recurrent layer; `flags` for any other layer."""
        mask = self._masks.get(id(step.layer), {}).get("recurrent_kernel")
        if step.role is not Role.RECURRENT:
            return flags
        steps = np.ones((len(flags),) * 2, dtype=bool) if mask is None else _by_unit(mask, len(flags))
        while True:
            further = flags | (flags @ steps if forward else steps @ flags)
            if np.array_equal(further, flags):
                return flags
            flags = further

    def _all(self, tensor: int) -> Flags:
        return self._network.flags(tensor, True)


def _by_unit(mask: Flags, units: int) -> Flags:
    """Return whether one of the gates of a unit has a free element; the last axis holds one gate after another."""
    return np.asarray(mask.reshape(len(mask), -1, units).any(axis=1))


def _has_rule(step: FlatStep) -> bool:
    return step.role in MAKERS and (step.role in (Role.DEPTHWISE, Role.RECURRENT) or step.is_ungrouped)
