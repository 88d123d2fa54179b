"""`Parameter`: an array of an ONNX file, which remembers where each of its elements stood in the file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpgaprune.fixed import FixedType


@dataclass(frozen=True)
class Parameter:
    """An array and its origin.

    Attributes:
        values: the elements.
        name: name of the constant in the file; "" if the graph computes it from others.
        shape: its shape in the file.
        kind: the fixed-point type to which a quantiser has rounded it; None if there is none.
        origin: flat position in the file's constant of each element; None if there is no such position.
    """

    values: NDArray[Any]
    name: str = ""
    shape: tuple[int, ...] = ()
    origin: NDArray[np.int64] | None = None
    kind: FixedType | None = None

    @classmethod
    def of_file(cls, name: str, values: NDArray[Any]) -> Parameter:
        """The constant `name` as it is in the file."""
        return cls(values, name, values.shape, np.arange(values.size, dtype=np.int64).reshape(values.shape))

    def moved(self, move: Callable[[NDArray[Any]], NDArray[Any]]) -> Parameter:
        """The parameter with its elements in other places; `move` changes places only."""
        origin = None if self.origin is None else move(self.origin)
        return replace(self, values=move(self.values), origin=origin)

    def transposed(self, axes: Sequence[int]) -> Parameter:
        """The parameter with its axes in the order `axes`."""
        return self.moved(lambda array: array.transpose(axes))

    def reshaped(self, shape: Sequence[int]) -> Parameter:
        """The parameter in the shape `shape`."""
        return self.moved(lambda array: array.reshape(shape))

    def taken(self, order: NDArray[np.int64], axis: int) -> Parameter:
        """The parameter with the entries of `axis` in the order `order`."""
        return self.moved(lambda array: array.take(order, axis=axis))

    def with_values(self, values: NDArray[Any]) -> Parameter:
        """The parameter with other values in the same places, of no fixed-point type."""
        return replace(self, values=values, kind=None)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self.values.ndim

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.values.size
