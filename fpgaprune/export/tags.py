"""`Tags` are numbers that stand for the elements of weights during an export.

Two weights may hold equal bits: all zeros, one number, one bias for every channel. So the file is first made with tags.
A tag is a number that stands for one element of one weight; at the end the element replaces it. The tags tell which
initialiser is which weight, and in which order its axes are.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from fpgaprune.errors import ExportError
from fpgaprune.values import Array

# The bits of the float32 numbers from 2**64 to 2**127; no constant of a layer is among these.
_FIRST = 0x5F800000
_PAST = 0x7F000000
_FLOATS = (np.dtype("float32"), np.dtype("float64"))


@dataclass(frozen=True)
class Place:
    """Where the array `name` went: its axes transposed by `permutation`, then reshaped to the initialiser's shape."""

    name: str
    permutation: tuple[int, ...]


@dataclass
class Tags:
    """The tags of arrays that have names.

    Attributes:
        arrays: name to array, in the order in which the arrays got their tags.
    """

    arrays: dict[str, Array] = field(default_factory=dict)
    _starts: dict[str, int] = field(default_factory=dict)
    _count: int = 0

    def add(self, name: str, values: Array) -> Array:
        """Make tags for `values`, of the same shape and dtype; no tag stands for two elements.

        If `name` already has tags, such as the kernel of a layer that is used twice, they are returned again.

        Raises:
            ExportError: there are more elements than tags, or another array has this name.
        """
        start = self._starts.get(name, self._count)
        if name not in self.arrays:
            if start + values.size > _PAST - _FIRST:
                raise ExportError(
                    f"the model has more than {_PAST - _FIRST} weights, which ONNX export does not support"
                )
            self.arrays[name], self._starts[name] = values, start
            self._count += values.size
        elif values.dtype != self.arrays[name].dtype or not np.array_equal(values, self.arrays[name], equal_nan=True):
            raise ExportError(f"two weights of the model are called {name!r}: give their layers names of their own")
        bits = np.arange(_FIRST + start, _FIRST + start + values.size, dtype=np.uint32)
        return bits.view(np.float32).astype(values.dtype).reshape(values.shape)

    def knows(self, tagged: Array) -> bool:
        """Return whether every element of `tagged` is a tag that was given."""
        numbers = self._numbers(tagged)
        return numbers is not None and bool(((numbers >= 0) & (numbers < self._count)).all())

    def values(self, tagged: Array) -> Array:
        """Replace each tag in `tagged` by its element; other numbers stay.

        Raises:
            ExportError: a number is a tag that stands for nothing, so something was computed from tags.
        """
        numbers = self._numbers(tagged)
        if numbers is None:
            return tagged
        is_tag = (numbers >= 0) & (numbers < self._count)
        size = np.abs(tagged)
        if (~is_tag & (size >= 2.0**32) & (size < 2.0**127)).any():
            raise ExportError("tf2onnx computed with weights that it should only copy; use another version of tf2onnx")
        found = np.array(tagged)
        for name in self._named(numbers[is_tag]):
            array, start = self.arrays[name], self._starts[name]
            own = is_tag & (numbers >= start) & (numbers < start + array.size)
            found[own] = array.ravel()[numbers[own] - start]
        return found

    def place(self, tagged: Array) -> Place | None:
        """Return the array that has each element in `tagged` once, and the order of its axes; None if there is none."""
        numbers = self._numbers(tagged)
        if numbers is None or not numbers.size:
            return None
        flat = numbers.ravel()
        named = self._named(flat) if 0 <= flat.min() <= flat.max() < self._count else []
        if len(named) != 1 or self.arrays[named[0]].size != flat.size:
            return None
        array, start = self.arrays[named[0]], self._starts[named[0]]
        own = np.arange(start, start + array.size).reshape(array.shape)
        # If axes have one element, several orders fit; the one that gives the initialiser's shape is tried first.
        orders = sorted(
            itertools.permutations(range(array.ndim)),
            key=lambda order: tuple(array.shape[axis] for axis in order) != tagged.shape,
        )
        for order in orders:
            if np.array_equal(np.transpose(own, order).ravel(), flat):
                return Place(named[0], order)
        return None

    def _named(self, numbers: NDArray[np.int64]) -> list[str]:
        """Return the names of the arrays whose tags have these numbers."""
        # An empty array starts where the next one starts, and comes before it, so the search never returns it.
        starts = np.fromiter(self._starts.values(), dtype=np.int64)
        names = list(self._starts)
        return [names[place] for place in np.unique(np.searchsorted(starts, numbers, side="right") - 1)]

    def _numbers(self, tagged: Array) -> NDArray[np.int64] | None:
        """Return the number of each element's tag, from 0; a number outside the range of tags if it is not a tag."""
        if tagged.dtype not in _FLOATS:
            return None
        with np.errstate(over="ignore", invalid="ignore"):
            narrow = np.ascontiguousarray(tagged, dtype=np.float32)
        numbers = narrow.view(np.uint32).astype(np.int64) - _FIRST
        return np.where(narrow.astype(tagged.dtype) == tagged, numbers, -1).reshape(tagged.shape)


def can_be_tagged(values: Array) -> bool:
    """Return whether an array of this dtype can have tags."""
    return values.dtype in _FLOATS
