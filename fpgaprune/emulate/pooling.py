"""Pooling layers, and `Windows`: what a kernel or a pool reads at each position of a map."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from fpgaprune.design import Pooling, Window
from fpgaprune.emulate.exact import Exact, carrier
from fpgaprune.emulate.step import Step
from fpgaprune.emulate.sums import summed
from fpgaprune.values import Array


class Windows(Window):
    """The windows of a convolution or a pooling over maps (N, H, W, C)."""

    @classmethod
    def of(cls, window: Window) -> Windows:
        """Make windows with the size, stride and padding of `window`."""
        return cls(window.size, window.stride, window.pad)

    def views(self, image: Array) -> Iterator[Array]:
        """Yield the values at each place in the window, row by row: views (N, H_out, W_out, C) of `image`."""
        height, width = self.positions(image.shape[1], image.shape[2])
        for row in range(self.size[0]):
            for column in range(self.size[1]):
                rows = slice(row, row + self.stride[0] * (height - 1) + 1, self.stride[0])
                columns = slice(column, column + self.stride[1] * (width - 1) + 1, self.stride[1])
                yield image[:, rows, columns]

    def positions(self, height: int, width: int) -> tuple[int, int]:
        """Count the windows along the height and the width of a map of this size, padding included."""
        return (height - self.size[0]) // self.stride[0] + 1, (width - self.size[1]) // self.stride[1] + 1

    def padded(self, image: Array, value: int) -> Array:
        """Return `image` (N, H, W, C) with a border of `value`."""
        if not any(self.pad):
            return image
        top, bottom, left, right = self.pad
        return np.pad(image, ((0, 0), (top, bottom), (left, right), (0, 0)), constant_values=value)

    def columns(self, image: Array) -> Array:
        """Return the windows as rows (N * H_out * W_out, KH * KW * C), in the order of a kernel's weights."""
        height, width = self.positions(image.shape[1], image.shape[2])
        channels = image.shape[3]
        found = np.empty((image.shape[0], height, width, self.taps, channels), image.dtype)
        for place, tap in enumerate(self.views(image)):
            found[:, :, :, place] = tap
        return found.reshape(-1, self.taps * channels)


def as_image(array: Array) -> Array:
    """Return (N, W, C) as a map of height 1; (N, H, W, C) stays."""
    return array[:, None] if array.ndim == 3 else array


def pooling(step: Step, x: Exact) -> Exact:
    """Compute `nnet::pooling1d_cl` or `pooling2d_cl`, or global pooling."""
    pool = step.operation(Pooling)
    if pool.window is None:
        return _global_pooling(step, x)
    windows = Windows.of(pool.window)
    padded = _padded(step, x, windows)
    taps = [padded.on(tap) for tap in windows.views(padded.raw)]
    if pool.largest:
        pooled = _largest(step, taps)
    else:
        total = summed(taps, step.type("accum"), tree=pool.assigns_first)
        pooled = total.quotient(window_counts(x, windows))
    return pooled.into(step.result).reshape(x.raw.shape[0], *step.layer.output_shape)


def _global_pooling(step: Step, x: Exact) -> Exact:
    """Compute `nnet::global_pooling1d_cl` or `global_pooling2d_cl`."""
    pool, accum = step.operation(Pooling), step.type("accum")
    places = int(np.prod(x.raw.shape[1:-1]))
    flat = x.raw.reshape(x.raw.shape[0], places, x.raw.shape[-1])
    taps = [x.on(flat[:, place]) for place in range(places)]
    if pool.largest:
        # The template of io_stream starts from the smallest number of the accumulator's type, which changes nothing.
        pooled = _largest(step, taps)
    else:
        addends = [tap.into(accum) for tap in taps] if pool.assigns_first else taps
        pooled = summed(addends, accum, tree=False).quotient(places)
    return pooled.into(step.result)


def _largest(step: Step, taps: list[Exact]) -> Exact:
    accum = step.type("accum")
    if step.operation(Pooling).assigns_first:
        taps = [tap.into(accum) for tap in taps]
        return taps[0].on(reduce(np.maximum, [tap.raw for tap in taps]))
    return taps[0].on(reduce(np.maximum, [tap.raw for tap in taps])).into(accum)


def _padded(step: Step, x: Exact, windows: Windows) -> Exact:
    image = as_image(x.raw)
    if not any(windows.pad):
        return x.on(image)
    if not step.operation(Pooling).largest:
        return Exact(windows.padded(image, 0), x.fraction, min(x.low, 0), max(x.high, 0))
    # hls4ml pads with a number whose only set bit is the top one: the smallest number of a signed type, the middle of
    # an unsigned one.
    source = step.sources[0].types["result"]
    value = -(1 << (source.width - 1)) if source.signed else 1 << (source.width - 1)
    low, high = min(x.low, value), max(x.high, value)
    return Exact(windows.padded(image.astype(carrier(low, high), copy=False), value), x.fraction, low, high)


def window_counts(x: Exact, windows: Windows) -> int | NDArray[np.int64]:
    """Return the number of values of each average, by which its sum is divided."""
    if not any(windows.pad):
        return windows.taps
    inside = windows.padded(np.ones((1, *as_image(x.raw).shape[1:3], 1), np.int64), 0)
    return np.asarray(sum(windows.views(inside)))
