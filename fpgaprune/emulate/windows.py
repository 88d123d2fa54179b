"""`Windows`: what a kernel or a pool reads at each position of a map."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpgaprune.design import Window


class Windows(Window):
    """The windows of a convolution or a pooling over maps (N, H, W, C)."""

    @classmethod
    def of(cls, window: Window) -> Windows:
        """The same windows."""
        return cls(window.size, window.stride, window.pad)

    def views(self, image: NDArray[Any]) -> Iterator[NDArray[Any]]:
        """For each place in the window, row by row, the values there: views (N, H_out, W_out, C) of `image`."""
        height, width = self.positions(image.shape[1], image.shape[2])
        for row in range(self.size[0]):
            for column in range(self.size[1]):
                rows = slice(row, row + self.stride[0] * (height - 1) + 1, self.stride[0])
                columns = slice(column, column + self.stride[1] * (width - 1) + 1, self.stride[1])
                yield image[:, rows, columns]

    def positions(self, height: int, width: int) -> tuple[int, int]:
        """The number of windows below and beside each other in a map of that size, padding included."""
        return (height - self.size[0]) // self.stride[0] + 1, (width - self.size[1]) // self.stride[1] + 1

    def padded(self, image: NDArray[Any], value: int) -> NDArray[Any]:
        """`image` (N, H, W, C) with a border of `value`."""
        if not any(self.pad):
            return image
        top, bottom, left, right = self.pad
        return np.pad(image, ((0, 0), (top, bottom), (left, right), (0, 0)), constant_values=value)

    def columns(self, image: NDArray[Any]) -> NDArray[Any]:
        """(N * H_out * W_out, KH * KW * C) the windows as rows, in the order of a kernel's weights."""
        height, width = self.positions(image.shape[1], image.shape[2])
        channels = image.shape[3]
        found = np.empty((image.shape[0], height, width, self.taps, channels), image.dtype)
        for place, tap in enumerate(self.views(image)):
            found[:, :, :, place] = tap
        return found.reshape(-1, self.taps * channels)


def as_image(array: NDArray[Any]) -> NDArray[Any]:
    """(N, W, C) as a map of height 1; (N, H, W, C) stays."""
    return array[:, None] if array.ndim == 3 else array
