"""Pooling layers as chains."""

from __future__ import annotations

import numpy as np

from fpgaprune.design import Pooling
from fpgaprune.emulate import Exact, Windows, window_counts
from fpgaprune.fixed import FixedType
from fpgaprune.rtl.chain import Chain
from fpgaprune.rtl.context import Context
from fpgaprune.rtl.number import Number, in_pairs
from fpgaprune.rtl.sums import summed


def pooling(context: Context, chain: Chain) -> None:
    """`nnet::pooling1d_cl` and `pooling2d_cl`, or over the whole image."""
    step = context.step
    pool = step.operation(Pooling)
    window, first = pool.window, pool.assigns_first
    if window is None:
        _global_pooling(context, chain)
        return
    windows = Windows.of(window)
    source = step.sources[0]
    # hls4ml pads with the highest bit alone set: the smallest signed number, or the middle of an unsigned type.
    kind = source.types["result"]
    lowest = -(1 << (kind.width - 1)) if kind.signed else 1 << (kind.width - 1)
    chain.pad(windows.pad, lowest if pool.largest else 0)
    chain.window(windows.size, windows.stride)
    taps = windows.taps
    accum, result = step.type("accum"), step.result

    def split(values: list[Number]) -> list[list[Number]]:
        channels = len(values) // taps
        return [values[channel::channels] for channel in range(channels)]

    if pool.largest:
        chain.compute("largest", lambda v: [_largest(c, accum, first).into(result) for c in split(v)], result)
        return
    shape = (1, *source.output_shape[:-1], 1)
    counts = window_counts(step, Exact(np.zeros(shape, np.float32), 0, 0, 0), windows)
    if isinstance(counts, int):
        divisor = counts
        chain.compute(
            "average",
            lambda v: [summed(c, accum, first).quotient(divisor).into(result) for c in split(v)],
            result,
        )
        return
    by_place = counts.reshape(-1)

    def average(values: list[Number], number: Number) -> list[Number]:
        found = []
        for channel in split(values):
            total = summed(channel, accum, first)
            fewest, *others = sorted(set(by_place.tolist()))
            quotient = total.quotient(fewest)
            for divisor in others:
                here = number.looked_up([int(count == divisor) for count in by_place], 0)
                quotient = total.quotient(divisor).chosen(here.place, quotient)
            found.append(quotient.into(result))
        return found

    chain.compute_numbered("average", average, result)


def _global_pooling(context: Context, chain: Chain) -> None:
    """`nnet::global_pooling1d_cl` and `global_pooling2d_cl`: pixel after pixel, or all pixels at once."""
    step = context.step
    first = step.operation(Pooling).assigns_first
    accum, result = step.type("accum"), step.result
    chain.image()
    # Pixels, however the values come in: where pixels have types of their own, a sample is one beat.
    places = chain.stream.beats
    if step.operation(Pooling).largest:
        chain.compute_lanes("begin", lambda x: x.into(accum) if first else x)
        chain.largest()
        chain.compute_lanes("finish", lambda x: (x if first else x.into(accum)).into(result), result)
    elif _exact(chain, accum, first):
        chain.compute_lanes("begin", lambda x: x.into(accum) if first else x)
        chain.accumulate()
        chain.compute_lanes("finish", lambda x: x.into(accum).quotient(places).into(result), result)
    else:
        chain.notes.append("all pixels at once: the accumulator rounds or saturates, so the order of additions counts")
        chain.register()
        lanes = chain.stream.lanes
        chain.gather(places)

        def average(values: list[Number]) -> list[Number]:
            channels = [values[lane::lanes] for lane in range(lanes)]
            if first:
                channels = [[x.into(accum) for x in channel] for channel in channels]
            return [summed(c, accum, tree=False).quotient(places).into(result) for c in channels]

        chain.compute("average", average, result)
    chain.renamed(step.layer.output_shape)


def _exact(chain: Chain, accum: FixedType, first: bool) -> bool:
    """Whether adding values one after another in `accum` gives the same as assigning their exact sum."""
    if accum.overflow == "WRAP":
        return first or chain.stream.fraction <= accum.fraction
    shift = accum.fraction - chain.stream.fraction
    if shift < 0:
        return False
    low, high = (min(chain.stream.low, 0) * chain.stream.beats, max(chain.stream.high, 0) * chain.stream.beats)
    return accum.raw_min <= low << shift and high << shift <= accum.raw_max


def _largest(values: list[Number], accum: FixedType, first: bool) -> Number:
    if first:
        return in_pairs((value.into(accum) for value in values), Number.larger)
    return in_pairs(values, Number.larger).into(accum)
