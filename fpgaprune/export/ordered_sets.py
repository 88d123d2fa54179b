"""tf2onnx with sets that keep an order, so that it decides alike in every process.

tf2onnx goes through sets of names and of nodes when it decides which of two equal nodes stays, or which output of a
loop gets a node of its own. Python draws the order of a set anew for each process (`PYTHONHASHSEED`, addresses in
memory).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, MutableSet
from contextlib import contextmanager
from typing import Any


class OrderedSet(MutableSet[Any]):
    """A set whose elements come in the order in which they were added."""

    def __init__(self, elements: Iterable[Any] = ()) -> None:
        self._elements = dict.fromkeys(elements)

    def __contains__(self, element: object) -> bool:
        return element in self._elements

    def __iter__(self) -> Iterator[Any]:
        return iter(self._elements)

    def __len__(self) -> int:
        return len(self._elements)

    def __and__(self, other: Iterable[Any]) -> OrderedSet:
        # In the order of this set, not of the other.
        return self.intersection(other)

    __rand__ = __and__

    def add(self, value: Any) -> None:
        """`value` is in the set; a new one stands at its end."""
        self._elements[value] = None

    def discard(self, value: Any) -> None:
        """`value` is not in the set."""
        self._elements.pop(value, None)

    def update(self, *others: Iterable[Any]) -> None:
        """All elements of `others` are in the set."""
        for other in others:
            self._elements.update(dict.fromkeys(other))

    def copy(self) -> OrderedSet:
        """A set of the same elements."""
        return OrderedSet(self)

    def union(self, *others: Iterable[Any]) -> OrderedSet:
        """The elements of this set and of all `others`."""
        found = self.copy()
        found.update(*others)
        return found

    def intersection(self, *others: Iterable[Any]) -> OrderedSet:
        """The elements of this set that each of `others` has."""
        every = [frozenset(other) for other in others]
        return OrderedSet(element for element in self if all(element in other for other in every))

    def difference(self, *others: Iterable[Any]) -> OrderedSet:
        """The elements of this set that none of `others` has."""
        gone = frozenset(element for other in others for element in other)
        return OrderedSet(element for element in self if element not in gone)

    def issubset(self, other: Iterable[Any]) -> bool:
        """Whether `other` has every element."""
        return self <= frozenset(other)

    def issuperset(self, other: Iterable[Any]) -> bool:
        """Whether every element of `other` is here."""
        return self >= frozenset(other)


@contextmanager
def ordered_sets() -> Iterator[None]:
    """Inside the block tf2onnx's `set` is an `OrderedSet`."""
    modules = [module for name, module in sorted(sys.modules.items()) if name.partition(".")[0] == "tf2onnx"]
    modules = [module for module in modules if module is not None and "set" not in vars(module)]
    for module in modules:
        vars(module)["set"] = OrderedSet
    try:
        yield
    finally:
        for module in modules:
            del vars(module)["set"]
