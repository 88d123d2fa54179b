"""`SearchLog`: every network that a search has judged, and what is told of it after each trial."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from msgspec import structs

from fpgaprune.fit.answer import FitPoint
from fpgaprune.fit.doubts import few_samples
from fpgaprune.fit.ending import RunTimes
from fpgaprune.fit.job import Job, Outcome
from fpgaprune.fit.limits import Limits
from fpgaprune.fit.ranking import Ranking
from fpgaprune.fit.standing import Heard, Standing
from fpgaprune.flow import Progress

# The end of a search takes this share of its time at most: a search that tries nothing finds nothing.
_MOST_RESERVED = 0.3


@dataclass
class SearchLog:
    """The networks of a search and its time; it tells what each trial brought.

    Attributes:
        ranking: which network is better.
        told: learns how far the search is, in words.
        heard: learns how far the search is, as data.
        points: key of a trial to the network that it judged.
        times: how long runs take, by what the trials took.
        final: the seconds of the final run: with all its epochs, and with the fewest.
    """

    ranking: Ranking
    told: Progress
    heard: Heard
    points: dict[str, FitPoint] = field(default_factory=dict)
    times: RunTimes = field(default_factory=RunTimes)
    final: Callable[[], tuple[float, float]] = lambda: (0.0, 0.0)
    _numbers: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._started = time.monotonic()

    def at(self, share: float) -> float:
        """The moment at which `share` of the search is over.

        It leaves time for the final run, and for a second one of the fewest epochs if the first breaks a limit.
        """
        whole = 60.0 * self.ranking.limits.minutes
        most, fewest = self.final()
        return self._started + share * (whole - max(min(most + fewest, _MOST_RESERVED * whole), fewest))

    @property
    def latest(self) -> float:
        """The moment at which a final run of the fewest epochs must begin."""
        return self._started + 60.0 * self.ranking.limits.minutes - self.final()[1]

    @property
    def seconds_left(self) -> float:
        """What is left of the time that was asked for."""
        return max(self._started + 60.0 * self.ranking.limits.minutes - time.monotonic(), 0.0)

    @property
    def seconds_passed(self) -> float:
        """What has passed of it, and beyond."""
        return time.monotonic() - self._started

    def warn_if_short(self, shortest: float) -> None:
        """Tells at once if the shortest search takes `shortest` seconds more than have passed, and that is too long."""
        minutes, least = self.ranking.limits.minutes, self.seconds_passed + shortest
        if least > 60 * minutes:
            self.told.stage(
                "time",
                "warning",
                f"a search of this network takes about {least:.0f} s at least, and {minutes:g} min were asked for; it "
                "ends as early as it can",
            )

    def beyond(self) -> str | None:
        """A sentence if no final run ends in the time that is left; None if one can."""
        final = self.final()[1]
        late = final - self.seconds_left
        if late < 1.0:
            return None
        return (
            f"the shortest training of the best network takes about {final:.0f} s, {late:.0f} s more than are left of "
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
            self.times.learn(outcome)
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
