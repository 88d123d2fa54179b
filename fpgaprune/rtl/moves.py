"""Layers that move values without computing, as chains."""

from __future__ import annotations

import math

import numpy as np

from fpgaprune.design import Crop, Pad, Reshape, Transpose
from fpgaprune.errors import UnsupportedLayerError
from fpgaprune.rtl.chain import Chain
from fpgaprune.rtl.solve import Context

# A transpose holds a whole sample; it may have at most so many bits.
_LARGEST_TRANSPOSE_BITS = 1 << 15


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
    """Gather a whole sample and send it in another order, as `nnet::transpose`."""
    step = context.step
    shape = step.sources[0].output_shape
    axes = step.operation(Transpose).axes
    if chain.stream.bits * chain.stream.beats > _LARGEST_TRANSPOSE_BITS:
        raise UnsupportedLayerError(
            f"a transpose of {math.prod(shape)} values has no Verilog; it holds at most {_LARGEST_TRANSPOSE_BITS} bits"
        )

    order = np.arange(math.prod(shape)).reshape(shape).transpose(axes).reshape(-1)
    chain.gather(chain.stream.beats)
    chain.compute("transpose", lambda values: [values[place].into(step.result) for place in order], step.result)
    chain.renamed(step.layer.output_shape)
    chain.relaid(step.layer.output_shape[-1])
