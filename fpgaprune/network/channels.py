"""`Channels` says which channel each element of a tensor belongs to, and its value if it is constant."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpgaprune.network.slots import Ids

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
        """These channels on `axis` of a tensor of `shape` (without the batch axis), the same at every position."""
        flat = tuple(-1 if k == axis else 1 for k in range(len(shape)))
        return Channels(shape, self.ids.reshape(flat), self.known.reshape(flat), self.value.reshape(flat))

    def meet(self, other: AxisChannels) -> AxisChannels:
        """This line, with only the constants known that `other` has too."""
        return replace(self, known=self.known & other.known & (self.value == other.value))

    def zeros_only(self) -> AxisChannels:
        """This line, with only the constants 0 known."""
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
        """The channels along `axis`; nothing may vary along another axis."""
        size = self.shape[axis]
        full = (1 if size is None else size,)  # nothing varies along an axis of unknown size
        arrays: tuple[Any, Any, Any] = (self.ids, self.known, self.value)
        return AxisChannels(*(np.broadcast_to(array.reshape(-1), full) for array in arrays))

    def unknown(self) -> Channels:
        """The same slots, with no constant known."""
        return replace(self, known=np.zeros_like(self.known))

    def transposed(self, order: Sequence[int]) -> Channels:
        """The tensor whose axis k is this one's axis `order[k]`."""
        shape = tuple(self.shape[k] for k in order)
        return Channels(shape, self.ids.transpose(order), self.known.transpose(order), self.value.transpose(order))

    def reshaped(self, shape: Shape) -> Channels | None:
        """The tensor in row-major order as `shape`; None if a size is unknown and slots differ."""
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
    """Makes only finite constants known, and the value 0 elsewhere."""
    known = np.logical_and(facts.known, np.isfinite(facts.value))
    object.__setattr__(facts, "known", known)
    object.__setattr__(facts, "value", np.where(known, facts.value, 0.0))


def _squeezed(shape: Shape, ids: Ids, known: NDArray[np.bool_], value: NDArray[np.float64]) -> Channels:
    """Channels of full arrays, with every axis along which nothing changes cut to length 1."""
    for axis in range(ids.ndim):
        first = [slice(None)] * ids.ndim
        first[axis] = slice(0, 1)
        at = tuple(first)
        if all(bool((a == a[at]).all()) for a in (ids, known, value)):
            ids, known, value = ids[at], known[at], value[at]
    return Channels(shape, ids, known, value)
