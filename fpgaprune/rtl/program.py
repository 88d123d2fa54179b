"""`Program`: what groups of multipliers do in each cycle, so that a locked kernel takes none.

The kept kernels stand in one row, output by output, and the row is cut into as many equal lengths as there are groups:
every group is busy in every cycle but the last, whatever is pruned. An output whose kernels are cut apart is a sum of
two groups' sums (McNaughton, Scheduling with Deadlines and Loss Functions, 1959, gives machines their work so).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

# Large parts of kernels take fewer memories than small ones, so that many multipliers need not be used to the last one.
_ENOUGH = 0.9


@dataclass(frozen=True)
class Turn:
    """A stored sum that belongs to an output: that of `group` in `slot`, or `nothing`; `last` of its output."""

    group: int
    slot: int
    last: bool
    nothing: bool = False


@dataclass(frozen=True)
class Program:
    """The kernels that each group of multipliers visits, and which sums make each output.

    Where a layer has fewer multipliers than a kernel has taps, what is visited is a part of a kernel.

    Attributes:
        groups: so many parts are multiplied in a cycle.
        split: parts of a kernel.
        places: (N, 2) of each part that is kept, output by output: the output, and input channel * split + part.
        weights: (N, taps of a part) their raw weights.
        outputs: how many outputs there are.
        all: parts, kept and locked.
    """

    groups: int
    split: int
    places: NDArray[np.int64]
    weights: NDArray[np.int64]
    outputs: int
    all: int

    @classmethod
    def of(cls, kernels: NDArray[np.int64], multipliers: int) -> Program:
        """Make the program of raw kernels (taps, inputs, outputs) for at most so many multipliers, without zeros."""
        taps, inputs, outputs = kernels.shape
        split, groups = _divided(taps, multipliers)
        parts = cls.parts(kernels, split)
        places = np.argwhere(parts.any(axis=1).T)
        weights = parts[places[:, 1], :, places[:, 0]]
        return cls(_needed(groups, places), split, places, weights, outputs, inputs * split * outputs)

    @classmethod
    def depthwise(cls, kernels: NDArray[np.int64], multipliers: int) -> Program:
        """Return the program of raw kernels (taps, channels), each from a channel to itself."""
        taps, channels = kernels.shape
        split, groups = _divided(taps, multipliers)
        parts = kernels.reshape(split, taps // split, channels).transpose(2, 0, 1).reshape(-1, taps // split)
        kept = np.flatnonzero(parts.any(axis=1))
        places = np.stack([kept // split, kept], axis=1)
        return cls(_needed(groups, places), split, places, parts[kept], channels, channels * split)

    @staticmethod
    def parts(kernels: NDArray[np.int64], split: int) -> NDArray[np.int64]:
        """Return kernels (taps, inputs, outputs) as parts (input * split + part, taps of a part, outputs)."""
        taps, inputs, outputs = kernels.shape
        rows = kernels.reshape(split, taps // split, inputs, outputs).transpose(2, 0, 1, 3)
        return rows.reshape(inputs * split, taps // split, outputs)

    @property
    def taps(self) -> int:
        """Weights of what is visited."""
        return int(self.weights.shape[1])

    @property
    def multipliers(self) -> int:
        """Number of multipliers."""
        return self.groups * self.taps

    @property
    def steps(self) -> int:
        """Cycles for every place of the image, at least one."""
        return max(1, -(-len(self.places) // self.groups))

    @property
    def balance(self) -> float:
        """Busiest group against the mean of all; 1 where all have equally many kernels, and where there are none."""
        return self.steps * self.groups / len(self.places) if len(self.places) else 1.0

    def gaps(self, piece_bits: int, place_bits: int) -> tuple[list[int], NDArray[np.int64]]:
        """Return where each group begins, and for each part how many places lie between it and the one before it.

        A place is {channel, part}, as bits; behind the last one comes the first.
        """
        channel, part = np.divmod(self.places[:, 1], self.split)
        at = channel << piece_bits | part
        found = (np.diff(at, prepend=0) - 1) % (1 << place_bits)
        found[:: self.steps] = 0
        return at[:: self.steps].tolist(), found

    @cached_property
    def lasts(self) -> NDArray[np.bool_]:
        """Whether the sum of a group is stored with a kernel: behind the last one of an output, and of the group."""
        number = np.arange(len(self.places))
        ends = np.append(np.diff(self.places[:, 0]) != 0, True)[: len(number)]
        found: NDArray[np.bool_] = ends | (number % self.steps == self.steps - 1)
        return found

    @cached_property
    def turns(self) -> tuple[Turn, ...]:
        """The stored sums of every output, output by output."""
        found: list[list[Turn]] = [[] for _ in range(self.outputs)]
        slots = [0] * self.groups
        for number in np.flatnonzero(self.lasts).tolist():
            group = number // self.steps
            found[self.places[number, 0]].append(Turn(group, slots[group], False))
            slots[group] += 1
        return tuple(
            Turn(turn.group, turn.slot, place == len(row) - 1, turn.nothing)
            for row in (turns or [Turn(0, 0, True, True)] for turns in found)
            for place, turn in enumerate(row)
        )

    @property
    def slots(self) -> int:
        """The most sums that a group stores for a place."""
        return max(turn.slot for turn in self.turns) + 1


def _divided(taps: int, multipliers: int) -> tuple[int, int]:
    """Return into how many parts kernels of so many taps are split, and how many are multiplied in a cycle."""
    if multipliers >= 2 * taps:
        return 1, multipliers // taps
    splits = [split for split in range(1, taps + 1) if taps % split == 0 and taps // split <= multipliers]
    used = {split: multipliers * split // taps * (taps // split) for split in splits}
    enough = min(_ENOUGH * multipliers, max(used.values()))
    split = next(split for split in splits if used[split] >= enough)
    return split, multipliers * split // taps


def _needed(groups: int, places: NDArray[np.int64]) -> int:
    """Count those of the `groups` that get a kernel: one for each of `places` at most."""
    return max(1, min(groups, len(places)))
