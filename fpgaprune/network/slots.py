"""`Slots` numbers channels, and groups those that leave or stay together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.intp]


class Slots:
    """Counts slots from 0, and remembers which were united."""

    def __init__(self) -> None:
        self.count = 0
        self._left: list[Ids] = []
        self._right: list[Ids] = []

    def fresh(self, count: int) -> Ids:
        """`count` slots that nothing else uses."""
        ids = np.arange(self.count, self.count + count, dtype=np.intp)
        self.count += count
        return ids

    def unite(self, left: Ids, right: Ids) -> None:
        """Let `left[k]` and `right[k]` leave or stay together, for every k of their broadcast shape."""
        left, right = np.broadcast_arrays(left, right)
        differ = left != right
        if differ.any():
            self._left.append(left[differ])
            self._right.append(right[differ])

    def roots(self) -> Ids:
        """The smallest slot of each slot's group; shape (count,)."""
        parent = np.arange(self.count, dtype=np.intp)
        if not self._left:
            return parent
        left, right = np.concatenate(self._left), np.concatenate(self._right)
        while True:
            above, below = parent[left], parent[right]
            apart = above != below
            if not apart.any():
                return parent
            left, right, above, below = left[apart], right[apart], above[apart], below[apart]
            np.minimum.at(parent, np.maximum(above, below), np.minimum(above, below))
            while True:
                shorter = parent[parent]
                if np.array_equal(shorter, parent):
                    break
                parent = shorter
