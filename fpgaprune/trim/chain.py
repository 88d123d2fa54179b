"""`Chain`: Dense layers one behind another as arrays, with a type of its own for each channel that they read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
T = TypeVar("T")


@dataclass(frozen=True)
class ChannelTypes:
    """Types of the channels of one value, which saturate.

    Attributes:
        width: bits of each channel, (C,); 0 for a channel that is always zero.
        integer: bits before the point, (C,).
        signed: whether the channels have a sign.
        rounds: whether they round half up; False where they cut off bits.
    """

    width: Ints
    integer: Ints
    signed: bool
    rounds: bool = True

    @property
    def step(self) -> Floats:
        """The smallest difference of two numbers of each channel, (C,)."""
        return np.exp2((self.integer - self.width).astype(np.float32))

    def rounded(self, values: Floats, channel: int | slice | Ints = slice(None)) -> Floats:
        """Return `values`, (..., C), as the types of these channels hold them."""
        step = self.step[channel]
        high = np.exp2((self.integer[channel] - int(self.signed)).astype(np.float32)) - step
        low = -high - step if self.signed else np.zeros_like(high)
        found = np.clip(np.floor(values / step + np.float32(self.rounds / 2)) * step, low, high)
        return np.where(self.width[channel] > 0, found, np.float32(0)).astype(np.float32)

    def narrowed(self, channel: int, integer: int) -> ChannelTypes:
        """Return types with one bit less for `channel`: its lowest for `integer` 0, its highest for `integer` 1."""
        width, before = self.width.copy(), self.integer.copy()
        width[channel] -= 1
        before[channel] -= integer
        return replace(self, width=width, integer=before)

    def without(self, channels: NDArray[np.bool_]) -> ChannelTypes:
        """Return types in which `channels` are always zero."""
        return replace(self, width=np.where(channels, 0, self.width))


@dataclass(frozen=True)
class Chain:
    """Dense layers: each rounds its input channel by channel and multiplies it; a layer but the last ends in ReLU.

    ReLU is part of the types of the next input, which are unsigned.

    Attributes:
        kernels: (inputs, outputs) of each layer, the numbers of the hardware.
        biases: (outputs,) of each layer.
        types: of the input of each layer.
    """

    kernels: tuple[Floats, ...]
    biases: tuple[Floats, ...]
    types: tuple[ChannelTypes, ...]

    def __len__(self) -> int:
        return len(self.kernels)

    def outputs(self, x: Floats) -> Floats:
        """Return what the last layer gives for samples x, (N, inputs): (N, outputs)."""
        values = x
        for number in range(len(self)):
            values = self.sums(number, self.types[number].rounded(values))
        return values

    def sums(self, number: int, values: Floats) -> Floats:
        """Return the outputs of layer `number`, before ReLU, for its rounded input."""
        found: Floats = values @ self.kernels[number] + self.biases[number]
        return found

    def with_weight(self, number: int, row: int, column: int, value: float) -> Chain:
        """Return the chain with another weight in layer `number`."""
        kernel = self.kernels[number].copy()
        kernel[row, column] = value
        return replace(self, kernels=_at(self.kernels, number, kernel))

    def with_biases(self, number: int, biases: Floats) -> Chain:
        """Return the chain with other biases in layer `number`."""
        return replace(self, biases=_at(self.biases, number, biases))

    def with_types(self, number: int, types: ChannelTypes) -> Chain:
        """Return the chain with other types for the input of layer `number`."""
        return replace(self, types=_at(self.types, number, types))

    def without_dead(self) -> Chain:
        """Return the chain with zeros for all that no output depends on, and what is always zero."""
        kernels, types = list(self.kernels), list(self.types)
        for number in range(len(self)):
            silent = types[number].width == 0
            kernels[number] = np.where(silent[:, None], np.float32(0), kernels[number])
        for number in reversed(range(len(self))):
            unread = np.logical_not(kernels[number].any(axis=1))
            types[number] = types[number].without(unread)
            if number:
                kernels[number - 1] = np.where(unread, np.float32(0), kernels[number - 1])
        return replace(self, kernels=tuple(kernels), types=tuple(types))

    def weights(self) -> Iterator[tuple[int, int, int]]:
        """Yield layer, row and column of each weight that is not zero."""
        for number, kernel in enumerate(self.kernels):
            for row, column in zip(*np.nonzero(kernel), strict=True):
                yield number, int(row), int(column)


def _at(parts: tuple[T, ...], number: int, part: T) -> tuple[T, ...]:
    return (*parts[:number], part, *parts[number + 1 :])
