"""`Value`: a tensor of an ONNX graph as a layer of Keras will give it, perhaps with its axes in another order."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Value:
    """A tensor of ONNX; its axes are counted as if the batch were the first.

    Attributes:
        layer: name of the layer of Keras that gives it.
        shape: its shape in Keras, without the batch.
        axes: for each axis of `shape` the axis of ONNX that it is, from 1; an axis that is missing has one entry.
        rank: number of axes in ONNX, with the batch.
        flat: shape and axes of the tensor that was flattened, if its columns are in another order than in ONNX.
        nonnegative: no element is below zero.
        batch: the axis of ONNX that is the batch; recurrent networks have the steps before it.
    """

    layer: str
    shape: tuple[int, ...]
    axes: tuple[int, ...]
    rank: int
    flat: tuple[tuple[int, ...], tuple[int, ...]] | None = None
    nonnegative: bool = False
    batch: int = 0

    @property
    def sizes(self) -> tuple[int, ...]:
        """The shape in ONNX, without the batch."""
        return tuple(self.size(axis) for axis in range(1, self.rank))

    @property
    def elements(self) -> int:
        """Number of elements of a sample."""
        return prod(self.shape)

    def size(self, axis: int) -> int:
        """Return the number of entries of the axis `axis` of ONNX."""
        return self.shape[self.axes.index(axis)] if axis in self.axes else 1

    def position(self, axis: int) -> int:
        """Return the axis of Keras, with the batch as 0, that is the axis `axis` of ONNX; -1 for the last."""
        at = self.axes.index(axis)
        return -1 if at == len(self.axes) - 1 else at + 1

    def counted(self, axis: int) -> int:
        """Return the axis `axis` of ONNX, counted as if the batch were the first."""
        return 0 if axis == self.batch else axis + (axis < self.batch)

    def column_order(self) -> NDArray[np.int64] | None:
        """Return the column in ONNX of each column in Keras; None if they are the same."""
        if self.flat is None:
            return None
        shape, axes = self.flat
        by_axis = dict(zip(axes, shape, strict=True))
        ordered = sorted(axes)
        columns = np.arange(int(np.prod(shape)), dtype=np.int64).reshape([by_axis[axis] for axis in ordered])
        return columns.transpose([ordered.index(axis) for axis in axes]).ravel()

    def given_by(self, layer: str, *, nonnegative: bool = False) -> Value:
        """Return the value of the same shape that `layer` makes of this one."""
        return replace(self, layer=layer, nonnegative=nonnegative)


def channels_last(rank: int) -> tuple[int, ...]:
    """Return the axes of a tensor of `rank` axes of ONNX, (N, C, ...), with the channels as the last."""
    return (*range(2, rank), 1)
