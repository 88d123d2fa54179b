"""`Clock`: how much of the time of a search is left."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Clock:
    """Says whether another trial will end in time.

    Attributes:
        deadline: a time of `time.monotonic`.
        epochs: of each trial.
        slowest: epochs to the seconds of the slowest trial; clocks may share it.
        expected: the seconds of a trial with so many epochs, as long as none has been measured.
    """

    deadline: float
    epochs: int = 0
    slowest: dict[int, float] = field(default_factory=dict)
    expected: Callable[[int], float] = lambda _: 0.0

    def took(self, seconds: float) -> None:
        """A trial has taken so long."""
        self.slowest[self.epochs] = max(self.slowest.get(self.epochs, 0.0), seconds)

    def has_time(self, trials: int = 1, factor: float = 1.0) -> bool:
        """Whether so many trials, each `factor` times as long as the slowest one, end before the deadline."""
        measured = self.slowest.get(self.epochs)
        trial = self.expected(self.epochs) if measured is None else measured
        return time.monotonic() + trials * factor * trial <= self.deadline
