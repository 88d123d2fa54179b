"""A Dense layer in many cycles: each cycle multiplies a few inputs by weights from one memory and adds the products."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fpgaprune.errors import RtlError
from fpgaprune.rtl.chain import Chain
from fpgaprune.rtl.number import Number
from fpgaprune.rtl.small_products import multiplied
from fpgaprune.rtl.solve import Context
from fpgaprune.rtl.sums import Weights, balanced

# Beats that can wait before a folded layer, because a pooled image comes in bursts, a row at a time.
_QUEUE = 32
# Folding takes fewer LUTs if each multiplier computes at least so many products. A product with a constant takes at
# most two adders; a multiplier outside a DSP block takes about twelve, with its share of the memory and of the sum.
WORTH = 8
# Products of a multiplier of two cycles, on average: with fewer, as where three quarters of the weights are zero,
# folding takes as many multipliers as there are products, each with a memory.
_SERVES = 1.25


def lanes_of(context: Context, chain: Chain, weights: Weights) -> int | None:
    """Return how many inputs the layer takes in each cycle; None if it makes all its products at once.

    The layout says how often a layer is folded, else its strategy. Where neither does, a layer is folded if it has more
    products than the layout allows and most weights are not zero, or if that takes fewer LUTs within the cycles in
    which a sample arrives.

    Raises:
        RtlError: the layout folds the layer less than once, or more often than it has inputs.
    """
    layer = context.step.layer
    inputs, outputs = weights.matrix.shape
    wanted = context.layout.fold.get(layer.name)
    if wanted is None and layer.strategy == "resource" and layer.reuse_factor > 1:
        wanted = min(layer.reuse_factor, inputs)
    if wanted is None:
        wanted = min(context.beats, inputs)
        if weights.kept > context.layout.parallel_products:
            wanted = wanted if wanted > 1 or _scattered(weights.matrix) else 2
        elif weights.kept < WORTH * _lanes(chain, inputs, wanted) * outputs:
            wanted = 1
    if not 1 <= wanted <= inputs:
        raise RtlError(f"the layout folds it {wanted} times; fold it 1 to {inputs} times, as it has {inputs} inputs")
    if wanted == 1:
        return None
    if not weights.any_order(chain.stream.low, chain.stream.high, chain.stream.fraction).all():
        chain.notes.append("not folded: the accumulator rounds or saturates, so the order of additions counts")
        return None
    return _lanes(chain, inputs, wanted)


def _scattered(matrix: NDArray[np.int64]) -> bool:
    """Return whether so few weights are not zero that a multiplier of two cycles hardly ever serves both."""
    half = -(-len(matrix) // 2)
    first, second = matrix[:half] != 0, np.zeros((half, matrix.shape[1]), bool)
    second[: len(matrix) - half] = matrix[half:] != 0
    return bool(np.count_nonzero(matrix) < _SERVES * np.count_nonzero(first | second))


def fold(context: Context, chain: Chain, weights: Weights, lanes: int) -> None:
    """Multiply, in each cycle, `lanes` inputs by the weights that the memory holds for them.

    Where `lanes` do not divide a beat, zeros fill its last cycle: channels that are left after a removal are often a
    prime number.
    """
    outputs = weights.matrix.shape[1]
    chain.unpack()
    chain.queue(min(chain.stream.beats, _QUEUE))
    before, beat = chain.stream.beats, chain.stream.lanes
    cycles = _cycles(beat, lanes)
    chain.fill(cycles * lanes)
    chain.scatter(cycles)
    beats = chain.stream.beats
    matrix = np.zeros((before, cycles * lanes, outputs), np.int64)
    matrix[:, :beat] = weights.matrix.reshape(before, beat, outputs)
    memory = Memory.of(matrix.reshape(beats, lanes, outputs))

    def partial(values: list[Number], number: Number) -> list[Number]:
        word = number.looked_up(memory.words, weights.kind.fraction)
        found = []
        for output in range(outputs):
            products = [
                multiplied(values[lane], word.part(*place))
                for (lane, other), place in memory.places.items()
                if other == output
            ]
            zero = Number.constant(word.circuit, 0, values[0].fraction + weights.kind.fraction)
            found.append(balanced(products) if products else zero)
        return found

    def finished(totals: list[Number]) -> list[Number]:
        return [
            (Number.constant(total.circuit, begin, weights.accum.fraction) + total)
            .into(weights.accum)
            .into(context.step.result)
            for total, begin in zip(totals, weights.starts, strict=True)
        ]

    chain.compute_numbered("products", partial)
    chain.accumulate()
    chain.renamed(context.step.layer.output_shape)
    chain.compute("finish", finished, context.step.result)
    chain.kept, chain.dropped = weights.matrix.size, 0
    chain.notes.append(
        f"folded: {len(memory.places)} multipliers in {beats} cycles, weights in memory, so that zeros save nothing"
    )


@dataclass(frozen=True)
class Memory:
    """Weights as words, one for each beat.

    Attributes:
        words: unsigned integers.
        places: for each (lane, output) with a weight other than zero, the lowest bit and the number of bits of its
            weight in every word, in two's complement.
    """

    words: list[int]
    places: dict[tuple[int, int], tuple[int, int]]

    @classmethod
    def of(cls, rows: NDArray[np.int64]) -> Memory:
        """Return the memory of raw weights (beats, lanes, outputs)."""
        words, places, lowest = [0] * len(rows), {}, 0
        for lane, output in np.argwhere(rows.any(axis=0)).tolist():
            column = rows[:, lane, output].tolist()
            bits = max((-w - 1 if w < 0 else w).bit_length() for w in column) + 1
            places[lane, output] = (lowest, bits)
            words = [word | (w & ((1 << bits) - 1)) << lowest for word, w in zip(words, column, strict=True)]
            lowest += bits
        return cls(words, places)


def _lanes(chain: Chain, inputs: int, cycles: int) -> int:
    """Return the fewest inputs at a time for which a sample takes at most `cycles` cycles; at most one beat."""
    beat = chain.stream.lanes
    return next(n for n in range(1, beat + 1) if inputs // beat * _cycles(beat, n) <= cycles or n == beat)


def _cycles(beat: int, lanes: int) -> int:
    """Return how many cycles a beat of `beat` inputs takes, `lanes` at a time."""
    return -(-beat // lanes)
