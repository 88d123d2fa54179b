"""Windows of an image: what a kernel or a pool sees at each position."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpgaprune.emulate.step import Step
from fpgaprune.errors import DesignError


@dataclass(frozen=True)
class Windows:
    """Where windows lie; a 1-D layer is a 2-D one of height 1.

    Attributes:
        size, stride: (height, width).
        pad: (top, bottom, left, right).
    """

    size: tuple[int, int]
    stride: tuple[int, int]
    pad: tuple[int, int, int, int]

    @classmethod
    def of(cls, step: Step, prefix: str) -> Windows:
        """The windows of a convolution (`prefix` `filt`) or a pooling (`pool`).

        Raises:
            DesignError: the layer is dilated.
        """
        for name in ("dilation_height", "dilation_width"):
            if step.number(name, 1) != 1:
                raise DesignError(f"{name} is {step.number(name)}; the templates of hls4ml know no dilation")
        flat = len(step.sources[0].output_shape) == 2
        size = (1 if flat else step.number(f"{prefix}_height"), step.number(f"{prefix}_width"))
        stride = (1 if flat else step.number("stride_height"), step.number("stride_width"))
        top, bottom = (0, 0) if flat else (step.number("pad_top"), step.number("pad_bottom"))
        return cls(size, stride, (top, bottom, step.number("pad_left"), step.number("pad_right")))

    def taps(self, image: NDArray[Any]) -> Iterator[NDArray[Any]]:
        """For each place in the window, row by row, what lies there: (N, H_out, W_out, C), views of `image`."""
        height, width = self.positions(image.shape[1], image.shape[2])
        for row in range(self.size[0]):
            for column in range(self.size[1]):
                rows = slice(row, row + self.stride[0] * (height - 1) + 1, self.stride[0])
                columns = slice(column, column + self.stride[1] * (width - 1) + 1, self.stride[1])
                yield image[:, rows, columns]

    def positions(self, height: int, width: int) -> tuple[int, int]:
        """How many windows fit below each other and beside each other in an image that is padded already."""
        return (height - self.size[0]) // self.stride[0] + 1, (width - self.size[1]) // self.stride[1] + 1

    def padded(self, image: NDArray[Any], value: int) -> NDArray[Any]:
        """`image` (N, H, W, C) with `value` around it."""
        if not any(self.pad):
            return image
        top, bottom, left, right = self.pad
        return np.pad(image, ((0, 0), (top, bottom), (left, right), (0, 0)), constant_values=value)

    def columns(self, image: NDArray[Any]) -> NDArray[Any]:
        """Each window as one row, (N * H_out * W_out, KH * KW * C), in the order of a kernel's weights."""
        height, width = self.positions(image.shape[1], image.shape[2])
        channels = image.shape[3]
        taps = self.size[0] * self.size[1]
        found = np.empty((image.shape[0], height, width, taps, channels), image.dtype)
        for place, tap in enumerate(self.taps(image)):
            found[:, :, :, place] = tap
        return found.reshape(-1, taps * channels)


def as_image(array: NDArray[Any]) -> NDArray[Any]:
    """(N, W, C) as an image of height 1; an image stays."""
    return array[:, None] if array.ndim == 3 else array
