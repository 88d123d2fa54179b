"""`serial_sums`: a layer computes its sums bit by bit if a sample has enough cycles and that takes fewer LUTs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fpgaprune.rtl.chain import Chain
from fpgaprune.rtl.context import Context
from fpgaprune.rtl.links import SerialTrees
from fpgaprune.rtl.serial import SerialSums
from fpgaprune.rtl.sums import Weights

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
    """The sums of every window of `size`, to be computed bit by bit; None where they are computed at once.

    They are computed at once where a sample has too few cycles, where the accumulator rounds or saturates (the order of
    the additions counts then), and where bit by bit takes no fewer LUTs.
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
