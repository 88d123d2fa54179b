"""`SearchLog`: every network that a search has judged, and what is told of it after each trial."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from msgspec import structs

from fpgaprune.fit.answer import FitPoint
from fpgaprune.fit.doubts import few_samples
from fpgaprune.fit.job import Job, Outcome
from fpgaprune.fit.limits import Limits
from fpgaprune.fit.ranking import Ranking
from fpgaprune.fit.standing import Heard, Standing
from fpgaprune.flow import Progress

# The end of a search takes this share of its time at most: a search that tries nothing finds nothing.
_MOST_RESERVED = 0.4


@dataclass
class SearchLog:
    """The networks of a search and its time; it tells what each trial brought.

    Attributes:
        ranking: which network is better.
        told: learns how far the search is, in words.
        heard: learns how far the search is, as data.
        points: key of a trial to the network that it judged.
        ending: the seconds that it will take to train a network whole, by what its trial took.
    """

    ranking: Ranking
    told: Progress
    heard: Heard
    points: dict[str, FitPoint] = field(default_factory=dict)
    ending: Callable[[FitPoint], float] = lambda _: 0.0
    _numbers: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._started = time.monotonic()
        self._end_s = 0.0

    def at(self, share: float) -> float:
        """The moment at which `share` of the search is over; it leaves time to train the best network whole."""
        whole = 60.0 * self.ranking.limits.minutes
        return self._started + share * (whole - min(self._end_s, _MOST_RESERVED * whole))

    @property
    def seconds_left(self) -> float:
        """What is left of the time that was asked for."""
        return max(self._started + 60.0 * self.ranking.limits.minutes - time.monotonic(), 0.0)

    def beyond(self) -> str | None:
        """A sentence if the best network cannot be trained whole in the time that is left; None if it can."""
        late = self._end_s - self.seconds_left
        if late < 1.0:
            return None
        return (
            f"to train the best network whole takes about {self._end_s:.0f} s, {late:.0f} s more than are left of "
            f"{self.ranking.limits.minutes:g} min"
        )

    def judge_by(self, limits: Limits) -> None:
        """These limits hold from now on, for what was judged before, too."""
        self.ranking = replace(self.ranking, limits=limits)
        for key, point in self.points.items():
            room = limits.room(point.lost, point.lost_error, searching=True)
            self.points[key] = structs.replace(point, loses_little=room >= 0)

    def warn(self, doubt: str) -> None:
        """Tells at once what the samples cannot tell."""
        self.told.stage("samples", "warning", doubt)

    def begin(self, job: Job) -> None:
        """The trial is running, unless a phase before had its network judged."""
        if job.key not in self.points:
            self.told.stage(self._name(job), "running")

    def end(self, job: Job, outcome: Outcome, running: int = 0, seconds: float | None = None) -> None:
        """Tells what a trial brought, which is the best so far, and how much time is left; once for each network."""
        if job.key in self.points:
            return
        if not isinstance(outcome, str):
            if not self.points and (doubt := few_samples(outcome, self.ranking.limits)):
                self.warn(doubt)
            self.points[job.key] = outcome
            self._end_s = self.ending(outcome)
        key = min(self.points, key=lambda key: self.ranking.rank(self.points[key]), default=None)
        name = self._name(job)
        standing = Standing(
            self._numbers[job.key],
            f"{job.knobs}: {outcome}" if isinstance(outcome, str) else outcome.in_words(),
            running,
            None if key is None else self._numbers.setdefault(key, len(self._numbers) + 1),
            None if key is None else self.points[key],
            self.seconds_left,
        )
        self.told.stage(name, "skipped" if isinstance(outcome, str) else "done", standing.in_words(), seconds)
        self.heard(standing)

    def _name(self, job: Job) -> str:
        return f"trial {self._numbers.setdefault(job.key, len(self._numbers) + 1)}"
