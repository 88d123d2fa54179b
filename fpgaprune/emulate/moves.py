"""Layers that move values without computing: reshaping, padding, cropping, copying, resizing, joining."""

from __future__ import annotations

import numpy as np

from fpgaprune.design import Concatenate, Crop, Pad, Reshape, Transpose
from fpgaprune.emulate.exact import Exact, carrier
from fpgaprune.emulate.step import Step
from fpgaprune.errors import DesignError


def reshape(step: Step, x: Exact) -> Exact:
    """Reshape the same memory or stream; values are assigned only if packets change their size."""
    if step.operation(Reshape).repacks:
        return _repack(step, x)
    return x.reshape(x.raw.shape[0], *step.layer.output_shape)


def _repack(step: Step, x: Exact) -> Exact:
    """Compute `nnet::repack_stream`: the values in packets of another size."""
    before, after = x.raw.shape[-1], step.layer.output_shape[-1]
    if max(before, after) % min(before, after):
        raise DesignError(
            f"hls4ml repacks packets of {before} values wrongly into packets of {after}; choose a multiple"
        )
    return x.reshape(x.raw.shape[0], *step.layer.output_shape).into(step.result)


def copied(step: Step, x: Exact) -> Exact:
    """Compute `nnet::clone_stream`."""
    return x.into(step.result)


def transpose(step: Step, x: Exact) -> Exact:
    """Compute `nnet::transpose`."""
    axes = (0, *(axis + 1 for axis in step.operation(Transpose).axes))
    return x.on(np.ascontiguousarray(x.raw.transpose(axes))).into(step.result)


def reverse(step: Step, x: Exact) -> Exact:
    """Read the steps of a sequence from the last to the first."""
    return x.on(np.ascontiguousarray(x.raw[:, ::-1])).into(step.result)


def zero_padding(step: Step, x: Exact) -> Exact:
    """Compute `nnet::zeropad1d_cl` or `zeropad2d_cl`."""
    sides = _by_axis(step, step.operation(Pad).sides)
    padded = np.pad(x.into(step.result).raw, ((0, 0), *sides, (0, 0)))
    inner = x.into(step.result)
    return Exact(padded, inner.fraction, min(inner.low, 0), max(inner.high, 0))


def cropping(step: Step, x: Exact) -> Exact:
    """Compute `nnet::cropping1d_cl` or `cropping2d_cl`."""
    sides = _by_axis(step, step.operation(Crop).sides)
    kept = tuple(slice(a, size - b) for (a, b), size in zip(sides, x.raw.shape[1:-1], strict=True))
    return x.on(x.raw[(slice(None), *kept)]).into(step.result)


def resize(step: Step, x: Exact) -> Exact:
    """Compute `nnet::resize_nearest`; no value is assigned, because input and output have the same type."""
    raw = x.raw
    sizes = step.layer.output_shape[:-1]
    for axis, new in enumerate(sizes, start=1):
        old = raw.shape[axis]
        # The parallel template computes the ratio in fixed point.
        ratio = (old << 16) // new + 1
        raw = raw.take((np.arange(new) * ratio) >> 16, axis=axis)
    return x.on(raw)


def concatenate(step: Step, a: Exact, b: Exact) -> Exact:
    """Compute `nnet::concatenate1d`, `concatenate2d` or `concatenate3d`."""
    axis = step.operation(Concatenate).axis
    a, b = a.into(step.result), b.into(step.result)
    low, high = min(a.low, b.low), max(a.high, b.high)
    dtype = carrier(low, high)
    joined = np.concatenate([a.raw.astype(dtype, copy=False), b.raw.astype(dtype, copy=False)], axis=axis)
    return Exact(joined, a.fraction, low, high)


def _by_axis(step: Step, sides: tuple[int, int, int, int]) -> tuple[tuple[int, int], ...]:
    """Return (before, after) for each axis of the map."""
    top, bottom, left, right = sides
    return ((left, right),) if len(step.layer.output_shape) == 2 else ((top, bottom), (left, right))
