"""`Protection`: the elements that selection must leave free."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fpgaprune.errors import MaskError
from fpgaprune.network import Flags
from fpgaprune.select.allot import lowest
from fpgaprune.select.units import Partition
from fpgaprune.values import MaskSet, match_paths


@dataclass(frozen=True)
class Protection:
    """The elements that selection leaves free, whatever their scores.

    Attributes:
        patterns: globs of weight paths that stay as they are; their units count in the sparsity.
        min_free: fewest units of each weight that stay free: the best ones.
        min_free_channels: smallest share of each layer's output channels that stays alive, 0..1: units on a path from
            the model's input through them to its output stay free. All output channels of the model stay alive. 0
            keeps none.
        free: masks whose free elements stay free; a unit with such an element is not locked.
        coupled: whether filters whose outputs are added together are one unit, with granularity `filter`.
    """

    patterns: tuple[str, ...] = ()
    min_free: int = 1
    coupled: bool = True
    free: MaskSet | None = None
    min_free_channels: float = 1 / 8

    def __post_init__(self) -> None:
        if not isinstance(self.patterns, tuple):
            raise MaskError(f"protected patterns are {self.patterns!r}; wanted a tuple of globs")
        value = self.min_free
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise MaskError(f"min_free is {value!r}; wanted a whole number of 0 or more")
        share = self.min_free_channels
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
            raise MaskError(f"min_free_channels is {share!r}; wanted a fraction from 0 to 1")

    def paths(self, known: Collection[str]) -> frozenset[str]:
        """Return the paths in `known` that stay as they are.

        Raises:
            MaskError: a pattern matches none.
        """
        return frozenset(path for pattern in self.patterns for path in match_paths(pattern, known))

    def freed(self, path: str, partition: Partition) -> Flags:
        """Return the units of one weight that hold an element which must stay free."""
        if self.free is None or path not in self.free:
            return np.zeros(partition.count, dtype=bool)
        return ~partition.all(~self.free[path])

    def kept(self, scores: NDArray[np.float64], locked: Flags, sure: Flags) -> Flags:
        """Return the units of one weight that must stay free.

        Args:
            scores: score of each unit.
            locked: whether each unit is locked already; such units stay locked.
            sure: the units that stay free for other reasons; they count in `min_free`.
        """
        keep = sure.copy()
        free = np.flatnonzero(~(locked | keep))
        # Of equal units the last are kept, because they are locked last anyway.
        more = min(max(self.min_free - int(keep.sum()), 0), len(free))
        keep[free[len(free) - 1 - lowest(-scores[free[::-1]], more)]] = True
        return keep
