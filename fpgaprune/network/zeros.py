"""Finds channels that are zero, constant or unread when the locked elements are zero.

A layer without a rule is assumed to read all its inputs, and nothing is known about the channels that it makes.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from fpgaprune.network.channels import CHANNELWISE, KERNEL, PLACEWISE, Role
from fpgaprune.network.flat import Flags, FlatStep, Network


def none_of(mask: Flags, axis: int) -> Flags:
    """Return for each index along `axis` (from the end) whether all its elements are locked."""
    others = tuple(at for at in range(mask.ndim) if at != axis % mask.ndim)
    locked: Flags = ~np.any(mask, axis=others, keepdims=True)
    return locked.ravel()


class Zeros:
    """Facts about channels, one flag for each channel of each tensor; `update` finds them.

    Attributes:
        zero: tensor to whether each channel is zero for every sample.
        unfed: tensor to whether each channel has no free kernel, so that it is the same for every sample.
        unread: tensor to whether each channel has no reader.
    """

    def __init__(self, network: Network, masks: Mapping[str, Flags]) -> None:
        self._network = network
        self._masks = masks
        self.zero: dict[int, Flags] = {}
        self.unfed: dict[int, Flags] = {}
        self.unread: dict[int, Flags] = {}

    def update(self) -> None:
        """Find the facts for the masks as they are now."""
        network = self._network
        self.zero = {tensor: network.flags(tensor, False) for tensor in range(len(network.tensors))}
        self.unfed = dict(self.zero)
        for step in network.steps:
            output = step.outputs[0]
            for facts, found in ((self.zero, self._zero(step)), (self.unfed, self._unfed(step))):
                if found is not None:
                    facts[output] = found
        # A channel is unread if no consumer reads it; the model's outputs are read.
        self.unread = {tensor: network.flags(tensor, True) for tensor in range(len(network.tensors))}
        for tensor in network.outputs:
            self.unread[tensor] = network.flags(tensor, False)
        for step in reversed(network.steps):
            for tensor, flags in zip(step.inputs, self._unread_inputs(step), strict=True):
                self.unread[tensor] = self.unread[tensor] & flags

    def is_last(self, norm: FlatStep) -> bool:
        """Return whether a batch normalization normalises the last axis."""
        return norm.layer.axis in (-1, len(self._network.shape(norm.inputs[0])) - 1)

    def _zero(self, step: FlatStep) -> Flags | None:
        """Return whether each output channel is zero; None if nothing is known."""
        if step.role in KERNEL and step.keeps_zero:
            live = self._masks[f"{step.path}/kernel"]
            if step.is_ungrouped:
                live = live & ~self.zero[step.inputs[0]][:, None]
            return none_of(live, -1) & self._locked(step, "bias")
        if step.role is Role.DEPTHWISE and _is_plain(step) and step.keeps_zero:
            dead = self.zero[step.inputs[0]] | none_of(self._masks[f"{step.path}/kernel"], -2)
            return dead & self._locked(step, "bias")
        if step.role is Role.SEPARABLE and step.keeps_zero:
            filtered = self._filters(step) & ~self.zero[step.inputs[0]][:, None]
            live = self._masks[f"{step.path}/pointwise_kernel"] & filtered.reshape(-1, 1)
            return none_of(live, -1) & self._locked(step, "bias")
        if step.role is Role.NORM:
            scaled = f"{step.path}/gamma" in self._masks and self.is_last(step)
            return self._locked(step, "gamma") & self._locked(step, "beta") if scaled else None
        # A merge of one tensor and a number may make any value of zeros.
        with_number = step.role is Role.MERGE and len(step.inputs) < 2
        if with_number or (step.role in PLACEWISE and not step.keeps_zero):
            return None
        return self._network.carried(step, self.zero, np.logical_and, True)

    def _unfed(self, step: FlatStep) -> Flags | None:
        """Return whether each output channel has no free kernel; None if nothing is known."""
        if step.mixes_channels:
            return None
        if step.role in KERNEL:
            return none_of(self._masks[f"{step.path}/kernel"], -1)
        if step.role is Role.SEPARABLE:
            return none_of(self._masks[f"{step.path}/pointwise_kernel"], -1)
        if step.role is Role.NORM or (step.role is Role.DEPTHWISE and _is_plain(step)):
            return self.unfed[step.inputs[0]] if step.role is Role.DEPTHWISE or self.is_last(step) else None
        return self._network.carried(step, self.unfed, np.logical_and, True)

    def _unread_inputs(self, step: FlatStep) -> list[Flags]:
        """Return for each input tensor of `step` whether `step` leaves each channel unread."""
        output = self.unread[step.outputs[0]]
        if step.role in KERNEL and step.is_ungrouped:
            # The kernels of an unread output count as free until the rule locks them in the next round.
            return [none_of(self._masks[f"{step.path}/kernel"], -2)]
        if step.role is Role.DEPTHWISE and _is_plain(step):
            return [output | none_of(self._masks[f"{step.path}/kernel"], -2)]
        if step.role is Role.SEPARABLE:
            filters = self._filters(step)
            read = ~none_of(self._masks[f"{step.path}/pointwise_kernel"], -2)
            return [np.asarray(~(filters & read.reshape(filters.shape)).any(axis=1))]
        if step.role in CHANNELWISE and step.mixes_channels:
            output = np.zeros_like(output)
        return [
            self._network.flags(tensor, False) if route is None else ~self._network.returned(tensor, route, ~output)
            for tensor, route in zip(step.inputs, self._network.routes(step), strict=True)
        ]

    def _filters(self, step: FlatStep) -> Flags:
        """Return (C_in, M): whether each filter of the depthwise kernel (..., C_in, M) has a free element."""
        mask = self._masks[f"{step.path}/depthwise_kernel"]
        return np.asarray(mask.any(axis=tuple(range(mask.ndim - 2))))

    def _locked(self, step: FlatStep, name: str) -> Flags:
        path = f"{step.path}/{name}"
        return ~self._masks[path] if path in self._masks else self._network.flags(step.outputs[0], True)


def _is_plain(step: FlatStep) -> bool:
    return int(step.layer.depth_multiplier) == 1
