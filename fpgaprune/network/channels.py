"""What is known of a tensor's channels: which slot each element belongs to, and its value where that is constant."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fpgaprune.network.slots import Ids

Shape = tuple[int | None, ...]


@dataclass(frozen=True)
class AxisChannels:
    """The channels along one axis: arrays of that axis' length.

    Attributes:
        ids: the slot of each channel.
        known: True where the channel is one constant for every input and at every position.
        value: that constant, in float64; 0 where it is not known.
    """

    ids: Ids
    known: NDArray[np.bool_]
    value: NDArray[np.float64]

    def __post_init__(self) -> None:
        _settle(self)

    def over(self, shape: Shape, axis: int) -> Channels:
        """These channels on `axis` of a tensor of `shape` (without the batch axis), the same at every position."""
        flat = tuple(-1 if k == axis else 1 for k in range(len(shape)))
        return Channels(shape, self.ids.reshape(flat), self.known.reshape(flat), self.value.reshape(flat))

    def meet(self, other: AxisChannels) -> AxisChannels:
        """Known only where both are, with one value; the ids are these."""
        return replace(self, known=self.known & other.known & (self.value == other.value))

    def zeros_only(self) -> AxisChannels:
        """Known only where the constant is 0."""
        return AxisChannels(self.ids, self.known & (self.value == 0), np.zeros(self.value.shape))


@dataclass(frozen=True)
class Channels:
    """The channels of one tensor; the arrays have its rank, and length 1 on axes along which nothing changes.

    Attributes:
        shape: the tensor's shape without the batch axis; None where unknown.
        ids: the slot of each element.
        known: True where the element is one constant for every input.
        value: that constant, in float64; 0 where it is not known.
    """

    shape: Shape
    ids: Ids
    known: NDArray[np.bool_]
    value: NDArray[np.float64]

    def __post_init__(self) -> None:
        _settle(self)

    @property
    def varying(self) -> tuple[int, ...]:
        """The axes along which slots or facts differ."""
        return tuple(axis for axis, size in enumerate(self.ids.shape) if size > 1)

    def line(self, axis: int) -> AxisChannels:
        """The channels along `axis`; call it only where nothing varies along another axis."""
        size = self.shape[axis]
        if size is None:  # nothing varies along an axis of unknown size, so one channel says it all
            size = 1
        return AxisChannels(
            np.broadcast_to(self.ids.reshape(-1), (size,)),
            np.broadcast_to(self.known.reshape(-1), (size,)),
            np.broadcast_to(self.value.reshape(-1), (size,)),
        )

    def unknown(self) -> Channels:
        """The same slots, with no constant known."""
        return replace(self, known=np.zeros_like(self.known))

    def resized(self, shape: Shape) -> Channels:
        """The same channels in a tensor of another shape and the same rank; no varying axis may change."""
        return replace(self, shape=shape)

    def transposed(self, order: Sequence[int]) -> Channels:
        """The tensor whose axis k is this one's axis `order[k]`."""
        shape = tuple(self.shape[k] for k in order)
        return Channels(shape, self.ids.transpose(order), self.known.transpose(order), self.value.transpose(order))

    def reshaped(self, shape: Shape) -> Channels | None:
        """The tensor in row-major order as `shape`; None where the shape is not known and slots differ."""
        full = tuple(n for n in self.shape if n is not None)
        wanted = tuple(n for n in shape if n is not None)
        if len(full) < len(self.shape) or len(wanted) < len(shape):
            if self.varying:
                return None
            flat = (1,) * len(shape)
            return Channels(shape, self.ids.reshape(flat), self.known.reshape(flat), self.value.reshape(flat))
        if math.prod(full) != math.prod(wanted):
            return None
        return squeezed(
            shape,
            np.broadcast_to(self.ids, full).reshape(wanted),
            np.broadcast_to(self.known, full).reshape(wanted),
            np.broadcast_to(self.value, full).reshape(wanted),
        )


def _settle(facts: AxisChannels | Channels) -> None:
    """Only finite constants are known, and the value is 0 where none is."""
    known = np.logical_and(facts.known, np.isfinite(facts.value))
    object.__setattr__(facts, "known", known)
    object.__setattr__(facts, "value", np.where(known, facts.value, 0.0))


def squeezed(shape: Shape, ids: Ids, known: NDArray[np.bool_], value: NDArray[np.float64]) -> Channels:
    """Channels of full arrays, with every axis along which nothing changes cut to length 1."""
    for axis in range(ids.ndim):
        first = [slice(None)] * ids.ndim
        first[axis] = slice(0, 1)
        at = tuple(first)
        if all(bool((a == a[at]).all()) for a in (ids, known, value)):
            ids, known, value = ids[at], known[at], value[at]
    return Channels(shape, ids, known, value)
