"""`Move`: one small change of a chain, a bit of a channel, a weight or a bias; `moves_of` lists those of a chain."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fpgaprune.trim.chain import Chain, ChannelTypes, Floats

# Change of a bias, in steps of the type that its sum is rounded to.
_BIAS_STEPS = (-1.0, -0.5, -0.25, 0.25, 0.5, 1.0)


@dataclass(frozen=True)
class Move(ABC):
    """One small change of a chain.

    Attributes:
        number: of the layer.
        column: the channel of the layer's input, or the output of the layer, that changes.
    """

    number: int
    column: int

    @property
    def changes(self) -> tuple[int, int]:
        """The layer whose input changes, the number of layers for the outputs of the last one, and the channel."""
        return self.number + 1, self.column

    @abstractmethod
    def apply(self, chain: Chain) -> Chain:
        """Return `chain` after the change."""

    @abstractmethod
    def values(self, chain: Chain, arriving: Sequence[Floats], rounded: Sequence[Floats]) -> Floats:
        """Return the changed channel after the change, (N,), as the layer that reads it rounds it.

        Args:
            chain: before the change.
            arriving: the input of each layer, and the outputs of the last one, (N, channels), before it is rounded.
            rounded: the input of each layer as it is rounded.
        """

    def shift(self, chain: Chain) -> Floats:
        """Return what the biases of the layer that reads the channel add, (outputs,)."""
        return np.zeros_like(chain.biases[self.changes[0]])


@dataclass(frozen=True)
class NarrowChannel(Move):
    """A channel of a layer's input gets one bit less: its lowest for `integer` 0, its highest for `integer` 1.

    Attributes:
        lost: how much smaller its values become on average; biases make up for it.
    """

    integer: int
    lost: float

    @property
    def changes(self) -> tuple[int, int]:
        """The layer, and the channel of its input."""
        return self.number, self.column

    def apply(self, chain: Chain) -> Chain:
        """Return `chain` with the narrower channel and other biases."""
        changed = chain.with_types(self.number, chain.types[self.number].narrowed(self.column, self.integer))
        return changed.with_biases(self.number, chain.biases[self.number] + self.shift(chain))

    def values(self, chain: Chain, arriving: Sequence[Floats], _: Sequence[Floats]) -> Floats:
        """Return the narrower channel, (N,)."""
        types = chain.types[self.number].narrowed(self.column, self.integer)
        return types.rounded(arriving[self.number][:, self.column], self.column)

    def shift(self, chain: Chain) -> Floats:
        """Return what the biases add for what the channel loses, (outputs,)."""
        found: Floats = chain.kernels[self.number][self.column] * np.float32(self.lost)
        return found


@dataclass(frozen=True)
class SetWeight(Move):
    """The weight of input `row` in an output becomes `value`."""

    row: int
    value: float

    def apply(self, chain: Chain) -> Chain:
        """Return `chain` with the weight, and without an input that no output reads any longer."""
        changed = chain.with_weight(self.number, self.row, self.column, self.value)
        return changed if changed.kernels[self.number][self.row].any() else changed.without_dead()

    def values(self, chain: Chain, arriving: Sequence[Floats], rounded: Sequence[Floats]) -> Floats:
        """Return the output for the other weight, (N,)."""
        change = np.float32(self.value) - chain.kernels[self.number][self.row, self.column]
        sums = arriving[self.number + 1][:, self.column] + change * rounded[self.number][:, self.row]
        return _as_read(chain, self.number + 1, self.column, sums)


@dataclass(frozen=True)
class SetBias(Move):
    """The bias of an output becomes `value`, which takes no hardware."""

    value: float

    def apply(self, chain: Chain) -> Chain:
        """Return `chain` with the bias."""
        bias = chain.biases[self.number].copy()
        bias[self.column] = self.value
        return chain.with_biases(self.number, bias)

    def values(self, chain: Chain, arriving: Sequence[Floats], _: Sequence[Floats]) -> Floats:
        """Return the output for the other bias, (N,)."""
        change = np.float32(self.value) - chain.biases[self.number][self.column]
        return _as_read(chain, self.number + 1, self.column, arriving[self.number + 1][:, self.column] + change)


def moves_of(chain: Chain, arriving: Sequence[Floats]) -> Iterator[Move]:
    """Yield the moves of `chain`. A weight that is zero stays zero: locked ones are.

    Args:
        chain: before the moves.
        arriving: the input of each layer for some samples, (N, inputs), before it is rounded.
    """
    for number, (types, values) in enumerate(zip(chain.types, arriving, strict=False)):
        yield from _narrowed(number, types, values)
    largest = [np.abs(kernel).max(initial=0) for kernel in chain.kernels]
    smallest = [np.abs(kernel[kernel != 0]).min(initial=np.inf) for kernel in chain.kernels]
    for number, row, column in chain.weights():
        weight = float(chain.kernels[number][row, column])
        yield SetWeight(number, column, row, 0.0)
        if abs(weight) * 2 <= largest[number]:
            yield SetWeight(number, column, row, weight * 2)
        if abs(weight) / 2 >= smallest[number]:
            yield SetWeight(number, column, row, weight / 2)
    for number, bias in enumerate(chain.biases):
        step = _steps(chain, number)
        for column in np.flatnonzero(step).tolist():
            for share in _BIAS_STEPS:
                yield SetBias(number, column, float(bias[column] + share * step[column]))


def mean_lost(before: Floats, after: Floats, types: ChannelTypes) -> Floats:
    """Return how much smaller values (N, C) become on average, (C,), in quarters of the steps of `types`."""
    quarter = types.step / 4
    found: Floats = np.round((before - after).mean(axis=0, dtype=np.float64) / quarter).astype(np.float32) * quarter
    return found


def _narrowed(number: int, types: ChannelTypes, values: Floats) -> Iterator[NarrowChannel]:
    """Yield the moves that take a bit of a channel of the input of layer `number`."""
    before = types.rounded(values)
    for integer in (0, 1):
        less = replace(types, width=types.width - 1, integer=types.integer - integer)
        lost = mean_lost(before, less.rounded(values), types)
        for channel in np.flatnonzero(types.width).tolist():
            yield NarrowChannel(number, channel, integer, float(lost[channel]))


def _as_read(chain: Chain, number: int, column: int, sums: Floats) -> Floats:
    """Return a channel of the input of layer `number` as that layer rounds it; outputs of the last layer stay."""
    return sums if number == len(chain) else chain.types[number].rounded(sums, column)


def _steps(chain: Chain, number: int) -> Floats:
    """Return the step of each output of a layer; 0 where it is not read."""
    if number + 1 == len(chain):
        return np.full(chain.biases[number].shape, _last_step(chain), np.float32)
    types = chain.types[number + 1]
    return np.where(types.width > 0, types.step, 0).astype(np.float32)


def _last_step(chain: Chain) -> float:
    """Return a step for the last biases: the smallest weight times the smallest step of what it reads."""
    kernel, types = chain.kernels[-1], chain.types[-1]
    if not kernel.any():
        return 0.0
    return float(np.abs(kernel[kernel != 0]).min() * types.step[types.width > 0].min())
