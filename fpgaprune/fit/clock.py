"""`Clock`: how much of the time of a search is left."""

from __future__ import annotations

import time
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Clock:
    """Says whether another trial will end in time.

    Attributes:
        deadline: a time of `time.monotonic`.
        epochs: of each trial.
        slowest: epochs to the seconds of the slowest trial; clocks may share it.
    """

    deadline: float
    epochs: int = 0
    slowest: dict[int, float] = field(default_factory=dict)

    def took(self, seconds: float) -> None:
        """A trial has taken so long."""
        self.slowest[self.epochs] = max(self.slowest.get(self.epochs, 0.0), seconds)

    def has_time(self, trials: int = 1, factor: float = 1.0) -> bool:
        """Whether so many trials, each `factor` times as long as the slowest one, end before the deadline."""
        return time.monotonic() + trials * factor * self.slowest.get(self.epochs, 0.0) <= self.deadline
