"""Dense layers and convolutions as chains; sums come bit by bit where cycles allow and that takes fewer LUTs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from fpgaprune.design import Convolution
from fpgaprune.emulate import channel_orders, input_order
from fpgaprune.rtl.chain import Chain
from fpgaprune.rtl.folded import fold, lanes_of
from fpgaprune.rtl.links import SerialTrees, Stream, Trees
from fpgaprune.rtl.number import Number
from fpgaprune.rtl.scheduled import scheduled_sums
from fpgaprune.rtl.serial import SerialSums
from fpgaprune.rtl.solve import Context
from fpgaprune.rtl.sums import Weights, weighted


def dense(context: Context, chain: Chain) -> None:
    """Multiply every input by every weight: at once, or a few inputs a cycle with the weights in memory."""
    step = context.step
    weights = _weights(context, step.weight("weight"))
    if scheduled_sums(context, chain, weights):
        return
    lanes = lanes_of(context, chain, weights)
    if lanes is not None:
        fold(context, chain, weights, lanes)
        return
    if chain.stream.beats > 1:
        chain.register()
        chain.gather(chain.stream.beats)
    chain.renamed((chain.stream.lanes,))
    _sums(context, chain, weights)


def convolution(context: Context, chain: Chain) -> None:
    """Compute a Dense layer of the window at every position; a depthwise convolution has one for each channel."""
    if context.step.operation(Convolution).depthwise:
        _depthwise(context, chain)
        return
    weight = context.step.weight("weight")
    _windows(context, chain, _weights(context, weight.reshape(-1, weight.shape[-1])))


def _depthwise(context: Context, chain: Chain) -> None:
    """Sum, for each channel, its own weighted taps of the window at every position of the image."""
    step = context.step
    channels = step.sources[0].output_shape[-1]
    taps = step.weight("weight").reshape(-1, channels)
    matrix = np.zeros((taps.size, channels), np.int64)
    for channel in range(channels):
        matrix[channel::channels, channel] = taps[:, channel]
    by_channel = channel_orders(step, len(taps), channels)
    usual = np.arange(len(taps))
    orders = [
        (usual if by_channel is None else by_channel[channel]) * channels + channel for channel in range(channels)
    ]
    weights = Weights(matrix, step.type("weight"), step.constants("bias"), step.type("accum"), orders)
    _windows(context, chain, weights)
    chain.dropped = taps.size - weights.kept


def _windows(context: Context, chain: Chain, weights: Weights) -> None:
    """Compute the sums of every window."""
    window = context.step.operation(Convolution).window
    if scheduled_sums(context, chain, weights, window.size, window.stride, window.pad):
        return
    chain.pad(window.pad, 0)
    _sums(context, chain, weights, window.size, window.stride)


def _weights(context: Context, matrix: NDArray[np.int64]) -> Weights:
    step = context.step
    order = input_order(step, len(matrix))
    return Weights(matrix, step.type("weight"), step.constants("bias"), step.type("accum"), [order] * matrix.shape[1])


def _sums(
    context: Context, chain: Chain, weights: Weights, size: tuple[int, int] = (1, 1), stride: tuple[int, int] = (1, 1)
) -> None:
    """Compute the sums of every window of `size`: bit by bit if there is time and that takes fewer LUTs."""
    result = context.step.result
    # Sums that are made bit by bit need inputs of one width.
    whole = replace(chain, links=list(chain.links))
    whole.unpack()
    serial = serial_sums(context, whole, weights, size, stride)
    if serial is not None:
        chain.links, chain.stream = whole.links, whole.stream
        chain.need, chain.held = whole.need, whole.held

    def finish(totals: list[tuple[Number, bool]]) -> list[Number]:
        return [weights.with_bias(n, *total).into(result) for n, total in enumerate(totals)]

    def finish_counted(totals: list[Number]) -> list[Number]:
        return finish([(total, False) for total in totals])

    if serial is None:
        chain.image()
        chain.reads = chain.stream.bus
        chain.window(size, stride, many_readers=True)
        trees = _trees(context, chain, weights)
        if trees is not None:
            chain.compute_counted(trees, finish_counted, result)
        else:
            chain.compute(
                "sums",
                lambda values: [total.into(result) for total in weighted(values, weights, context.solve)],
                result,
            )
    else:
        chain.queue(min(chain.stream.beats, QUEUE))
        chain.pace(size, stride, serial.period)
        chain.reads = chain.stream.bus
        chain.window(size, stride, registered=True)
        if isinstance(serial, SerialTrees):
            chain.compute_counted(serial, finish_counted, result)
        else:
            chain.compute_serial(serial, finish, result)
        chain.notes.append(
            f"bit by bit: {serial.count} adders of one bit, a sum of each every {serial.period} cycles at most"
        )
    chain.kept, chain.dropped = weights.kept, weights.matrix.size - weights.kept


def _trees(context: Context, chain: Chain, weights: Weights) -> Trees | None:
    """Return the adders of `weights` if they are counted; None where they are made.

    They are made where an order of additions counts, and where most of them become tables, which no count of adders
    tells.
    """
    s = chain.stream
    if context.counter is None or not weights.any_order(s.low, s.high, s.fraction).all():
        return None
    return None if _are_tables(context, s, weights) else context.counter.trees(weights.matrix, s)


def _are_tables(context: Context, stream: Stream, weights: Weights) -> bool:
    """Return whether most weights belong to sums whose inputs together have so few bits that each sum is a table."""
    lanes = [lane.width for lane in stream.bus.lanes]
    bits = np.array(len(weights.matrix) // len(lanes) * lanes)
    kept = weights.matrix != 0
    small = bits @ kept <= context.tables
    return bool(2 * kept[:, small].sum() > kept.sum())


# Pixels that can wait before such a layer, because a pooled image comes in bursts, a row at a time.
QUEUE = 16
# LUTs of that queue for each four bits of a pixel (a RAM of 16 x 4 bits in slices of two LUTs), and LUTs of the
# counters of windows and cycles.
RAM, CONTROL = 6, 40
# Counted adders are within this share of those that are solved for.
_CLOSE = 0.2


def serial_sums(
    context: Context, chain: Chain, weights: Weights, size: tuple[int, int], stride: tuple[int, int]
) -> SerialSums | SerialTrees | None:
    """Return the sums of every window of `size`, to be computed bit by bit; None where they are computed at once.

    They are computed at once where a sample has too few cycles, where the accumulator rounds or saturates (the order of
    the additions counts then), where most of them are small tables, and where bit by bit takes no fewer LUTs.
    """
    if not context.layout.serial or not weights.kept:
        return None
    rows, columns = chain.image()
    s = chain.stream
    down, across = (rows - size[0]) // stride[0] + 1, (columns - size[1]) // stride[1] + 1
    last = (across - 1) * stride[1]
    # How many windows come so many beats after the one before: in a row, at a row's end, and at a sample's end.
    gaps = (
        (down * (across - 1), stride[1]),
        (down - 1, stride[0] * columns - last),
        (1, s.beats - (down - 1) * stride[0] * columns - last),
    )

    def in_time(period: int) -> bool:
        # The beats up to the next window come while this one is computed.
        return sum(count * max(period, gap) for count, gap in gaps) <= context.beats

    # A cheap test before adders are searched for: a sum has at least as many bits as one of its inputs.
    if not in_time(s.width) or not weights.any_order(s.low, s.high, s.fraction).all():
        return None
    if _are_tables(context, s, weights):
        return None
    most = None
    if weights.accum.overflow == "WRAP":
        most = weights.accum.width - (weights.accum.fraction - s.fraction - weights.kind.fraction)
    lane = (s.width, s.signed, s.low, s.high)
    around = -(-s.bits // 4) * RAM + CONTROL

    def pays(sums: SerialSums | SerialTrees) -> bool:
        return in_time(sums.period) and sums.luts() + around < sums.parallel_bits

    if context.counter is not None:
        counted = context.counter.serial(weights.matrix, lane, most)
        close = abs(counted.luts() + around - counted.parallel_bits) < _CLOSE * counted.parallel_bits
        if not close:
            return counted if pays(counted) else None
        # Near the break-even the adders themselves decide, as they do where the Verilog is written.
        return counted if pays(_solved(context, weights.matrix, lane, most)) else None
    sums = _solved(context, weights.matrix, lane, most)
    return sums if pays(sums) else None


def _solved(
    context: Context, matrix: NDArray[np.int64], lane: tuple[int, bool, int, int], most: int | None
) -> SerialSums:
    return SerialSums.of(context.solve(matrix, lane[2], lane[3]), lane, most)
