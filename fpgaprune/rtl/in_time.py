"""`serial_sums`: a layer computes its sums bit by bit if a sample has enough cycles and that takes fewer LUTs."""

from __future__ import annotations

from fpgaprune.rtl.chain import Chain
from fpgaprune.rtl.context import Context
from fpgaprune.rtl.links import SerialTrees
from fpgaprune.rtl.serial import SerialSums
from fpgaprune.rtl.sums import Weights

# Pixels that can wait before such a layer, because a pooled image comes in bursts, a row at a time.
QUEUE = 16
# LUTs of that queue for each four bits of a pixel (a RAM of 16 x 4 bits in slices of two LUTs), and LUTs of the
# counters of windows and cycles.
_RAM, _CONTROL = 6, 40


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
    windows = ((rows - size[0]) // stride[0] + 1) * ((columns - size[1]) // stride[1] + 1)

    def in_time(period: int) -> bool:
        return windows * period + s.beats - windows <= context.beats

    # A cheap test before adders are searched for: a sum has at least as many bits as one of its inputs.
    if not in_time(s.width) or not weights.any_order(s.low, s.high, s.fraction).all():
        return None
    most = None
    if weights.accum.overflow == "WRAP":
        most = weights.accum.width - (weights.accum.fraction - s.fraction - weights.kind.fraction)
    lane = (s.width, s.signed, s.low, s.high)
    sums: SerialSums | SerialTrees
    if context.counter is None:
        sums = SerialSums.of(context.solve(weights.matrix, s.low, s.high), lane, most)
    else:
        sums = context.counter.serial(weights.matrix, lane, most)
    around = -(-s.bits // 4) * _RAM + _CONTROL
    return sums if in_time(sums.period) and sums.luts() + around < sums.parallel_bits else None
