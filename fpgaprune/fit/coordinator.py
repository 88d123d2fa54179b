"""`Coordinator`: asks the study for knobs, has them tried rung by rung, and tells the study what they brought."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from fpgaprune.fit.answer import FitPoint
from fpgaprune.fit.job import Job, Outcome, kept_outcome
from fpgaprune.fit.knobs import Knobs
from fpgaprune.fit.rungs import Rungs
from fpgaprune.fit.study import Study, Suggested
from fpgaprune.fit.workplace import Workplace
from fpgaprune.layout import DesignLayout

# After so many suggestions in a row of which none had to be trained, nothing new is to be expected.
_NOTHING_NEW = 200


class Prices(Protocol):
    """Knows what a network takes before it is trained."""

    def is_possible(self, knobs: Knobs) -> bool:
        """Whether the network can have these knobs."""

    def fastest(self, knobs: Knobs) -> DesignLayout:
        """The best layout of these knobs."""


@dataclass
class Coordinator:
    """Does the trials that a study suggests, as many at a time as `place` has room for.

    A killed search goes on where it was: what the study had asked for is begun again, and what had ended is only read.

    Attributes:
        study: suggests knobs.
        place: does trials.
        prices: prices.
        job: the trial of some knobs in a layout, for some epochs, from the network of a point or from the trained one.
        rungs: ends hopeless trials.
        epochs: of a short training and of a whole one.
        recall: the point of a trial that an earlier search has done; None if it is gone.
        goes_on: whether another trial may begin, when so many were suggested.
        heard: learns of each trial that has ended: its job, what it brought, how many are running, its seconds.
        points: key of a trial to the network that was judged: at first those of the descent.
    """

    study: Study
    place: Workplace
    prices: Prices
    job: Callable[[Knobs, DesignLayout, int, FitPoint | None], Job]
    rungs: Rungs
    epochs: tuple[int, int]
    recall: Callable[[str], FitPoint | None]
    goes_on: Callable[[int], bool]
    heard: Callable[[Job, Outcome, int, float], None] = lambda *_: None
    points: dict[str, FitPoint] = field(default_factory=dict)
    _running: dict[str, list[Suggested]] = field(default_factory=dict)
    _made: dict[str, Callable[[int], Job]] = field(default_factory=dict)
    _began: dict[str, float] = field(default_factory=dict)
    _nothing_new: int = 0

    @property
    def is_exhausted(self) -> bool:
        """Whether nothing new is to be expected."""
        return self._nothing_new >= _NOTHING_NEW

    def run(self) -> None:
        """No trial is left; `points` has every network that was judged."""
        for key, point in self.points.items():
            self.study.know(Knobs.of(point.settings), point, key)
        for key in self.study.ended_keys():
            found = self.points.get(key) or self.recall(key)
            if found is not None:
                self.points[key] = found
        for asked in self.study.unfinished():
            self._begin(asked)
        while True:
            while self.place.room() > 0 and not self.is_exhausted and self.goes_on(self.study.asked):
                self._begin(self.study.ask())
            ended = self.place.ended()
            for job, outcome in ended:
                self._end(job, outcome)
            if not ended and not self._running:
                return

    def _begin(self, asked: Suggested) -> None:
        """The trial is on the first rung, or has ended by its price."""
        self._nothing_new += 1
        if not self.prices.is_possible(asked.knobs):
            self.study.refuse(asked, "the network cannot have so few free weights")
            return
        laid, good = self.prices.fastest(asked.knobs), self._nearest(asked)

        def make(epochs: int) -> Job:
            return self.job(asked.knobs, laid, epochs, good)

        short = make(self.epochs[0])
        if kept_outcome(short) is None:
            reason = self.rungs.hopeless(laid, list(self.points.values()))
            if reason is not None:
                self.study.prune(asked, laid, reason)
                return
            self._nothing_new = 0
        self._go(make, self.epochs[0], [asked])

    def _nearest(self, asked: Suggested) -> FitPoint | None:
        """The smallest network of the descent that leads to the knobs of `asked`: its training starts there."""
        known = [self.points[key] for key in self.study.known_before(asked.number) if key in self.points]
        near = [one for one in known if one.loses_little and Knobs.of(one.settings).leads_to(asked.knobs)]
        return min(near, key=lambda point: point.share, default=None)

    def _go(self, make: Callable[[int], Job], epochs: int, asked: list[Suggested]) -> None:
        job = make(epochs)
        self._made[job.key] = make
        waiting = self._running.setdefault(job.key, [])
        if not waiting:
            self._began[job.key] = time.monotonic()
            self.place.begin(job)
        waiting += asked

    def _end(self, job: Job, outcome: Outcome) -> None:
        """The trial has ended, or goes on to the next rung."""
        asked = self._running.pop(job.key, [])
        now = time.monotonic()
        self.heard(job, outcome, len(self._running), now - self._began.pop(job.key, now))
        if isinstance(outcome, str):
            for one in asked:
                self.study.refuse(one, outcome)
            return
        self.points[job.key] = outcome
        if not asked:
            # The descent had begun it, and did not wait for it.
            self.study.know(Knobs.of(job.asked), outcome, job.key)
            return
        make = self._made[job.key]
        whole = outcome.epochs >= self.epochs[1]
        # What a killed search had promoted stays promoted.
        if not whole and (kept_outcome(make(self.epochs[1])) is not None or self._promotes(outcome)):
            self._go(make, self.epochs[1], asked)
            return
        for one in asked:
            self.study.tell(one, outcome, list(dict.fromkeys((make(self.epochs[0]).key, job.key))), whole)

    def _promotes(self, point: FitPoint) -> bool:
        known = list(self.points.values())
        return self.rungs.promotes(point, [one for one in known if one.epochs < self.epochs[1]], known)
