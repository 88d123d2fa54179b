"""Dense layers and convolutions as chains."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fpgaprune.emulate.products import channel_orders, input_order
from fpgaprune.emulate.windows import Windows
from fpgaprune.errors import RtlError
from fpgaprune.rtl.chain import Chain
from fpgaprune.rtl.context import Context
from fpgaprune.rtl.number import Number
from fpgaprune.rtl.sums import Weights, balanced, weighted

# Beats that wait before a folded layer, for a pooled image comes row by row in bursts.
_QUEUE = 32


def dense(context: Context, chain: Chain) -> None:
    """Every input times every weight: at once, or a few inputs a clock with the weights in memory."""
    step = context.step
    weights = _weights(context, step.weight("weight"))
    clocks = _clocks(context, chain, weights)
    if clocks > 1:
        _fold(context, chain, weights, clocks)
        return
    if chain.stream.beats > 1:
        chain.register()
        chain.gather(chain.stream.beats)
    chain.renamed(step.layer.output_shape)
    _at_once(context, chain, weights)


def convolution(context: Context, chain: Chain) -> None:
    """A window that moves over the image, and a Dense layer of it at every place."""
    weight = context.step.weight("weight")
    _window(context, chain)
    _at_once(context, chain, _weights(context, weight.reshape(-1, weight.shape[-1])))


def depthwise(context: Context, chain: Chain) -> None:
    """A window that moves over the image, and for each channel the weighted sum of its own taps."""
    step = context.step
    channels = step.sources[0].output_shape[-1]
    taps = step.weight("weight").reshape(-1, channels)
    _window(context, chain)
    matrix = np.zeros((taps.size, channels), np.int64)
    for channel in range(channels):
        matrix[channel::channels, channel] = taps[:, channel]
    by_channel = channel_orders(step, len(taps), channels)
    usual = np.arange(len(taps))
    orders = [
        (usual if by_channel is None else by_channel[channel]) * channels + channel for channel in range(channels)
    ]
    weights = Weights(matrix, step.type("weight"), step.constants("bias"), step.type("accum"), orders)
    _at_once(context, chain, weights)
    chain.dropped = taps.size - weights.kept


def _window(context: Context, chain: Chain) -> None:
    windows = Windows.of(context.step, "filt")
    chain.pad(windows.pad, 0)
    chain.register()
    chain.window(windows.size, windows.stride)


def _weights(context: Context, matrix: NDArray[np.int64]) -> Weights:
    step = context.step
    order = input_order(step, len(matrix))
    return Weights(matrix, step.type("weight"), step.constants("bias"), step.type("accum"), [order] * matrix.shape[1])


def _at_once(context: Context, chain: Chain, weights: Weights) -> None:
    result = context.step.result

    def sums(values: list[Number]) -> list[Number]:
        return [total.into(result) for total in weighted(values, weights, context.solve)]

    chain.compute("sums", sums, result)
    chain.kept, chain.dropped = weights.kept, weights.matrix.size - weights.kept


def _clocks(context: Context, chain: Chain, weights: Weights) -> int:
    """In how many clocks the products are made."""
    layer = context.step.layer
    inputs = len(weights.matrix)
    wanted = context.options.fold.get(layer.name)
    if wanted is None and layer.strategy == "resource" and layer.reuse_factor > 1:
        wanted = min(layer.reuse_factor, inputs)
    if wanted is None:
        # As many clocks as the image takes to arrive cost no time.
        wanted = 1 if weights.kept <= context.options.parallel_products else max(context.beats, 2)
    if not 1 <= wanted <= inputs:
        raise RtlError(f"layer {layer.name!r} is folded {wanted} times; wanted 1 to its {inputs} inputs")
    if wanted == 1:
        return 1
    if not weights.any_order(chain.stream.low, chain.stream.high, chain.stream.fraction).all():
        chain.notes.append("not folded: the accumulator rounds or saturates, so the order of additions counts")
        return 1
    return wanted


def _fold(context: Context, chain: Chain, weights: Weights, clocks: int) -> None:
    """At most `clocks` clocks for a sample, each with the inputs that its memory of weights belongs to."""
    inputs, outputs = weights.matrix.shape
    start = chain.stream.lanes
    lanes = next(n for n in range(1, start + 1) if start % n == 0 and (inputs // n <= clocks or n == start))
    chain.queue(min(chain.stream.beats, _QUEUE))
    chain.scatter(start // lanes)
    beats = chain.stream.beats
    rows = weights.matrix.reshape(beats, lanes, outputs)

    def partial(values: list[Number], number: Number) -> list[Number]:
        found = []
        for output in range(outputs):
            products = [
                value * number.looked_up(rows[:, lane, output].tolist(), weights.kind.fraction)
                for lane, value in enumerate(values)
            ]
            found.append(balanced(products))
        return found

    def finished(totals: list[Number]) -> list[Number]:
        starts = weights.starts()
        return [
            (Number.constant(total.circuit, begin, weights.accum.fraction) + total)
            .into(weights.accum)
            .into(context.step.result)
            for total, begin in zip(totals, starts, strict=True)
        ]

    chain.compute_numbered("products", partial)
    chain.accumulate()
    chain.renamed(context.step.layer.output_shape)
    chain.compute("finish", finished, context.step.result)
    chain.kept, chain.dropped = weights.matrix.size, 0
    chain.notes.append(
        f"folded: {lanes * outputs} multipliers in {beats} clocks, weights in memory, so that zeros save nothing"
    )
