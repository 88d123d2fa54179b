"""Pooling layers as chains."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from fpgaprune.design import Pooling
from fpgaprune.emulate import Exact, Windows, window_counts
from fpgaprune.rtl.chain import Chain
from fpgaprune.rtl.number import Number, in_pairs
from fpgaprune.rtl.solve import Context
from fpgaprune.rtl.sums import summed
from fpgaprune.values import FixedType


def pooling(context: Context, chain: Chain) -> None:
    """Compute `nnet::pooling1d_cl` or `pooling2d_cl`, or `nnet::global_pooling1d_cl` or `2d_cl` for a whole image."""
    pool = context.step.operation(Pooling)
    if pool.window is None:
        _global_pooling(context, chain)
        return
    windows = Windows.of(pool.window)
    apart = windows.stride == windows.size and not any(windows.pad)
    if apart and _any_order(context, chain, windows.taps):
        _one_by_one(context, chain, windows.size)
    else:
        _window_at_once(context, chain, windows)


def _window_at_once(context: Context, chain: Chain, windows: Windows) -> None:
    """Make every window whole."""
    step = context.step
    pool = step.operation(Pooling)
    first, source = pool.assigns_first, step.sources[0]
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
    counts = window_counts(Exact(np.zeros(shape, np.float32), 0, 0, 0), windows)
    if isinstance(counts, int):
        divisor = counts
        chain.compute(
            "average", lambda v: [summed(c, accum, first).quotient(divisor).into(result) for c in split(v)], result
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
    """Pool the whole image, one window: pixel after pixel, or all pixels at once."""
    step = context.step
    size = chain.stream.sides
    places = math.prod(size)
    if _any_order(context, chain, places):
        _one_by_one(context, chain, size)
        chain.renamed(step.layer.output_shape)
        return
    accum, result, first = step.type("accum"), step.result, step.operation(Pooling).assigns_first
    chain.image()
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


def _one_by_one(context: Context, chain: Chain, size: tuple[int, int]) -> None:
    """Give each window of `size` an accumulator for each channel, which its pixels reach one after another."""
    step = context.step
    pool = step.operation(Pooling)
    accum, result, first = step.type("accum"), step.result, pool.assigns_first
    if chain.stream.shape[-1] % chain.stream.lanes:
        chain.image()
    whole = chain.stream.sides
    chain.compute_lanes("begin", lambda x: x.into(accum) if first else x)
    _pooled(chain, size, pool.largest)
    if pool.largest:
        chain.compute_lanes("finish", lambda x: (x if first else x.into(accum)).into(result), result)
        return
    divisor, lanes = math.prod(size), chain.stream.lanes
    # One division serves all channels where a sample has pixels enough for them to come one after another.
    alone = lanes > 1 and size == whole and divisor >= lanes and divisor & (divisor - 1) != 0
    if alone:
        chain.relaid(1)
    chain.compute_lanes("finish", lambda x: x.into(accum).quotient(divisor).into(result), result)
    if alone:
        chain.relaid(lanes)


def _pooled(chain: Chain, size: tuple[int, int], largest: bool) -> None:
    """Reduce each window of `size` to its exact sum, or its `largest`, channel by channel."""
    chain.unpack()
    s = chain.stream if largest else replace(chain.stream, each=None)
    rows, columns = s.sides
    beats = s.shape[-1] // s.lanes
    if beats == 1 and size == (rows, columns):
        if largest:
            chain.largest()
        else:
            chain.accumulate()
        chain.renamed((*(1,) * (len(s.shape) - 1), s.shape[-1]))
        return
    high, wide = rows // size[0], columns // size[1]
    after = s if largest else s.summed(math.prod(size))
    shape = (*(high, wide)[3 - len(s.shape) :], s.shape[-1])
    after = replace(after, shape=shape, beats=high * wide * beats)
    parameters = {"LANES": s.lanes, "OUT_WIDTH": after.width, "LARGEST": int(largest), "CHANNELS": beats}
    parameters |= {"ROWS": rows, "COLUMNS": columns, "KH": size[0], "KW": size[1]}
    ends = chain.need.reshape(rows, columns, beats)[size[0] - 1 :: size[0], size[1] - 1 :: size[1]].reshape(-1)
    chain.module("fp_pool", after, ends, 1, s.width, **parameters)


def _any_order(context: Context, chain: Chain, count: int) -> bool:
    """Return whether `count` values of a window can be accumulated one by one with the bits of the template."""
    pool = context.step.operation(Pooling)
    return pool.largest or _exact(chain, context.step.type("accum"), pool.assigns_first, count)


def _exact(chain: Chain, accum: FixedType, first: bool, count: int) -> bool:
    """Return whether adding `count` values one after another in `accum` gives the same as assigning their exact sum."""
    if accum.overflow == "WRAP":
        return first or chain.stream.fraction <= accum.fraction
    shift = accum.fraction - chain.stream.fraction
    if shift < 0:
        return False
    low, high = min(chain.stream.low, 0) * count, max(chain.stream.high, 0) * count
    return accum.raw_min <= low << shift and high << shift <= accum.raw_max


def _largest(values: list[Number], accum: FixedType, first: bool) -> Number:
    if first:
        return in_pairs((value.into(accum) for value in values), Number.larger)
    return in_pairs(values, Number.larger).into(accum)
