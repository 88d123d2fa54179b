"""`close`: the locks that follow from those that are set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fpgaprune.errors import UnsupportedLayerError
from fpgaprune.masks import Mask, MaskSet
from fpgaprune.network import KERNEL, Flags, FlatStep, Network, Role, Zeros, network_of, none_of
from fpgaprune.weights import weight_shapes


@dataclass(frozen=True)
class Addition:
    """One block of elements that `close` locked because of other locks.

    Attributes:
        slice: slice notation of what was locked, as `conv2/bias[3]`.
        count: elements that were free before.
        reason: why it follows, one line.
    """

    slice: str
    count: int
    reason: str


@dataclass(frozen=True)
class Closure:
    """The masks with all locks that follow, and a list of those locks in the order in which `close` found them."""

    masks: MaskSet
    additions: tuple[Addition, ...]

    def to_json(self) -> list[dict[str, Any]]:
        """The additions as JSON data."""
        return [{"slice": a.slice, "count": a.count, "reason": a.reason} for a in self.additions]


def close(
    masks: MaskSet, model: Any, *, bias: bool = True, batch_norm: bool = True, dead_inputs: bool = True
) -> Closure:
    """The masks with the locks that follow from them at the value zero, to a fixed point.

    Four rules. Where no consumer reads a channel, what makes it is locked; where a channel is always zero, the
    weights that read it are locked: neither changes what the model computes, exactly over the reals. Where all
    kernels of a filter are locked, its bias, and then the scale and shift of the batch normalization behind it, are
    locked where asked: this changes the model, from a constant to zero, so fine-tune afterwards.

    Args:
        masks: weight path to bool array, True = free, False = locked at zero.
        model: a functional or Sequential Keras model.
        bias: lock the bias of a filter without free kernels.
        batch_norm: lock gamma and beta of a channel without free kernels, or that no one reads.
        dead_inputs: lock the weights that read a channel which is always zero.

    Raises:
        MaskError: a mask does not fit the model.
        UnsupportedLayerError: the model's graph cannot be read.
    """
    masks = MaskSet(masks).fitted(model)
    network = network_of(model)
    if network is None:
        raise UnsupportedLayerError(
            f"model {getattr(model, 'name', model)!r} is a {type(model).__name__}, whose graph cannot be read; "
            "wanted a functional or Sequential model"
        )
    work = _GrowingMasks(masks, weight_shapes(model))
    zeros = Zeros(network, work)
    while True:
        before = len(work.additions)
        zeros.update()
        for path, steps in _by_path(network).items():
            _close_layer(path, steps, zeros, work, bias=bias, batch_norm=batch_norm, dead_inputs=dead_inputs)
        if len(work.additions) == before:
            return Closure(MaskSet(work.masks), tuple(work.additions))


class _GrowingMasks(Mapping[str, Mask]):
    """The masks while `close` adds locks. Every weight has one; `masks` holds only those with a lock."""

    def __init__(self, masks: MaskSet, shapes: Mapping[str, tuple[int, ...]]) -> None:
        self.masks: dict[str, Mask] = {path: np.array(mask) for path, mask in masks.items()}
        self.additions: list[Addition] = []
        self._shapes = shapes

    def __getitem__(self, path: str) -> Mask:
        return self.masks[path] if path in self.masks else np.ones(self._shapes[path], dtype=bool)

    def __iter__(self) -> Any:
        return iter(self._shapes)

    def __len__(self) -> int:
        return len(self._shapes)

    def lock(self, path: str, channel: int, axis: int, reason: str) -> None:
        """Entry `channel` along `axis` of the weight is locked; nothing is noted where it was before."""
        if path not in self._shapes:
            return
        mask = self[path]
        index = tuple(channel if at == axis % mask.ndim else slice(None) for at in range(mask.ndim))
        count = int(mask[index].sum())
        if count:
            mask[index] = False
            self.masks[path] = mask
            text = ", ".join(str(channel) if at == axis % mask.ndim else ":" for at in range(mask.ndim))
            self.additions.append(Addition(f"{path}[{text}]", count, reason))


def _by_path(network: Network) -> dict[str, list[FlatStep]]:
    steps: dict[str, list[FlatStep]] = {}
    for step in network.steps:
        steps.setdefault(step.path, []).append(step)
    return steps


def _close_layer(
    path: str,
    steps: list[FlatStep],
    zeros: Zeros,
    work: _GrowingMasks,
    *,
    bias: bool,
    batch_norm: bool,
    dead_inputs: bool,
) -> None:
    role = steps[0].role
    if role not in KERNEL | {Role.DEPTHWISE, Role.NORM} or not all(step.is_ungrouped for step in steps):
        return
    # A layer that is called several times is locked only where the reason holds in each call.
    unread = np.logical_and.reduce([zeros.unread[step.outputs[0]] for step in steps])
    if any(step.mixes_channels for step in steps):
        # A softmax divides by the sum over all channels, so none of them is unread.
        unread = np.zeros_like(unread)
    if dead_inputs and role is not Role.NORM:
        dead = np.logical_and.reduce([zeros.zero[step.inputs[0]] for step in steps])
        for channel in np.flatnonzero(dead):
            work.lock(f"{path}/kernel", int(channel), -2, f"input channel {channel} of {path!r} is always zero")
    if role in KERNEL:
        _lock_unread(path, unread, work, {"kernel": -1, "bias": -1})
        if bias:
            _lock_bias(path, work[f"{path}/kernel"], work)
    elif role is Role.DEPTHWISE and int(steps[0].layer.depth_multiplier) == 1:
        _lock_unread(path, unread, work, {"kernel": -2, "bias": -1})
    elif role is Role.NORM and batch_norm and all(zeros.is_last(step) for step in steps):
        _lock_unread(path, unread, work, {"gamma": -1, "beta": -1})
        constant = np.logical_and.reduce([zeros.unfed[step.inputs[0]] for step in steps])
        for channel in np.flatnonzero(constant):
            for name in ("gamma", "beta"):
                reason = f"every kernel that makes channel {channel} of {path!r} is locked"
                work.lock(f"{path}/{name}", int(channel), -1, reason)


def _lock_unread(path: str, unread: Flags, work: _GrowingMasks, axes: Mapping[str, int]) -> None:
    for channel in np.flatnonzero(unread):
        for name, axis in axes.items():
            work.lock(f"{path}/{name}", int(channel), axis, f"no consumer reads output channel {channel} of {path!r}")


def _lock_bias(path: str, kernel: Mask, work: _GrowingMasks) -> None:
    for channel in np.flatnonzero(none_of(kernel, -1)):
        work.lock(f"{path}/bias", int(channel), -1, f"every kernel of filter {channel} of {path!r} is locked")
