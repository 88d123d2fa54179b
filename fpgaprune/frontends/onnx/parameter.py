"""`Parameter`: an array of an ONNX file, which remembers where each of its elements stood in the file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fpgaprune.values import Array, FixedType


@dataclass(frozen=True)
class Codes:
    """An array as whole numbers times a scale that is no power of two.

    Attributes:
        whole: the whole numbers.
        scale: what each of them is multiplied by.
        kind: the type that holds the whole numbers.
    """

    whole: NDArray[np.float32]
    scale: NDArray[np.float32]
    kind: FixedType

    def moved(self, move: Callable[[Array], Array]) -> Codes:
        """Move the elements to other places by `move`."""
        return Codes(move(self.whole), move(self.scale), self.kind)

    def for_outputs(self, axis: int) -> NDArray[np.float32] | None:
        """Return the scale of each entry of `axis`; None if it differs within an entry."""
        rows = np.moveaxis(self.scale, axis, 0).reshape(self.scale.shape[axis], -1)
        return rows[:, 0] if rows.size and (rows == rows[:, :1]).all() else None


@dataclass(frozen=True)
class Parameter:
    """An array and its origin.

    Attributes:
        values: the elements.
        name: name of the constant in the file; "" if the graph computes it from others.
        shape: its shape in the file.
        kind: the fixed-point type to which a quantiser has rounded it; None if there is none.
        origin: flat position in the file's constant of each element; None if there is no such position.
        codes: its elements as whole numbers times scales, if a quantiser with such scales has rounded it.
        of_module: names of the arrays of a module of PyTorch that lie one behind another in `shape`, if the exporter
            has joined them or put them into another order.
    """

    values: Array
    name: str = ""
    shape: tuple[int, ...] = ()
    origin: NDArray[np.int64] | None = None
    kind: FixedType | None = None
    codes: Codes | None = None
    of_module: tuple[str, ...] = ()

    @classmethod
    def of_file(cls, name: str, values: Array) -> Parameter:
        """Return the constant `name` as it is in the file."""
        return cls(values, name, values.shape, np.arange(values.size, dtype=np.int64).reshape(values.shape))

    def moved(self, move: Callable[[Array], Array]) -> Parameter:
        """Return the parameter with its elements in other places; `move` changes places only."""
        origin = None if self.origin is None else move(self.origin)
        codes = None if self.codes is None else self.codes.moved(move)
        return replace(self, values=move(self.values), origin=origin, codes=codes)

    def transposed(self, axes: Sequence[int]) -> Parameter:
        """Return the parameter with its axes in the order `axes`."""
        return self.moved(lambda array: array.transpose(axes))

    def reshaped(self, shape: Sequence[int]) -> Parameter:
        """Return the parameter in the shape `shape`."""
        return self.moved(lambda array: array.reshape(shape))

    def taken(self, order: NDArray[np.int64], axis: int) -> Parameter:
        """Return the parameter with the entries of `axis` in the order `order`."""
        return self.moved(lambda array: array.take(order, axis=axis))

    def with_values(self, values: Array) -> Parameter:
        """Return the parameter with other values in the same places, of no fixed-point type."""
        return replace(self, values=values, kind=None, codes=None)

    def as_codes(self) -> Parameter:
        """Return the whole numbers of its codes as a parameter."""
        if self.codes is None:
            return self
        return replace(self, values=self.codes.whole, kind=self.codes.kind, codes=None)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self.values.ndim

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.values.size
