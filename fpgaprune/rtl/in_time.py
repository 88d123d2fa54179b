"""Which sums are computed bit by bit: those that have clocks enough, where that takes fewer LUTs."""

from __future__ import annotations

from fpgaprune.rtl.chain import Chain
from fpgaprune.rtl.context import Context
from fpgaprune.rtl.serial import SerialSums
from fpgaprune.rtl.sums import Weights

# Pixels that wait before such a layer, for a pooled image comes row by row in bursts.
QUEUE = 16
# LUTs of that queue for each four bits of a pixel (a 16 x 4 RAM of an ECP5), and of what counts windows and clocks.
_RAM, _CONTROL = 6, 40


def serial_sums(
    context: Context, chain: Chain, weights: Weights, size: tuple[int, int], stride: tuple[int, int]
) -> SerialSums | None:
    """The sums of every window of `size` as bits one after another; None where they are better computed at once.

    That is so where a sample has no time for it, where the accumulator rounds or saturates, so that the order of the
    additions counts, and where it would take no fewer LUTs.
    """
    if not context.options.serial or not weights.kept:
        return None
    rows, columns = chain.image()
    s = chain.stream
    windows = ((rows - size[0]) // stride[0] + 1) * ((columns - size[1]) // stride[1] + 1)

    def in_time(period: int) -> bool:
        return windows * period + s.beats - windows <= context.beats

    # Before the adders are searched for: no sum has fewer bits than one of its inputs.
    if not in_time(s.width) or not weights.any_order(s.low, s.high, s.fraction).all():
        return None
    graph = context.solve(weights.matrix, s.low, s.high)
    most = None
    if weights.accum.overflow == "WRAP":
        most = weights.accum.width - (weights.accum.fraction - s.fraction - weights.kind.fraction)
    sums = SerialSums.of(graph, (s.width, s.signed, s.low, s.high), most)
    around = -(-s.bits // 4) * _RAM + _CONTROL
    return sums if in_time(sums.period) and sums.luts() + around < sums.parallel_bits() else None
