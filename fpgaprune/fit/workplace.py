"""`Workplace`: where trials are done. `Here` does them in this process, one at a time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from fpgaprune.fit.job import Doing, Job, Outcome, flow_point, outcome_of
from fpgaprune.flow import Progress


class Workplace(Protocol):
    """Does trials, some at the same time."""

    def room(self) -> int:
        """How many more trials can be begun at once."""

    def begin(self, job: Job) -> None:
        """The trial has been begun; a trial that has ended before costs nothing."""

    def ended(self) -> list[tuple[Job, Outcome]]:
        """The trials that have ended since the last call, each with its outcome; waits for one if none has.

        Empty if none has been begun.
        """

    def outcome(self, job: Job) -> Outcome:
        """What the trial brought, begun now if it has not been; `ended` leaves it out."""

    def close(self) -> None:
        """No trial runs any more."""


@dataclass
class Here:
    """Does trials in this process.

    Attributes:
        progress: learns of the steps within a trial.
        do: does a trial.
    """

    progress: Progress
    do: Doing = flow_point
    _waiting: dict[str, Job] = field(default_factory=dict)

    def room(self) -> int:
        """One trial at a time."""
        return 0 if self._waiting else 1

    def begin(self, job: Job) -> None:
        """The trial waits until its outcome is asked for."""
        self._waiting[job.key] = job

    def ended(self) -> list[tuple[Job, Outcome]]:
        """The trials that waited, done now."""
        jobs, self._waiting = list(self._waiting.values()), {}
        return [(job, self.outcome(job)) for job in jobs]

    def outcome(self, job: Job) -> Outcome:
        """What the trial brought, done now."""
        self._waiting.pop(job.key, None)
        return outcome_of(job, self.progress, self.do)

    def close(self) -> None:
        """Nothing is left to end."""
