"""`Clock`: how much of the time of a search is left."""

from __future__ import annotations

import time


class Clock:
    """Says whether another trial will end in time."""

    def __init__(self, deadline: float) -> None:
        """A clock whose `deadline` is a time of `time.monotonic`."""
        self._deadline, self._longest = deadline, 0.0

    def took(self, seconds: float) -> None:
        """A trial has taken so long."""
        self._longest = max(self._longest, seconds)

    def has_time(self) -> bool:
        """Whether a trial that takes as long as the longest one ends before the deadline."""
        return time.monotonic() + self._longest <= self._deadline
