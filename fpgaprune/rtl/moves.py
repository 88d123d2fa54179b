"""Layers that move values without computing, as chains."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from fpgaprune.design import Crop, Pad, Reshape, Transpose
from fpgaprune.errors import UnsupportedLayerError
from fpgaprune.rtl.chain import Chain
from fpgaprune.rtl.solve import Context

# A transpose gathers samples of at most so many bits in registers, which take some three LUTs for each bit.
_GATHERED_BITS = 1 << 11
# What enters and leaves the memory of a transpose at once has at most so many bits.
_LARGEST_BITS = 1 << 15


def reshape(context: Context, chain: Chain) -> None:
    """Read the same beats under another shape; the next layer that needs whole pixels gathers them."""
    if context.step.operation(Reshape).repacks:
        chain.assign(context.step.result)
    chain.renamed(context.step.layer.output_shape)


def copied(context: Context, chain: Chain) -> None:
    """Compute `nnet::clone_stream`."""
    chain.assign(context.step.result)


def zero_padding(context: Context, chain: Chain) -> None:
    """Compute `nnet::zeropad1d_cl` or `zeropad2d_cl`."""
    _, _, beats = chain.pixels()
    chain.assign(context.step.result)
    sides = context.step.operation(Pad).sides
    if beats > 1:
        # A row waits while one that is put below the image goes by.
        chain.queue_rows(max(1, *sides[:2]), max(1, *sides[2:]))
    chain.pad(sides, 0)


def cropping(context: Context, chain: Chain) -> None:
    """Compute `nnet::cropping1d_cl` or `cropping2d_cl`."""
    chain.crop(context.step.operation(Crop).sides)
    chain.assign(context.step.result)


def resize(context: Context, chain: Chain) -> None:
    """Compute `nnet::resize_nearest` by whole factors."""
    step = context.step
    rows, columns = chain.image()
    new = step.layer.output_shape[:-1]
    high, wide = (1, new[0]) if len(new) == 1 else new
    if high % rows or wide % columns:
        raise UnsupportedLayerError(
            f"resizing {rows}x{columns} to {high}x{wide} has no Verilog; only whole factors have"
        )
    chain.upsample((high // rows, wide // columns))


def transpose(context: Context, chain: Chain) -> None:
    """Send a sample in another order, as `nnet::transpose`: by memories, or gathered in registers.

    Registers take a beat of the result in each cycle, memories a part of a beat. So memories serve where such a part is
    a beat of the result, as behind a transposed convolution, and where a sample is too large for registers.
    """
    step = context.step
    shape = step.sources[0].output_shape
    axes = step.operation(Transpose).axes
    swaps = swaps_of(shape, axes)
    lanes = step.layer.output_shape[-1]
    wired = all(chain.stream.lanes % (swap.pixels * swap.parts * swap.part) == 0 for swap in swaps)
    by_beats = wired or (len(swaps) == 1 and swaps[0].part == lanes)
    if not by_beats and chain.stream.bits * chain.stream.beats <= _GATHERED_BITS:
        _gathered(context, chain, shape, axes)
        return
    for swap in swaps:
        values = swap.pixels * swap.parts * swap.part
        if chain.stream.lanes % values == 0:
            _within(chain, swap, chain.stream.lanes // values)
            continue
        if chain.stream.width * swap.parts * swap.part > _LARGEST_BITS:
            raise UnsupportedLayerError(
                f"a transpose of {' x '.join(map(str, shape))} values has no Verilog; it moves "
                f"{swap.parts * swap.part} at once, of {_LARGEST_BITS} bits at most: use another order of axes"
            )
        chain.relaid(swap.parts * swap.part)
        chain.transpose(swap.parts, swap.pixels)
    chain.assign(step.result)
    chain.renamed(step.layer.output_shape)
    if not wired:
        chain.relaid(lanes)


def reverse(context: Context, chain: Chain) -> None:
    """Send the steps of a sequence from the last to the first, by a memory of one sample."""
    if chain.stream.shape[0] > 1:
        chain.reverse()
    chain.assign(context.step.result)


def _gathered(context: Context, chain: Chain, shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    step = context.step
    order = np.arange(math.prod(shape)).reshape(shape).transpose(axes).reshape(-1)
    chain.gather(chain.stream.beats)
    chain.compute("transpose", lambda values: [values[place].into(step.result) for place in order], step.result)
    chain.renamed(step.layer.output_shape)
    chain.relaid(step.layer.output_shape[-1])


def _within(chain: Chain, swap: Swap, groups: int) -> None:
    """Swap the axes of each of the `groups` that a beat holds, which takes no more than wires."""
    order = np.arange(chain.stream.lanes).reshape(groups, swap.pixels, swap.parts, swap.part)
    places = order.transpose(0, 2, 1, 3).reshape(-1)
    chain.unpack()
    chain.compute("transpose", lambda values: [values[place] for place in places], chain.stream.kind())


class Swap(NamedTuple):
    """Two axes that change places: of `pixels` with `parts` of `part` values each, the first part of all comes first.

    Attributes:
        pixels: how many lie behind one another.
        parts: in each pixel.
        part: values of a part.
    """

    pixels: int
    parts: int
    part: int


def swaps_of(shape: tuple[int, ...], axes: tuple[int, ...]) -> list[Swap]:
    """Return the swaps that bring the axes of a sample of `shape` into the order `axes`, one after another."""
    order = list(range(len(shape)))
    swaps = []
    for place in range(len(axes)):
        begin = order.index(axes[place])
        # Axes that follow each other in both orders move together.
        end, follows = begin + 1, place + 1
        while end < len(order) and follows < len(axes) and order[end] == axes[follows]:
            end, follows = end + 1, follows + 1
        pixels, parts, part = (
            math.prod(shape[axis] for axis in group) for group in (order[place:begin], order[begin:end], order[end:])
        )
        if pixels > 1 and parts > 1:
            swaps.append(Swap(pixels, parts, part))
        order = [*order[:place], *order[begin:end], *order[place:begin], *order[end:]]
    return swaps
