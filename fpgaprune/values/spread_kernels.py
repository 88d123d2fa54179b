"""Kernels with zeros between their taps and outside their groups: what a plain convolution needs to compute the same.

A convolution of 3 x 3 that is dilated by 2 is a plain one of 5 x 5 with nine taps. One of two groups is a plain one in
which no output of the first group reads an input of the second. A depthwise one with a depth multiplier has a group for
each channel.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def spread(kernel: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """Spread `kernel`, (KH, KW, C_in / groups, C_out), among zeros in the plain kernel of `shape`.

    A depthwise kernel of (KH, KW, C, multiplier) becomes one of (..., C, C * multiplier).
    """
    found = np.zeros(shape, kernel.dtype)
    places = _places(kernel.shape, shape)
    if places is None:
        raise ValueError(f"no plain kernel of shape {shape} computes what one of {kernel.shape} does")
    found[places] = kernel.reshape(found[places].shape)
    return found


def gathered(plain: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """Return the kernel of `shape` of which `spread` made `plain`; else `plain`, as if weights lie beside taps."""
    places = None if plain.shape == shape else _places(shape, plain.shape)
    if places is None or np.count_nonzero(plain[places]) != np.count_nonzero(plain):
        return plain
    return np.asarray(plain[places].reshape(shape))


def _places(shape: tuple[int, ...], plain: tuple[int, ...]) -> tuple[NDArray[np.intp], ...] | None:
    """Return the indices of the elements of a kernel of `shape` in a plain one; None if there is no such plain one."""
    if len(shape) != len(plain) or len(shape) < 3:
        return None
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
