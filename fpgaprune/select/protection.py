"""What selection must leave free."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fpgaprune.errors import MaskError
from fpgaprune.masks import MaskSet
from fpgaprune.select.allot import lowest
from fpgaprune.select.layers import ChannelAxes
from fpgaprune.select.units import Partition
from fpgaprune.weights import match_paths

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Protection:
    """What selection leaves free, whatever the scores.

    Attributes:
        patterns: globs of weight paths that are left as they are; their units count in the sparsity.
        min_free: units of each weight that stay free at least; the best ones.
        min_free_per_output: units of each output channel that stay free at least; the best ones.
        free: elements that stay free: those that are True in this set; a unit with one of them is not locked.
        coupled: filters whose outputs are added together are one unit, where the granularity is `filter`.
    """

    patterns: tuple[str, ...] = ()
    min_free: int = 1
    min_free_per_output: int = 0
    coupled: bool = True
    free: MaskSet | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.patterns, tuple):
            raise MaskError(f"protected patterns are {self.patterns!r}; wanted a tuple of globs")
        for name in ("min_free", "min_free_per_output"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise MaskError(f"{name} is {value!r}; wanted a whole number of 0 or more")

    def paths(self, known: Iterable[str]) -> frozenset[str]:
        """The paths in `known` that are left as they are.

        Raises:
            MaskError: a pattern matches none.
        """
        names = list(known)
        return frozenset(path for pattern in self.patterns for path in match_paths(pattern, names))

    def kept(
        self, path: str, scores: NDArray[np.float64], locked: Flags, partition: Partition, axes: ChannelAxes
    ) -> Flags:
        """The units of one weight that must stay free; `locked` ones are past that."""
        keep = np.zeros(partition.count, dtype=bool)
        free = np.flatnonzero(~locked)
        # Of equal ones the last, which are the last to be locked anyway.
        keep[free[len(free) - 1 - lowest(-scores[free[::-1]], min(self.min_free, len(free)))]] = True
        if self.free is not None and path in self.free:
            keep |= ~partition.all(~self.free[path])
        if self.min_free_per_output and len(partition.shape) > 1:
            keep |= self._kept_per_output(scores, locked, partition, axes)
        return keep

    def _kept_per_output(
        self, scores: NDArray[np.float64], locked: Flags, partition: Partition, axes: ChannelAxes
    ) -> Flags:
        ndim = len(partition.shape)
        small = tuple(size if axis - ndim in axes.outputs else 1 for axis, size in enumerate(partition.shape))
        outputs = np.arange(int(np.prod(small))).reshape(small)
        # Which unit touches which output channel: the axes along which neither varies say nothing new.
        both = np.broadcast_shapes(outputs.shape, partition.labels.shape)
        pairs = np.unique(
            np.broadcast_to(outputs, both).ravel() * np.int64(partition.count)
            + np.broadcast_to(partition.labels, both).ravel()
        )
        output, unit = np.divmod(pairs, partition.count)
        still = ~locked[unit]
        output, unit = output[still], unit[still]
        order = np.lexsort((unit, scores[unit], output))
        output, unit = output[order], unit[order]
        ends = np.searchsorted(output, output, side="right")
        keep = np.zeros(partition.count, dtype=bool)
        keep[unit[ends - np.arange(len(output)) <= self.min_free_per_output]] = True
        return keep
