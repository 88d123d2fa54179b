"""`close`: the locks that follow from those that are set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fpgaprune.errors import UnsupportedLayerError
from fpgaprune.network import (
    KERNEL,
    Flags,
    FlatStep,
    Network,
    Role,
    Zeros,
    alive_channels,
    network_of,
    none_of,
    weights_of,
)
from fpgaprune.values import Mask, MaskSet, named_weights, weight_shapes

if TYPE_CHECKING:
    import keras


@dataclass(frozen=True)
class Addition:
    """A slice that `close` locked because of other locks.

    Attributes:
        slice: the locked slice, as `conv2/bias[3]`.
        count: number of elements that were free before.
        reason: why the lock follows; one line.
    """

    slice: str
    count: int
    reason: str


@dataclass(frozen=True)
class Closure:
    """The result of `close`.

    Attributes:
        masks: the masks with all locks that follow.
        additions: these locks in the order in which `close` found them.
    """

    masks: MaskSet
    additions: tuple[Addition, ...]

    def to_json(self) -> list[dict[str, Any]]:
        """Return the additions as JSON data."""
        return [asdict(addition) for addition in self.additions]


def close(
    masks: MaskSet,
    model: keras.Model,
    *,
    bias: bool = True,
    batch_norm: bool = True,
    dead_inputs: bool = True,
    constants: bool = False,
) -> Closure:
    """Close `masks`: add all locks at zero that follow from them, until nothing changes.

    There are four rules. If no consumer reads a channel, the weights that make it are locked. If a channel is always
    zero, the weights that read it are locked. These two do not change what the model computes over the reals. If all
    kernels of a filter are locked, its bias is locked, and so are the scale and shift of the batch normalization
    behind it. These two set a constant channel to zero, which changes the model: fine-tune afterwards. Behind a sigmoid
    or a batch normalization without a scale it stays another constant; with `constants` nothing reads it any more.

    Args:
        masks: weight path to bool array, True = free, False = locked at zero.
        model: a functional or Sequential Keras model.
        bias: lock the bias of a filter without free kernels.
        batch_norm: lock gamma and beta of a channel that has no free kernel or no reader.
        dead_inputs: lock the weights that read a channel which is always zero.
        constants: lock the weights that read a channel which no free kernel makes, whatever its value is.

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
        if len(work.additions) == before and constants:
            for path, steps in _by_path(network).items():
                _close_constant(path, steps, zeros, work)
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
        """Lock entry `channel` along `axis` of the weight, and note it unless it was locked before."""
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
    if not _has_rules(steps):
        if role in KERNEL and bias:
            # Of a grouped convolution: each of its filters reads a part of the channels.
            _lock_bias(path, work[f"{path}/kernel"], -1, work)
        return
    # If a layer is called several times, the reason must hold in each call.
    unread = np.logical_and.reduce([zeros.unread[step.outputs[0]] for step in steps])
    if any(step.mixes_channels for step in steps):
        # A softmax divides by the sum over all channels, so it reads all of them.
        unread = np.zeros_like(unread)
    if dead_inputs and role is not Role.NORM:
        _lock_readers(path, steps, zeros.zero, work, "is always zero")
    if role in KERNEL:
        _lock_unread(path, unread, work, {"kernel": -1, "bias": -1})
        if bias:
            _lock_bias(path, work[f"{path}/kernel"], -1, work)
    elif role is Role.DEPTHWISE and int(steps[0].layer.depth_multiplier) == 1:
        _lock_unread(path, unread, work, {"kernel": -2, "bias": -1})
        if bias:
            _lock_bias(path, work[f"{path}/kernel"], -2, work)
    elif role is Role.SEPARABLE:
        _lock_unread(path, unread, work, {"pointwise_kernel": -1, "bias": -1})
        _close_within(path, work, dead_inputs=dead_inputs)
        if bias:
            _lock_bias(path, work[f"{path}/pointwise_kernel"], -1, work)
    elif role is Role.NORM and batch_norm and all(zeros.is_last(step) for step in steps):
        _lock_unread(path, unread, work, {"gamma": -1, "beta": -1})
        constant = np.logical_and.reduce([zeros.unfed[step.inputs[0]] for step in steps])
        for channel in np.flatnonzero(constant):
            for name in ("gamma", "beta"):
                reason = f"every kernel that makes channel {channel} of {path!r} is locked"
                work.lock(f"{path}/{name}", int(channel), -1, reason)


def _close_constant(path: str, steps: list[FlatStep], zeros: Zeros, work: _GrowingMasks) -> None:
    """Lock the weights of a layer that read what no free kernel makes."""
    if _has_rules(steps) and steps[0].role is not Role.NORM:
        _lock_readers(path, steps, zeros.unfed, work, "is a constant: every kernel that makes it is locked")


def _has_rules(steps: list[FlatStep]) -> bool:
    known = KERNEL | {Role.DEPTHWISE, Role.SEPARABLE, Role.NORM}
    return steps[0].role in known and all(step.is_ungrouped for step in steps)


def _lock_readers(path: str, steps: list[FlatStep], facts: Mapping[int, Flags], work: _GrowingMasks, why: str) -> None:
    """Lock what a layer with a kernel reads of the channels for which `facts` hold in each of its calls."""
    kernel = "depthwise_kernel" if steps[0].role is Role.SEPARABLE else "kernel"
    for channel in np.flatnonzero(np.logical_and.reduce([facts[step.inputs[0]] for step in steps])):
        work.lock(f"{path}/{kernel}", int(channel), -2, f"input channel {channel} of {path!r} {why}")


def _close_within(path: str, work: _GrowingMasks, *, dead_inputs: bool) -> None:
    """Lock the filters of a separable convolution that its second kernel does not read, and what reads locked ones."""
    first, second = work[f"{path}/depthwise_kernel"], work[f"{path}/pointwise_kernel"]
    unread = none_of(second, -2).reshape(first.shape[-2:]).all(axis=1)
    for channel in np.flatnonzero(unread):
        reason = f"{path!r} reads nothing of what it filters of channel {channel}"
        work.lock(f"{path}/depthwise_kernel", int(channel), -2, reason)
    if dead_inputs:
        for filtered in np.flatnonzero(~first.reshape(-1, first.shape[-2] * first.shape[-1]).any(axis=0)):
            reason = f"filter {filtered} of the depthwise kernel of {path!r} is locked"
            work.lock(f"{path}/pointwise_kernel", int(filtered), -2, reason)


def _lock_unread(path: str, unread: Flags, work: _GrowingMasks, axes: Mapping[str, int]) -> None:
    for channel in np.flatnonzero(unread):
        for name, axis in axes.items():
            work.lock(f"{path}/{name}", int(channel), axis, f"no consumer reads output channel {channel} of {path!r}")


def _lock_bias(path: str, kernel: Mask, axis: int, work: _GrowingMasks) -> None:
    """Lock the bias of each filter, an entry of `kernel` along `axis`, without free elements."""
    for channel in np.flatnonzero(none_of(kernel, axis)):
        work.lock(f"{path}/bias", int(channel), -1, f"every kernel of filter {channel} of {path!r} is locked")


def following_paths(model: keras.Model) -> list[str]:
    """Return the paths of the depthwise kernels that follow their channels: those in the model's graph.

    A depthwise kernel is the only connection of its channel: a lock on it alone kills the channel. So a selection
    without named weights does not score depthwise kernels; it locks those whose channels other locks have killed.
    """
    network = network_of(model)
    steps = [] if network is None else network.steps
    layers = {id(step.layer) for step in steps if step.role is Role.DEPTHWISE}
    return [
        path for path, weight in weights_of(model).items() if id(weight.layer) in layers and weight.kind == "depthwise"
    ]


def follow(model: keras.Model, masks: Mapping[str, Mask]) -> dict[str, Mask]:
    """Return a mask for each depthwise kernel that follows: it locks the channels that are not alive under `masks`."""
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
