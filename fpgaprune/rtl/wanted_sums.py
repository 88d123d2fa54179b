"""`WantedSum`: what an output of a datapath should be, a weighted sum of its inputs and what is made of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fpgaprune.design import Design, LayerSpec, Quantise
from fpgaprune.emulate import Exact, Step, computed, steps_of
from fpgaprune.rtl.project import RtlLayer
from fpgaprune.rtl.read_expression import UndecidedError
from fpgaprune.values import FixedType


@dataclass(frozen=True)
class WantedSum:
    """What an output should be.

    Attributes:
        column: the raw weight of each input.
        start: the raw bias, as the accumulator holds it.
        fraction: of the products.
        accum: type of the accumulator.
        finish: what is made of the accumulator of an output with a number; None where it leaves as it is.
        together: what is made of the inputs of an output with a number, where it is no function of their sum.
    """

    column: NDArray[np.int64]
    start: int
    fraction: int
    accum: FixedType
    finish: Callable[[Exact, int], Exact] | None = None
    together: Callable[[Mapping[int, NDArray[np.int64]], int], Exact] | None = None

    def of(self, products: Exact, output: int) -> Exact:
        """Return what leaves at output number `output` for these sums of products."""
        start = Exact(np.asarray(self.start), self.accum.fraction, self.start, self.start)
        total = (start + products).into(self.accum)
        return total if self.finish is None else self.finish(total, output)


def sums_of(design: Design, row: RtlLayer) -> list[WantedSum]:
    """Return the sums of products of a layer, each with what its module computes behind it."""
    layer, steps = design[row.layer], {step.layer.name: step for step in steps_of(design)}
    matrix = matrix_of(layer)
    accum, result = layer.types["accum"], layer.types["result"]
    fraction = design[layer.inputs[0]].types["result"].fraction + layer.types["weight"].fraction
    joined = [steps[name] for name in row.joined.get(layer.name, ())]

    def finish(total: Exact, output: int) -> Exact:
        total = total.into(result)
        for step in joined:
            total = applied(step, total, output)
        return total

    starts = starts_of(layer, "bias", matrix.shape[1])
    return [WantedSum(column, start, fraction, accum, finish) for column, start in zip(matrix.T, starts, strict=True)]


def matrix_of(layer: LayerSpec) -> NDArray[np.int64]:
    """Return the raw weights (inputs of a position, outputs)."""
    weight = layer.weights["weight"]
    if not layer.is_depthwise:
        return weight.reshape(-1, weight.shape[-1])
    channels = layer.output_shape[-1]
    taps = weight.reshape(-1, channels)
    matrix = np.zeros((taps.size, channels), np.int64)
    for channel in range(channels):
        matrix[channel::channels, channel] = taps[:, channel]
    return matrix


def direction_of(column: NDArray[np.int64]) -> tuple[int, ...]:
    """Return what the weights of an output have in common with their multiples by plus or minus a power of two."""
    values = [int(value) for value in column]
    kept = [value for value in values if value]
    if not kept:
        return tuple(values)
    unit = min(value & -value for value in kept) * (1 if kept[0] > 0 else -1)
    return tuple(value // unit for value in values)


def starts_of(layer: LayerSpec, role: str, outputs: int) -> list[int]:
    """Return the biases of `role` as the accumulator holds them."""
    bias = Exact.of(layer.weights[role], layer.types[role]).into(layer.types["accum"])
    return [int(value) for value in np.broadcast_to(bias.integers().reshape(-1), (outputs,))]


def applied(step: Step, x: Exact, channel: int) -> Exact:
    """Return a function of single values, of numbers of one channel.

    Raises:
        UndecidedError: it is not a function of each number.
    """
    if isinstance(step.layer.operation, Quantise):
        kind = step.layer.operation.types(step.layer.output_shape)[channel]
        return x.on(0 * x.raw) if kind is None else x.into(kind).at_fraction(step.result.fraction)
    try:
        found = computed(step, x.on(x.raw.reshape(-1, 1)))
    except (ValueError, IndexError):
        raise UndecidedError("its channels have functions of their own") from None
    rows = found.raw.reshape(len(x.raw), -1)
    return found.on(rows[:, channel if rows.shape[1] > 1 else 0])
