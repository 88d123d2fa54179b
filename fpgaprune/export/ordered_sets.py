"""Gives tf2onnx sets that keep their order, so that it decides the same in every process.

tf2onnx iterates over sets of names and of nodes to decide which of two equal nodes stays, or which output of a loop
gets a node of its own. The order of Python's sets differs from process to process (`PYTHONHASHSEED`, addresses in
memory).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, MutableSet
from contextlib import contextmanager
from typing import Any


class OrderedSet(MutableSet[Any]):
    """A set that iterates over its elements in the order in which they were added."""

    def __init__(self, elements: Iterable[object] = ()) -> None:
        self._elements = dict.fromkeys(elements)

    def __contains__(self, element: object) -> bool:
        return element in self._elements

    def __iter__(self) -> Iterator[Any]:
        return iter(self._elements)

    def __len__(self) -> int:
        return len(self._elements)

    def __and__(self, other: Iterable[object]) -> OrderedSet:
        # In the order of this set, not of the other.
        return self.intersection(other)

    __rand__ = __and__

    def add(self, value: object) -> None:
        """Add `value` at the end if it is new."""
        self._elements[value] = None

    def discard(self, value: object) -> None:
        """Remove `value` if it is there."""
        self._elements.pop(value, None)

    def update(self, *others: Iterable[object]) -> None:
        """Add all elements of `others`."""
        for other in others:
            self._elements.update(dict.fromkeys(other))

    def copy(self) -> OrderedSet:
        """Return a set of the same elements."""
        return OrderedSet(self)

    def union(self, *others: Iterable[object]) -> OrderedSet:
        """Return the elements of this set and of all `others`."""
        found = self.copy()
        found.update(*others)
        return found

    def intersection(self, *others: Iterable[object]) -> OrderedSet:
        """Return the elements of this set that all `others` have."""
        shared = frozenset(self).intersection(*others)
        return OrderedSet(element for element in self if element in shared)

    def difference(self, *others: Iterable[object]) -> OrderedSet:
        """Return the elements of this set that none of `others` has."""
        kept = frozenset(self).difference(*others)
        return OrderedSet(element for element in self if element in kept)

    def issubset(self, other: Iterable[object]) -> bool:
        """Return whether `other` has every element."""
        return self <= frozenset(other)

    def issuperset(self, other: Iterable[object]) -> bool:
        """Return whether this set has every element of `other`."""
        return self >= frozenset(other)


@contextmanager
def ordered_sets() -> Iterator[None]:
    """Make `set` in tf2onnx's modules an `OrderedSet` within the block."""
    modules = [module for name, module in sorted(sys.modules.items()) if name.partition(".")[0] == "tf2onnx"]
    modules = [module for module in modules if module is not None and "set" not in vars(module)]
    for module in modules:
        vars(module)["set"] = OrderedSet
    try:
        yield
    finally:
        for module in modules:
            del vars(module)["set"]
