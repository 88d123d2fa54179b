"""Granularity: how the elements of a weight fall into units that are locked whole."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fpgaprune.design import IO_TYPES, STRATEGIES
from fpgaprune.errors import MaskError
from fpgaprune.network import ChannelAxes
from fpgaprune.select.multipliers import check_sharing, multiplier_labels, used_reuse_factor


@dataclass(frozen=True)
class Partition:
    """The units of one weight.

    Attributes:
        shape: of the weight.
        labels: number of each element's unit; broadcasts to `shape`.
        count: units.
        in_order: whether the labels count up, so that nothing has to be moved.
    """

    shape: tuple[int, ...]
    labels: NDArray[np.intp]
    count: int
    in_order: bool = False

    @property
    def flat(self) -> NDArray[np.intp]:
        """The unit of each element, in C order."""
        return np.broadcast_to(self.labels, self.shape).ravel()

    def sizes(self) -> NDArray[np.int64]:
        """Elements of each unit."""
        per_label = math.prod(self.shape) // max(self.labels.size, 1)
        return np.bincount(self.labels.ravel(), minlength=self.count) * per_label

    def mean(self, scores: NDArray[Any]) -> NDArray[np.float64]:
        """The mean of `scores`, which broadcast to the weight, over each unit."""
        # Where labels do not vary along an axis, the mean along it comes first: cheap, and the same mean.
        full = np.broadcast_to(scores, self.shape)
        constant = tuple(axis for axis, size in enumerate(self.labels.shape) if size == 1)
        small: NDArray[np.float64] = full.mean(axis=constant, keepdims=True, dtype=np.float64)
        if self.in_order:
            return small.ravel()
        if self.labels.size == self.count:
            means = np.empty(self.count)
            means[self.labels.ravel()] = small.ravel()
            return means
        sums = np.bincount(self.labels.ravel(), weights=small.ravel(), minlength=self.count)
        return sums / np.bincount(self.labels.ravel(), minlength=self.count)

    def first(self, scores: NDArray[Any]) -> NDArray[np.float64]:
        """The score of the first element of each unit."""
        found = np.empty(self.count)
        found[self.flat[::-1]] = np.broadcast_to(scores, self.shape).ravel()[::-1]
        return found

    def all(self, flags: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """True for the units of which every element is flagged."""
        whole = np.ones(self.count, dtype=bool)
        whole[self.flat[~np.broadcast_to(flags, self.shape).ravel()]] = False
        return whole

    def spread(self, flags: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """The flag of its unit, for each element."""
        of_labels = flags.reshape(self.labels.shape) if self.in_order else flags[self.labels]
        return np.broadcast_to(of_labels, self.shape).copy()


class Granularity(Protocol):
    """A way to cut weights into units."""

    def partition(self, path: str, shape: tuple[int, ...], axes: ChannelAxes) -> Partition:
        """The units of the weight `path`.

        Raises:
            MaskError: the weight has no such units.
        """


@dataclass(frozen=True)
class Named:
    """`weight`, `kernel` (one `W[..., i, o]`), `filter` (one `W[..., o]`) or `input_channel` (one `W[..., i, :]`)."""

    name: str

    def partition(self, path: str, shape: tuple[int, ...], axes: ChannelAxes) -> Partition:
        """The units of the weight `path`; raises MaskError for a weight without channels, such as a bias."""
        if self.name == "weight":
            return _numbered(shape, tuple(range(len(shape))))
        if len(shape) < 2:
            raise MaskError(f"weight {path!r} of shape {shape} has no {self.name}; use granularity 'weight'")
        kept = {"kernel": axes.kernel, "filter": axes.outputs, "input_channel": axes.inputs}[self.name]
        return _numbered(shape, kept)


@dataclass(frozen=True)
class Block:
    """Blocks of a fixed shape, laid from index 0 on; at the far edge of a weight they are cut off.

    Attributes:
        shape: sides along the last axes of the weight, 1 along the others; -1 spans an axis. `(4, 4)` is 4 input by
            4 output channels at one position of a convolution, `(-1, -1, 1, 1)` a kernel.
    """

    shape: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.shape or any(isinstance(s, bool) or not isinstance(s, int) or s == 0 or s < -1 for s in self.shape):
            raise MaskError(f"block shape is {self.shape}; wanted whole numbers of 1 or more, or -1 for a whole axis")

    def partition(self, path: str, shape: tuple[int, ...], axes: ChannelAxes) -> Partition:  # noqa: ARG002
        """The blocks of the weight `path`; raises MaskError where the weight has fewer axes than the block."""
        if len(self.shape) > len(shape):
            raise MaskError(f"weight {path!r} of shape {shape} has fewer axes than the block {self.shape}")
        sides = (1,) * (len(shape) - len(self.shape)) + self.shape
        sides = tuple(size if side == -1 else side for side, size in zip(sides, shape, strict=True))
        labels = np.zeros((1,) * len(shape), dtype=np.intp)
        for axis, (side, size) in enumerate(zip(sides, shape, strict=True)):
            blocks = -(-size // side)
            along = (np.arange(size) // side).reshape(_along(axis, len(shape)))
            labels = labels * blocks + (along if blocks > 1 else 0)
        return Partition(shape, labels, math.prod(-(-n // s) for n, s in zip(shape, sides, strict=True)))


@dataclass(frozen=True)
class Multiplier:
    """The weights that take turns on one hardware multiplier of hls4ml: where all are zero, it can go.

    hls4ml's `resource` strategy keeps the multiplier of zero weights whose values stand in memory; its
    `resource_unrolled` strategy drops it.

    Attributes:
        strategy: `resource`, `resource_unrolled`, or `latency` with a reuse factor of 1.
        reuse_factor: as asked of the project, which takes the nearest that the layer allows (`ReuseWarning`); or a
            mapping of globs of weight paths to it, of which the first that matches counts.
        io_type: `io_stream` or `io_parallel`.
    """

    strategy: str
    reuse_factor: int | Mapping[str, int] = 1
    io_type: str = "io_stream"

    def __post_init__(self) -> None:
        for name, value, allowed in (("strategy", self.strategy, STRATEGIES), ("io_type", self.io_type, IO_TYPES)):
            if value not in allowed:
                raise MaskError(f"{name} {value!r} is unknown; wanted one of {', '.join(allowed)}")
        check_sharing(self.strategy, self.reuse_factor)

    def partition(self, path: str, shape: tuple[int, ...], axes: ChannelAxes) -> Partition:
        """The multipliers of the weight `path`; raises MaskError where weights do not share multipliers by plan."""
        if len(shape) < 2:
            raise MaskError(f"weight {path!r} of shape {shape} is not multiplied; use granularity 'weight'")
        if axes != ChannelAxes():
            raise MaskError(
                f"weight {path!r} belongs to a depthwise or transposed layer, which hls4ml does not share out"
            )
        reuse = used_reuse_factor(path, shape, self.strategy, self.reuse_factor, self.io_type)
        return Partition(shape, multiplier_labels(shape, reuse), math.prod(shape) // reuse)


@dataclass(frozen=True)
class NofM:
    """At most `n` of every `m` consecutive input channels stay, at each position and output channel.

    Source: Mishra, Albericio Latorre, Pool, Stosic, Stosic, Venkatesh, Yu, Micikevicius, "Accelerating Sparse Deep
    Neural Networks", 2021, section 3 (2:4); Zhou, Ma, Zhu, Liu, Zhang, Yuan, Sun, Li, "Learning N:M Fine-grained
    Structured Sparse Neural Networks From Scratch", 2021.
    """

    n: int
    m: int

    def __post_init__(self) -> None:
        if not 1 <= self.n < self.m:
            raise MaskError(f"granularity '{self.n}:{self.m}' keeps {self.n} of {self.m}; wanted at least 1 and fewer")

    @property
    def sparsity(self) -> float:
        """The sparsity that the pattern makes where `m` divides the channels."""
        return 1 - self.n / self.m

    def partition(self, path: str, shape: tuple[int, ...], axes: ChannelAxes) -> Partition:
        """The groups of up to `m` elements; raises MaskError for a weight without channels."""
        if len(shape) < 2:
            raise MaskError(f"weight {path!r} of shape {shape} has no input channels; n:m needs them")
        sides = [1] * len(shape)
        sides[axes.inputs[0]] = self.m
        return Block(tuple(sides)).partition(path, shape, axes)

    def lock(self, scores: NDArray[np.float64], axes: ChannelAxes) -> NDArray[np.bool_]:
        """The mask that keeps the `n` best elements of each group; of equal ones the later."""
        along = np.moveaxis(scores, axes.inputs[0], -1)
        channels = along.shape[-1]
        # A last group that is short is filled up with what is never better than its own elements.
        fill = [(0, 0)] * (along.ndim - 1) + [(0, -channels % self.m)]
        filled = np.pad(along, fill, constant_values=-np.inf)
        groups = filled.reshape(-1, self.m)
        best = np.argsort(groups, axis=-1, kind="stable")[:, self.m - self.n :]
        free = np.zeros(groups.shape, dtype=bool)
        np.put_along_axis(free, best, True, axis=-1)
        return np.ascontiguousarray(np.moveaxis(free.reshape(filled.shape)[..., :channels], -1, axes.inputs[0]))


def _numbered(shape: tuple[int, ...], kept: tuple[int, ...]) -> Partition:
    axes = {axis % len(shape) for axis in kept}
    small = tuple(size if axis in axes else 1 for axis, size in enumerate(shape))
    count = math.prod(small)
    return Partition(shape, np.arange(count, dtype=np.intp).reshape(small), count, in_order=True)


def _along(axis: int, ndim: int) -> tuple[int, ...]:
    return tuple(-1 if at == axis else 1 for at in range(ndim))
