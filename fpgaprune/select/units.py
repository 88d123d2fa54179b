"""Granularity, and its text in a flow file: how a weight is divided into units, which are locked as a whole."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fpgaprune.design import IO_TYPES, STRATEGIES
from fpgaprune.errors import MaskError
from fpgaprune.network import DEPTHWISE, TRANSPOSED, ChannelAxes
from fpgaprune.select.multipliers import check_sharing, multiplier_labels, used_reuse_factor
from fpgaprune.values import Array


@dataclass(frozen=True)
class Partition:
    """The units of one weight.

    Attributes:
        shape: shape of the weight.
        labels: number of the unit of each element; broadcasts to `shape`.
        count: number of units.
        in_order: whether the labels count up, so that arrays need no reordering.
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
        """Return the number of elements of each unit."""
        per_label = math.prod(self.shape) // max(self.labels.size, 1)
        return np.bincount(self.labels.ravel(), minlength=self.count) * per_label

    def mean(self, scores: Array) -> NDArray[np.float64]:
        """Return the mean of `scores` over each unit; `scores` broadcast to the weight."""
        # The mean along axes where labels do not vary comes first, which is faster and gives the same mean.
        full = np.broadcast_to(scores, self.shape)
        constant = tuple(axis for axis, size in enumerate(self.labels.shape) if size == 1)
        small: NDArray[np.float64] = full.mean(axis=constant, keepdims=True, dtype=np.float64)
        if self.in_order:
            return small.ravel()
        sums = np.bincount(self.labels.ravel(), weights=small.ravel(), minlength=self.count)
        return sums / np.bincount(self.labels.ravel(), minlength=self.count)

    def first(self, scores: Array) -> NDArray[np.float64]:
        """Return the score of the first element of each unit."""
        found = np.empty(self.count)
        found[self.flat[::-1]] = np.broadcast_to(scores, self.shape).ravel()[::-1]
        return found

    def all(self, flags: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return True for units whose elements are all flagged."""
        whole = np.ones(self.count, dtype=bool)
        whole[self.flat[~np.broadcast_to(flags, self.shape).ravel()]] = False
        return whole

    def spread(self, flags: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return for each element the flag of its unit."""
        of_labels = flags.reshape(self.labels.shape) if self.in_order else flags[self.labels]
        return np.broadcast_to(of_labels, self.shape).copy()


class Granularity(Protocol):
    """A way to divide weights into units."""

    def partition(self, path: str, shape: tuple[int, ...], axes: ChannelAxes) -> Partition:
        """Return the units of the weight `path`.

        Raises:
            MaskError: the weight has no such units.
        """


@dataclass(frozen=True)
class Named:
    """`weight`, `kernel` (one `W[..., i, o]`), `filter` (one `W[..., o]`) or `input_channel` (one `W[..., i, :]`)."""

    name: str

    def partition(self, path: str, shape: tuple[int, ...], axes: ChannelAxes) -> Partition:
        """Return the units of the weight `path`; raises MaskError for a weight without channels, such as a bias."""
        if self.name == "weight":
            return _numbered(shape, tuple(range(len(shape))))
        if len(shape) < 2:
            raise MaskError(f"weight {path!r} of shape {shape} has no {self.name}; use granularity 'weight'")
        kept = {"kernel": axes.kernel, "filter": axes.outputs, "input_channel": axes.inputs}[self.name]
        return _numbered(shape, kept)


SINGLE = Named("weight")
"""The granularity of single weights, each of which takes an adder, however often it is used."""


@dataclass(frozen=True)
class Block:
    """Blocks of a fixed shape, laid from index 0 on; blocks at the far edge of a weight may be smaller.

    Attributes:
        shape: sides along the last axes of the weight, with 1 along the other axes; -1 is a whole axis. `(4, 4)` is
            4 input by 4 output channels at one position of a convolution, `(-1, -1, 1, 1)` is a kernel.
    """

    shape: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.shape or any(isinstance(s, bool) or not isinstance(s, int) or s == 0 or s < -1 for s in self.shape):
            raise MaskError(f"block shape is {self.shape}; wanted whole numbers of 1 or more, or -1 for a whole axis")

    def partition(self, path: str, shape: tuple[int, ...], axes: ChannelAxes) -> Partition:  # noqa: ARG002
        """Return the blocks of the weight `path`; raises MaskError if the weight has fewer axes than the block."""
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


# Layers whose channels are not counted by the last two axes of their weight, by the axes that count them.
_OTHER_LAYERS = {DEPTHWISE: "a depthwise layer", TRANSPOSED: "a transposed convolution"}
_SEVERAL_AXES = "an attention or EinsumDense layer"


@dataclass(frozen=True)
class Multiplier:
    """The weights that share one hardware multiplier of hls4ml: if all are zero, the multiplier can be removed.

    hls4ml's `resource` strategy keeps such a multiplier, because its weights are read from memory; its
    `resource_unrolled` strategy removes it.

    Attributes:
        strategy: `resource`, `resource_unrolled`, or `latency` with a reuse factor of 1.
        reuse_factor: the reuse factor of the project, which uses the nearest that the layer allows (`ReuseWarning`); or
            a mapping of globs of weight paths to reuse factors, of which the first match counts.
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
        """Return the multipliers of the weight `path`; raises MaskError if it is not fixed which weights share one."""
        if len(shape) < 2:
            raise MaskError(f"weight {path!r} of shape {shape} is not multiplied; use granularity 'weight'")
        if axes != ChannelAxes():
            raise MaskError(
                f"weight {path!r} belongs to {_OTHER_LAYERS.get(axes, _SEVERAL_AXES)}, whose products hls4ml does not "
                "share out among multipliers: leave it out with paths, or use granularity 'kernel'"
            )
        reuse = used_reuse_factor(path, shape, self.strategy, self.reuse_factor, self.io_type)
        return Partition(shape, multiplier_labels(shape, reuse), math.prod(shape) // reuse)


@dataclass(frozen=True)
class NofM:
    """Keeps at most `n` of every `m` consecutive input channels, at each position and output channel.

    Attributes:
        n: number of channels that stay free.
        m: number of consecutive channels; None for all that a weight has.
        reached: how far on the way to the pattern, 0..1: before its end more than `n` stay.

    Source: Mishra, Albericio Latorre, Pool, Stosic, Stosic, Venkatesh, Yu, Micikevicius, "Accelerating Sparse Deep
    Neural Networks", 2021, section 3 (2:4); Zhou, Ma, Zhu, Liu, Zhang, Yuan, Sun, Li, "Learning N:M Fine-grained
    Structured Sparse Neural Networks From Scratch", 2021.
    """

    n: int
    m: int | None
    reached: float = 1.0

    def __post_init__(self) -> None:
        if not 1 <= self.n < (math.inf if self.m is None else self.m):
            of = str(self).partition(":")[2]
            raise MaskError(f"granularity '{self}' keeps {self.n} of {of}; wanted at least 1 and fewer")

    def __str__(self) -> str:
        return f"{self.n}:{'all' if self.m is None else self.m}"

    @property
    def sparsity(self) -> float:
        """The sparsity of the pattern if `m` divides the number of channels; 1 for `n` of all: a schedule's last."""
        return 1.0 if self.m is None else 1 - self.n / self.m

    def on_the_way(self, sparsity: float) -> NofM:
        """Return the pattern that keeps `round((1 - sparsity) * m)` of `m`, and at least `n`."""
        return replace(self, reached=min(sparsity / self.sparsity, 1.0))

    def partition(self, path: str, shape: tuple[int, ...], axes: ChannelAxes) -> Partition:
        """Return the groups of up to `m` elements; raises MaskError for a weight without channels."""
        if len(shape) < 2:
            raise MaskError(f"weight {path!r} of shape {shape} has no input channels; n:m needs them")
        sides = [1] * len(shape)
        sides[axes.inputs[0]] = self.m or shape[axes.inputs[0]]
        return Block(tuple(sides)).partition(path, shape, axes)

    def lock(self, scores: NDArray[np.float64], axes: ChannelAxes) -> NDArray[np.bool_]:
        """Return the mask that keeps the `n` best elements of each group; of equal elements the later one."""
        along = np.moveaxis(scores, axes.inputs[0], -1)
        channels = along.shape[-1]
        m = self.m or channels
        kept = min(self.n + round((1 - self.reached) * (m - self.n)), m)
        # A short last group is padded with elements that are never better than its own.
        fill = [(0, 0)] * (along.ndim - 1) + [(0, -channels % m)]
        filled = np.pad(along, fill, constant_values=-np.inf)
        groups = filled.reshape(-1, m)
        best = np.argsort(groups, axis=-1, kind="stable")[:, m - kept :]
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


GRANULARITIES = ("weight", "kernel", "filter", "input_channel")
FORMS = f"{', '.join(GRANULARITIES)}, n:m such as 2:4 or 6:all, block(4, 4), or multiplier(resource_unrolled, 9)"
_N_OF_M = re.compile(r"^(?P<n>\d{1,9}):(?P<m>\d{1,9}|all)$")
_CALL = re.compile(r"^(?P<name>block|multiplier)\((?P<arguments>[^()]*)\)$")
_INTEGER = re.compile(r"^-?\d{1,9}$")


def parse_granularity(value: str | Granularity) -> Granularity:
    """Return the granularity that the text `value` names; a `Block` or `Multiplier` is returned as it is.

    Args:
        value: `weight`, `kernel`, `filter` or `input_channel`; `2:4` or `6:all`; `block(4, 4)`, whose numbers are the
            sides of `Block`; `multiplier(resource_unrolled, 9)`, strategy and reuse factor of `Multiplier`, and, if
            wanted, the io_type.

    Raises:
        MaskError: there is no such granularity; the message lists the forms.
    """
    if not isinstance(value, str):
        if not hasattr(value, "partition"):
            raise MaskError(f"granularity {value!r} is unknown; wanted one of {FORMS}, or a Block or Multiplier")
        return value
    if value in GRANULARITIES:
        return Named(value)
    pattern = _N_OF_M.match(value)
    if pattern:
        return NofM(int(pattern["n"]), None if pattern["m"] == "all" else int(pattern["m"]))
    call = _CALL.match(value.strip())
    arguments = [argument.strip() for argument in call["arguments"].split(",")] if call else []
    if call and call["name"] == "block" and all(_INTEGER.match(argument) for argument in arguments):
        return Block(tuple(int(argument) for argument in arguments))
    if call and call["name"] == "multiplier" and 2 <= len(arguments) <= 3 and _INTEGER.match(arguments[1]):
        return Multiplier(arguments[0], int(arguments[1]), *arguments[2:])
    raise MaskError(f"granularity {value!r} is unknown; wanted one of {FORMS}")
