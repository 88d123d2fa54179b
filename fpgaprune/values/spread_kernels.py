"""Kernels with zeros between their taps and outside their groups: what a plain convolution needs to compute the same.

A convolution of 3 x 3 that is dilated by 2 is a plain one of 5 x 5 with nine taps. One of two groups is a plain one in
which no output of the first group reads an input of the second. A depthwise one with a depth multiplier has a group for
each channel. A transposed one of 3 x 3 and stride 2 is a plain one of 2 x 2 with four times as many filters, those of
the four phases of its output: each of its weights is in one phase.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

_Places = tuple[NDArray[np.intp], ...] | None


def spread(kernel: NDArray[Any], shape: tuple[int, ...], phases: tuple[int, ...] | None = None) -> NDArray[Any]:
    """Spread `kernel`, (KH, KW, C_in / groups, C_out), among zeros in the plain kernel of `shape`.

    A depthwise kernel of (KH, KW, C, multiplier) becomes one of (..., C, C * multiplier), a transposed one of
    (KH, KW, C_out, C_in) one of (ceil(KH / SH), ceil(KW / SW), C_in, SH * SW * C_out).

    Args:
        kernel: the kernel, or a mask of it.
        shape: that of the plain kernel.
        phases: strides (SH, SW) of a transposed convolution; None for any other.
    """
    found = np.zeros(shape, kernel.dtype)
    places = _places(kernel.shape, shape, phases)
    if places is None:
        raise ValueError(f"no plain kernel of shape {shape} computes what one of {kernel.shape} does")
    found[places] = kernel.reshape(found[places].shape)
    return found


def gathered(plain: NDArray[Any], shape: tuple[int, ...], phases: tuple[int, ...] | None = None) -> NDArray[Any]:
    """Return the kernel of `shape` of which `spread` made `plain`; else `plain`, as if weights lie beside taps.

    A Dense layer of the channels at each position is a convolution of one tap: its kernel has axes of size 1 in front.
    """
    if plain.ndim > len(shape) and plain.shape == (1,) * (plain.ndim - len(shape)) + shape:
        return plain.reshape(shape)
    places = None if plain.shape == shape and phases is None else _places(shape, plain.shape, phases)
    if places is None or np.count_nonzero(plain[places]) != np.count_nonzero(plain):
        return plain
    return np.asarray(plain[places].reshape(shape))


def _places(shape: tuple[int, ...], plain: tuple[int, ...], phases: tuple[int, ...] | None) -> _Places:
    """Return the indices of the elements of a kernel of `shape` in a plain one; None if there is no such plain one."""
    if len(shape) != len(plain) or len(shape) < 3:
        return None
    return _between_taps(shape, plain) if phases is None else _in_phases(shape, plain, phases)


def _between_taps(shape: tuple[int, ...], plain: tuple[int, ...]) -> _Places:
    (*taps, inside, outputs), (*wide, inputs, filters) = shape, plain
    if outputs != filters:
        # Depthwise: each channel is a group.
        inside, outputs = 1, inside * outputs
    steps = [(large - 1) // (small - 1) if small > 1 else 1 for small, large in zip(taps, wide, strict=True)]
    fits = all((small - 1) * step + 1 == large for small, large, step in zip(taps, wide, steps, strict=True))
    if not fits or outputs != filters or inputs % inside or outputs % (inputs // inside):
        return None
    group = np.arange(outputs) // (outputs // (inputs // inside))
    axes = [np.arange(small) * step for small, step in zip(taps, steps, strict=True)]
    grids = np.ix_(*axes, np.arange(1), np.arange(1))[: len(taps)]
    rows = np.arange(inside)[:, None] + inside * group
    return tuple(np.broadcast_arrays(*grids, rows, np.arange(outputs)[None]))


def _in_phases(shape: tuple[int, ...], plain: tuple[int, ...], strides: tuple[int, ...]) -> _Places:
    """Return the places of a transposed kernel: output `SH * m + p` sums the taps `p + SH * j` of the inputs m - j."""
    (*taps, outputs, inputs), (*wide, channels, filters) = shape, plain
    fits = channels == inputs and filters == outputs * math.prod(strides)
    if not fits or wide != [math.ceil(tap / step) for tap, step in zip(taps, strides, strict=True)]:
        return None
    *grids, filter_, channel = np.ix_(*(np.arange(size) for size in shape))
    phase: Any = 0
    for tap, step in zip(grids, strides, strict=True):
        phase = phase * step + tap % step
    axes = [large - 1 - tap // step for large, tap, step in zip(wide, grids, strides, strict=True)]
    return tuple(np.broadcast_arrays(*axes, channel, phase * outputs + filter_))
