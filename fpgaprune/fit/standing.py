"""`Standing`: how far a search is."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from fpgaprune.fit.answer import FitPoint


class Standing(Struct, frozen=True):
    """How far a search is, after a trial.

    Attributes:
        trial: number of the trial that has just ended.
        said: what it brought, in words.
        running: number of trials that are running.
        best_trial: number of the best trial so far; None if no network was judged.
        best: its network.
        seconds_left: what is left of the time that was asked for; 0 if it is over.
    """

    trial: int
    said: str
    running: int
    best_trial: int | None
    best: FitPoint | None
    seconds_left: float

    def in_words(self) -> str:
        """What the trial brought, which trial is the best so far, and the time that is left."""
        best = "" if self.best_trial is None else f"; best so far: trial {self.best_trial}"
        minutes, seconds = divmod(round(self.seconds_left), 60)
        left = f"; {minutes} min {seconds:02} s left" if minutes else f"; {seconds} s left"
        return f"{self.said}{best}{left}"


# Learns how far a search is, after each trial.
Heard = Callable[[Standing], None]
