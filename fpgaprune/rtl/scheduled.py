"""Layers that multiply a few kernels a cycle by a schedule made beforehand, in which no locked kernel stands.

The layer's values come one by one, channel after channel; its multipliers take all taps of a kernel at once. Zeros
take no cycle, so a layer with a quarter of its kernels needs a quarter of the cycles.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from fpgaprune.design import LayerSpec, Pad
from fpgaprune.errors import RtlError
from fpgaprune.rtl.chain import Chain
from fpgaprune.rtl.circuit import width_of
from fpgaprune.rtl.context import Context
from fpgaprune.rtl.number import Number
from fpgaprune.rtl.program import Program
from fpgaprune.rtl.scheduled_sums import ScheduledSums
from fpgaprune.rtl.sums import Weights

NO_PAD = (0, 0, 0, 0)


def scheduled_sums(
    context: Context,
    chain: Chain,
    weights: Weights,
    program: Callable[[int], Program],
    size: tuple[int, int] = (1, 1),
    stride: tuple[int, int] = (1, 1),
    pad: tuple[int, int, int, int] = NO_PAD,
) -> bool:
    """The sums of every window of `size`, by a `program` of so many groups, if the layout gives the layer multipliers.

    Raises:
        RtlError: the layout gives it some, and the order of additions counts.
    """
    wanted = context.layout.multipliers.get(context.step.layer.name)
    if wanted is None:
        return False
    taps = size[0] * size[1]
    made = program(max(1, wanted // taps))
    chain.unpack()
    chain.relaid(1)
    if taps > 1 or stride != (1, 1):
        _rows_wait(context, chain, size[0], pad)
    chain.pad(pad, 0)
    s = chain.stream
    if not weights.any_order(s.low, s.high, s.fraction).all():
        raise RtlError(
            "the layout gives it multipliers, but its accumulator rounds or saturates, so that the order of additions "
            "counts: take it out of `multipliers`, or make the accumulator wide enough for every sum"
        )
    low, high = weights.bounds(s.low, s.high)
    channels = s.shape[-1]
    chain.window_by_channel(size, stride)
    places = chain.stream.beats // channels
    sums = ScheduledSums(made, channels, s.width, s.signed, max(2, width_of(low, high)), places)
    chain.compute_scheduled(sums, context.step.layer.output_shape, (low, high))

    def finished(values: list[Number], output: Number) -> list[Number]:
        start = output.looked_up(weights.starts, weights.accum.fraction)
        total = values[0].scaled(-weights.kind.fraction)
        return [(start + total).into(weights.accum).into(context.step.result)]

    chain.compute_numbered("finish", finished, context.step.result, made.outputs)
    chain.kept, chain.dropped = weights.kept, made.taps * made.all - weights.kept
    chain.notes.append(
        f"scheduled: {made.multipliers} multipliers in {made.groups} groups, {len(made.places)} of {made.all} kernels "
        f"kept, {sums.period} cycles for every place, the busiest group {made.balance:.3f} of the mean"
    )
    return True


def cycles_of(layer: LayerSpec, multipliers: int) -> int:
    """Cycles that a scheduled layer takes for a sample, if its beats come in time."""
    weight = layer.weights["weight"]
    *positions, outputs = layer.output_shape
    taps = math.prod(weight.shape[:-2])
    kept = int(np.count_nonzero(weight.reshape(taps, -1).any(axis=0)))
    steps = -(-kept // max(1, multipliers // taps))
    return math.prod(positions) * max(steps, int(weight.shape[-2]), outputs)


def _rows_wait(context: Context, chain: Chain, height: int, pad: tuple[int, int, int, int]) -> None:
    """As many rows of the image can wait as complete no window, so that the multipliers have work meanwhile."""
    padded_before = isinstance(context.step.sources[0].operation, Pad) and not any(pad)
    if not padded_before:
        chain.queue_rows(max(1, height - 1 - pad[0]))
