"""`Channels`: which channel each element of a tensor belongs to, its constant value, and the `Role` of a layer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import keras


class Role(Enum):
    """What a layer does to channels. Each class of layers names its role in `fpgaprune.network.rules`."""

    CONVOLUTION = auto()  # its kernel makes channels: `W[..., i, o]` is from input channel i to output channel o
    DENSE = auto()  # the same at a single position
    TRANSPOSED = auto()  # its kernel makes channels: `W[..., o, i]`
    DEPTHWISE = auto()  # its kernel filters each channel alone: `W[..., c, m]` makes channel `c * M + m`
    SEPARABLE = auto()  # a depthwise kernel without a bias, then a kernel that makes channels of what it filtered
    RECURRENT = auto()  # its kernels make channels, from the input and from the time step before
    NORM = auto()  # one scale and one shift for each channel
    IDENTITY = auto()  # its output is its input at inference
    POINTWISE = auto()  # an activation, which treats each position alone
    POSITIONS = auto()  # channels keep their places; positions are moved, pooled, dropped or filled with zero
    MERGE = auto()  # channel c is made of channel c of each of its tensors; zeros make zero
    JOIN = auto()  # puts tensors side by side
    FLAT = auto()  # positions and channels may become one axis


KERNEL = frozenset({Role.CONVOLUTION, Role.DENSE})
# Layers that hold a kernel and make channels.
MAKERS = KERNEL | {Role.TRANSPOSED, Role.DEPTHWISE, Role.RECURRENT}
# These treat each position alone, so a constant channel stays constant.
PLACEWISE = frozenset({Role.IDENTITY, Role.POINTWISE})
# In these, output channel c depends on input channel c alone, and zeros make zeros if the activation keeps zero.
CHANNELWISE = PLACEWISE | {Role.POSITIONS}


Shape = tuple[int | None, ...]


@dataclass(frozen=True)
class AxisChannels:
    """The channels along one axis: arrays of that axis' length.

    Attributes:
        ids: the slot of each channel.
        known: True for a channel that is the same constant for every sample and at every position.
        value: that constant, in float64; 0 if it is not known.
    """

    ids: Ids
    known: NDArray[np.bool_]
    value: NDArray[np.float64]

    def __post_init__(self) -> None:
        _settle(self)

    def over(self, shape: Shape, axis: int) -> Channels:
        """Put these channels on `axis` of a tensor of `shape` (without the batch axis), the same at every position."""
        flat = tuple(-1 if k == axis else 1 for k in range(len(shape)))
        return Channels(shape, self.ids.reshape(flat), self.known.reshape(flat), self.value.reshape(flat))

    def meet(self, other: AxisChannels) -> AxisChannels:
        """Keep only the constants that `other` has, too."""
        return replace(self, known=self.known & other.known & (self.value == other.value))

    def zeros_only(self) -> AxisChannels:
        """Keep only the constants that are 0."""
        return AxisChannels(self.ids, self.known & (self.value == 0), np.zeros(self.value.shape))


@dataclass(frozen=True)
class Channels:
    """The channels of one tensor; the arrays have its rank, and length 1 on axes along which nothing changes.

    Attributes:
        shape: the tensor's shape without the batch axis; None for an unknown size.
        ids: the slot of each element.
        known: True for an element that is the same constant for every sample.
        value: that constant, in float64; 0 if it is not known.
    """

    shape: Shape
    ids: Ids
    known: NDArray[np.bool_]
    value: NDArray[np.float64]

    def __post_init__(self) -> None:
        _settle(self)

    @property
    def varying(self) -> tuple[int, ...]:
        """The axes along which the slots differ."""
        return tuple(axis for axis, size in enumerate(self.ids.shape) if size > 1)

    def line(self, axis: int) -> AxisChannels:
        """Return the channels along `axis`; nothing may vary along another axis."""
        size = self.shape[axis]
        full = (1 if size is None else size,)  # nothing varies along an axis of unknown size
        arrays: tuple[Any, Any, Any] = (self.ids, self.known, self.value)
        return AxisChannels(*(np.broadcast_to(array.reshape(-1), full) for array in arrays))

    def unknown(self) -> Channels:
        """Forget all constants, and keep the channels."""
        return replace(self, known=np.zeros_like(self.known))

    def transposed(self, order: Sequence[int]) -> Channels:
        """Return the tensor whose axis k is this one's axis `order[k]`."""
        shape = tuple(self.shape[k] for k in order)
        return Channels(shape, self.ids.transpose(order), self.known.transpose(order), self.value.transpose(order))

    def reshaped(self, shape: Shape) -> Channels | None:
        """Return the tensor in row-major order as `shape`; None if a size is unknown and slots differ."""
        full = tuple(n for n in self.shape if n is not None)
        wanted = tuple(n for n in shape if n is not None)
        if len(full) < len(self.shape) or len(wanted) < len(shape):
            if self.varying:
                return None
            flat = (1,) * len(shape)
            return Channels(shape, self.ids.reshape(flat), self.known.reshape(flat), self.value.reshape(flat))
        if math.prod(full) != math.prod(wanted):
            return None
        arrays: tuple[Any, Any, Any] = (self.ids, self.known, self.value)
        return _squeezed(shape, *(np.broadcast_to(array, full).reshape(wanted) for array in arrays))


def _settle(facts: AxisChannels | Channels) -> None:
    """Make only finite constants known, and the value 0 elsewhere."""
    known = np.logical_and(facts.known, np.isfinite(facts.value))
    object.__setattr__(facts, "known", known)
    object.__setattr__(facts, "value", np.where(known, facts.value, 0.0))


def _squeezed(shape: Shape, ids: Ids, known: NDArray[np.bool_], value: NDArray[np.float64]) -> Channels:
    """Make channels of full arrays, with every axis along which nothing changes cut to length 1."""
    for axis in range(ids.ndim):
        first = [slice(None)] * ids.ndim
        first[axis] = slice(0, 1)
        at = tuple(first)
        if all(bool((a == a[at]).all()) for a in (ids, known, value)):
            ids, known, value = ids[at], known[at], value[at]
    return Channels(shape, ids, known, value)


Ids = NDArray[np.intp]


class Slots:
    """Counts slots from 0, and remembers which were united."""

    def __init__(self) -> None:
        self.count = 0
        self._left: list[Ids] = []
        self._right: list[Ids] = []

    def fresh(self, count: int) -> Ids:
        """Return `count` slots that nothing else uses."""
        ids = np.arange(self.count, self.count + count, dtype=np.intp)
        self.count += count
        return ids

    def unite(self, left: Ids, right: Ids) -> None:
        """Let `left[k]` and `right[k]` leave or stay together, for every k of their broadcast shape."""
        left, right = np.broadcast_arrays(left, right)
        differ = left != right
        if differ.any():
            self._left.append(left[differ])
            self._right.append(right[differ])

    def roots(self) -> Ids:
        """Return the smallest slot of each slot's group; shape (count,)."""
        parent = np.arange(self.count, dtype=np.intp)
        if not self._left:
            return parent
        left, right = np.concatenate(self._left), np.concatenate(self._right)
        while True:
            above, below = parent[left], parent[right]
            apart = above != below
            if not apart.any():
                return parent
            left, right, above, below = left[apart], right[apart], above[apart], below[apart]
            np.minimum.at(parent, np.maximum(above, below), np.minimum(above, below))
            while True:
                shorter = parent[parent]
                if np.array_equal(shorter, parent):
                    break
                parent = shorter


def channel_axis(layer: keras.Layer) -> int:
    """Return the axis of channels in a shape without the batch axis."""
    return 0 if layer.data_format == "channels_first" else -1


def spatial(layer: keras.Layer, shape: Shape) -> Shape:
    """Return the sizes of the spatial axes."""
    return shape[1:] if layer.data_format == "channels_first" else shape[:-1]


def positions(sizes: Shape) -> int:
    """Return the number of positions of a kernel; an unknown size counts as 1."""
    return math.prod(size or 1 for size in sizes)


def pads_zeros(layer: keras.Layer, sizes: Shape) -> bool:
    """Return whether some tap of the kernel reads a zero of the padding."""
    if layer.padding == "valid":
        return False
    steps = zip(sizes, layer.kernel_size, layer.strides, layer.dilation_rate, strict=True)
    return any(_pads_axis(*step, causal=layer.padding == "causal") for step in steps)


def _pads_axis(size: int | None, kernel: int, stride: int, dilation: int, causal: bool) -> bool:
    reach = (kernel - 1) * dilation + 1
    if reach == 1 or causal or size is None:
        return reach > 1
    return (math.ceil(size / stride) - 1) * stride + reach > size
