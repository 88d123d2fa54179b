"""`SearchLog`: every network of a search, its time, and what is reported after each trial."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from msgspec import Struct, structs

from fpgaprune.fit.budget import RunTimes
from fpgaprune.fit.limits import Limits, Ranking
from fpgaprune.fit.result import VALIDATION, FitPoint
from fpgaprune.fit.trial import Outcome, Trial
from fpgaprune.flow import Progress
from fpgaprune.measure import to_plain

# The final runs take this share of the time of a search at most: a search that tries nothing finds nothing.
_MOST_RESERVED = 0.3
# A search of fewer networks has hardly begun.
_FEW_NETWORKS = 5


class SearchStatus(Struct, frozen=True):
    """The state of a search after a trial.

    Attributes:
        trial: number of the trial that has just ended.
        message: its result, in words.
        running: number of trials that are running.
        best_trial: number of the best trial so far; None if no network was judged.
        best: its network.
        seconds_left: what is left of the time of the search; 0 if it is over.
        point: the network of this trial; None if there is none.
    """

    trial: int
    message: str
    running: int
    best_trial: int | None
    best: FitPoint | None
    seconds_left: float
    point: FitPoint | None = None

    def summary(self) -> str:
        """Return the result of the trial, the best trial so far, and the time that is left, in words."""
        best = "" if self.best_trial is None else f"; best so far: trial {self.best_trial}"
        minutes, seconds = divmod(round(self.seconds_left), 60)
        left = f"; {minutes} min {seconds:02} s left" if minutes else f"; {seconds} s left"
        return f"{self.message}{best}{left}"

    def to_json(self) -> dict[str, Any]:
        """Return the state as JSON data."""
        points = {"best": self.best, "point": self.point}
        return {**to_plain(self), **{key: None if one is None else one.to_json() for key, one in points.items()}}


# Learns of the state of a search after each trial.
OnTrial = Callable[[SearchStatus], None]


@dataclass
class SearchLog:
    """The networks of a search and its time; it reports the result of each trial.

    Attributes:
        ranking: which network is better.
        progress: learns of trials in words.
        on_trial: learns of the state of the search as data.
        points: key of a trial to the network that it judged.
        times: how long runs take, by what the trials took.
        counting: the seconds of the tool that counts what the best network takes.
        final: the seconds of the final run and of that tool: with all its epochs, and with the fewest.
    """

    ranking: Ranking
    progress: Progress
    on_trial: OnTrial
    points: dict[str, FitPoint] = field(default_factory=dict)
    times: RunTimes = field(default_factory=RunTimes)
    counting: Callable[[], float] = lambda: 0.0
    final: Callable[[], tuple[float, float]] = lambda: (0.0, 0.0)
    _numbers: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._started = time.monotonic()

    def at(self, share: float) -> float:
        """Return the moment at which `share` of the search is over.

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
        """Seconds left of the search's time."""
        return max(self._started + 60.0 * self.ranking.limits.minutes - time.monotonic(), 0.0)

    @property
    def seconds_passed(self) -> float:
        """What has passed of the time of the search, and beyond."""
        return time.monotonic() - self._started

    def warn_if_short(self, shortest: float) -> None:
        """Warn if the shortest search takes `shortest` seconds more than have passed, and that is too long."""
        minutes, least = self.ranking.limits.minutes, self.seconds_passed + shortest
        if least > 60 * minutes:
            self.progress.stage(
                "time",
                "warning",
                f"a search of this network takes about {least:.0f} s at least, and {minutes:g} min were asked for; it "
                "ends after one trial and one training on all samples",
            )

    def overrun(self, final: float) -> str | None:
        """Return a sentence if a final run of `final` seconds does not end in the time that is left; None if it can."""
        late = final - self.seconds_left
        if late < 1.0:
            return None
        return (
            f"the shortest training of the best network takes about {final:.0f} s, {late:.0f} s more than are left of "
            f"{self.ranking.limits.minutes:g} min"
        )

    def change_limits(self, limits: Limits) -> None:
        """Judge by these limits from now on, what was judged before too."""
        self.ranking = replace(self.ranking, limits=limits)
        for key, point in self.points.items():
            margin = limits.margin(point.lost, point.lost_error, searching=True)
            self.points[key] = structs.replace(point, loses_little=margin >= 0)

    def warn_of_samples(self, warning: str) -> None:
        """Warn of what the samples cannot tell."""
        self.progress.stage("samples", "warning", warning)

    def begin(self, trial: Trial) -> None:
        """Report that a trial is running, unless a phase before had its network judged."""
        if trial.key not in self.points:
            self.progress.stage(self._name(trial), "running")

    def end(self, trial: Trial, outcome: Outcome, running: int = 0, seconds: float | None = None) -> None:
        """Record and report the outcome of a trial, the best one so far and the time left; once for each network."""
        if trial.key in self.points:
            return
        if not isinstance(outcome, str):
            if not self.points and (warning := few_samples(outcome, self.ranking.limits)):
                self.warn_of_samples(warning)
            self.times.record(outcome)
            outcome = structs.replace(outcome, number=self._number(trial.key))
            self.points[trial.key] = outcome
        key = min(self.points, key=lambda key: self.ranking.rank(self.points[key]), default=None)
        status = SearchStatus(
            self._number(trial.key),
            f"{trial.knobs}: {outcome}" if isinstance(outcome, str) else outcome.summary(),
            running,
            None if key is None else self._number(key),
            None if key is None else self.points[key],
            self.seconds_left,
            None if isinstance(outcome, str) else outcome,
        )
        self.progress.stage(
            self._name(trial), "skipped" if isinstance(outcome, str) else "done", status.summary(), seconds
        )
        self.on_trial(status)

    def _name(self, trial: Trial) -> str:
        return f"trial {self._number(trial.key)}"

    def _number(self, key: str) -> int:
        return self._numbers.setdefault(key, len(self._numbers) + 1)


def few_samples(point: FitPoint, limits: Limits) -> str | None:
    """Return a sentence if the samples that judged `point` tell its loss less exactly than the limit needs.

    A loss that is below the limit by four standard errors keeps it all the same.
    """
    limit = limits.max_loss_fraction
    if not 0 < limit < point.lost_error or point.lost + 4 * point.lost_error < limit:
        return None
    key = "x_valid" if point.judged_on == VALIDATION else "x_test"
    return (
        f"{point.samples:,} {point.judged_on} samples tell a loss only to ± {100 * point.lost_error:.2f} %, and at "
        f"most {100 * limit:g} % may be lost: chance decides whether a network keeps this limit; "
        f"give more {key}"
    )


def few_networks(count: int, limits: Limits) -> str | None:
    """Return a sentence if the time sufficed for so few networks that a smaller one may well be found."""
    if count >= _FEW_NETWORKS:
        return None
    networks = "one network" if count == 1 else f"{count} networks"
    return f"{limits.minutes:g} min sufficed to try {networks}: with more --minutes, a smaller one may be found"


def seen_samples(limits: Limits) -> str:
    """Return a sentence: the trained network has seen the validation samples, so the search allows more loss."""
    return (
        "the trained network has seen the samples that judge this search: trained without them, it loses "
        f"{100 * limits.retraining_loss:.2f} % on them by itself, so the search allows so much more; give x_valid and "
        "y_valid that the network has not seen"
    )


def known_samples(limits: Limits) -> str:
    """Return a sentence: the trained network knows the validation samples better than others; no trial measured it."""
    return (
        "the trained network has seen the samples that judge this search, and there was no time to train it without "
        "them; because it knows them better than held-out ones, the search allows "
        f"{100 * limits.retraining_loss:.2f} % more; give more --minutes, or x_valid and y_valid that the network has "
        "not seen"
    )
