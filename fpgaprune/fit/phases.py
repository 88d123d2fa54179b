"""`Phases`: a search goes down: how to train, filters of a large network, the descent, and what is around its end."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from msgspec import structs

from fpgaprune.fit.answer import FitPoint
from fpgaprune.fit.candidate import Candidate
from fpgaprune.fit.clock import Clock
from fpgaprune.fit.descent import Descent, Judge
from fpgaprune.fit.doubts import known_samples
from fpgaprune.fit.foresight import Foresight
from fpgaprune.fit.job import Job
from fpgaprune.fit.knobs import Knobs
from fpgaprune.fit.log import SearchLog
from fpgaprune.fit.outlook import FEWEST, Outlook
from fpgaprune.fit.training import Training
from fpgaprune.fit.trial import Trials
from fpgaprune.fit.workers import Workers
from fpgaprune.flow import Dataset, starting_model
from fpgaprune.layout import DesignLayout, joined

# With so many bits rounding loses nothing.
_WIDE = 16
# Share of the time after which trials train for all epochs, and the share that the descent may take; with long trials
# behind it; with a study.
_ROUGH, _DESCENT = 0.5, 0.75
_ROUGH_BEFORE_LONG, _DESCENT_BEFORE_LONG = 0.45, 0.65
_ROUGH_BEFORE_STUDY, _DESCENT_BEFORE_STUDY = 0.3, 0.5
# With time for fewer long trials the networks around the best one are trained as usual.
_FEWEST_LONG = 3
# With time for fewer whole trials than that, short ones take it.
_FEWEST_WHOLE = 2
# A network is trained again if it gets so many times the epochs, and if the time suffices for so many trials.
_MORE, _FEWEST_AGAIN = 2, 4
# The last training of a search is a long one, so it goes to a network that loses little with this likelihood.
_LIKELY_AT_LAST = 0.5
# The share that locking filters of a large network may take, and the step that is too small for it.
_NARROW, _FINEST_NARROW = 0.25, 0.8
# The network of a run without the channels that its locks end.
_SMALL = "removed.keras"


@dataclass
class Phases:
    """The phases of one search; `log` has every network that they judge.

    Attributes:
        trials: trains networks.
        foresight: prices.
        log: the networks of the search, and its time.
        names: the knobs that may be turned.
        notes: sentences on what stopped a phase.
        training: how networks are trained; `first` chooses it.
        rates: knob to the loss for each halving of the price, the last time that the descent turned it.
    """

    trials: Trials
    foresight: Foresight
    log: SearchLog
    names: Sequence[str]
    notes: list[str]
    training: Training = field(default_factory=lambda: Training(0, 0, 0))
    rates: dict[str, float] = field(default_factory=dict)
    _slowest: dict[int, float] = field(default_factory=dict, init=False)
    """Epochs to the seconds of the slowest trial."""

    def first(
        self, start: Knobs, ways: Sequence[Training], *, remembers: bool, good: FitPoint | None = None
    ) -> FitPoint | None:
        """Chooses how to train: the first way in which the network `start` loses little, else the best one.

        It is trained from the network of `good`, or from the trained one. If the trained network `remembers` the
        samples that judge, it is trained whole with many bits and without them: what it loses, all others may lose too.
        This network is returned then.
        """
        self.training = ways[0]
        if len(ways) == 1 and not remembers:
            return None
        knobs = replace(start, weight_bits=_WIDE, activation_bits=_WIDE) if remembers else start
        document, made = self.trials.document, []
        for way in ways:
            self.trials.document = joined(way.settings, document)
            clock = self._clock(1.0, way.whole if remembers else way.short)
            point = self._judge(clock)(knobs, self.foresight.fastest(knobs), good)
            if point is not None:
                made.append((way, point))
                if self.log.ranking.room(point) >= 0:
                    break
        if not made:
            self.training = ways[-1]
            return None
        self.training, first = min(made, key=lambda pair: pair[1].lost)
        self.trials.document = joined(self.training.settings, document)
        if not remembers:
            return None
        if first.lost <= 0:
            return first
        self.trials.limits = replace(self.trials.limits, forgotten=first.lost)
        self.log.judge_by(self.trials.limits)
        self.notes.append(known_samples(self.trials.limits))
        if first.lost > self.trials.limits.most_lost:
            self.log.warn(self.notes[-1])
        return structs.replace(first, loses_little=True)

    def narrow(
        self, start: Knobs, good: FitPoint | None, ways: Sequence[Training], data: Dataset
    ) -> tuple[Knobs, FitPoint | None, Sequence[Training]]:
        """A large network loses filters first: what is left is trained in less time, so for more epochs.

        Half of the loss stays for what comes behind it. The third that is returned are the `ways` with these epochs.
        """
        clock, room = self._clock_from_now(_NARROW, self.training.short), self.log.ranking.room
        descent = Descent(["filters"], self.foresight, self._judge(clock), clock.has_time, room)
        found = list(descent.run(start, good, _FINEST_NARROW))
        self.notes += descent.notes
        kept = [pair for pair in found if room(pair[1]) >= self.log.ranking.limits.most_lost / 2]
        if not kept:
            return start, good, ways
        start, good = min(kept, key=lambda pair: self.log.ranking.rank(pair[1]))
        small = starting_model(Path(good.folder) / _SMALL, data)
        return start, good, [way.of(data, small) for way in ways]

    def descend(self, start: Knobs, good: FitPoint | None, *, before_study: bool) -> None:
        """Points of short trials, then of whole ones from the best of these on; the first one starts from `good`.

        As long as nothing keeps to the limits, there is nothing to train for longer or to look around: short trials go
        on until the descent should end, and whole ones until the end.
        """
        shares = (_ROUGH, _DESCENT)
        if before_study:
            shares = (_ROUGH_BEFORE_STUDY, _DESCENT_BEFORE_STUDY)
        elif self.training.long > self.training.whole:
            shares = (_ROUGH_BEFORE_LONG, _DESCENT_BEFORE_LONG)
        short, epochs = self.training.short, self.training.whole
        for passes, share, most in ((short, shares[0], shares[1]), (epochs, shares[1], 1.0)):
            if self.log.points and not replace(self._clock(1.0, passes), deadline=self.log.latest).has_time():
                break
            clock, later = self._clock(share, passes), self._clock(shares[1] if before_study else most, passes)
            descent = Descent(
                self.names,
                self.foresight,
                self._judge(clock),
                partial(self._goes_on, clock, later),
                self.log.ranking.room,
                partial(self._begin, passes),
                # What a short training loses says little of what a whole one will.
                self._is_hopeless if passes == epochs else lambda _: False,
                self._trains_again(good, passes),
            )
            found = list(descent.run(start, good))
            self.notes += descent.notes
            self.rates.update(descent.rates)
            kept = [pair for pair in found if pair[1].loses_little]
            if passes == epochs or not kept or time.monotonic() > self.log.at(shares[1]):
                break
            start, good = min(kept, key=lambda pair: self.log.ranking.rank(pair[1]))

    def look_around(self) -> None:
        """Trials of the networks around the best one, as long as one promises more: long ones, if there is time."""
        training = self.training
        longer = training.long / max(training.whole, 1)
        usual = self._clock(1.0, training.whole)
        clock = self._clock(1.0, training.long) if usual.has_time(_FEWEST_LONG, longer) else usual
        judge, outlook = self._judge(clock), self._outlook(clock.epochs)
        refused: set[Knobs] = set()
        while clock.has_time() and (found := outlook.next(list(self.log.points.values()), refused)):
            knobs, good = found
            if judge(knobs, self.foresight.fastest(knobs), good) is None:
                refused.add(knobs)

    def milder(self, refuted: Sequence[FitPoint], shift: float) -> Candidate | None:
        """A network between the best one and the `refuted` ones, which lost too much when they were trained whole.

        It is likely to lose little, by what all of them lost; those of the search would lose `shift` more. None if
        there is no such network.
        """
        known, worse = {point.knobs for point in refuted}, self.log.ranking.if_worse
        points = [worse(point, shift) for point in self.log.points.values() if point.knobs not in known]
        above = [Knobs.of(point.settings) for point in refuted]
        outlook = replace(self._outlook(self.training.long), likely=_LIKELY_AT_LAST)
        found = outlook.next([*points, *refuted], above=above)
        design = None if found is None else self.foresight.design(found[0])
        if found is None or design is None:
            return None
        knobs, good = found
        return Candidate.untried(knobs, design, self.training.starts_from(good, knobs, self.training.long))

    def final_epochs(self, samples: float, first: bool) -> int | None:
        """The most epochs of a final run that ends in the time that is left, on `samples` times those of a trial.

        The `first` one leaves time for a second one if it can, and has the fewest epochs if there is no time at all.
        """
        left = self.log.seconds_left
        second = self.log.final()[1] if first else 0.0
        for room in (left - second, left):
            for epochs in self.training.final_epochs():
                if self.log.times.seconds(epochs, samples) <= room:
                    return epochs
        return self.training.whole if first else None

    def _clock(self, share: float, epochs: int) -> Clock:
        return Clock(self.log.at(share), epochs, self._slowest, self.log.times.seconds)

    def _clock_from_now(self, share: float, epochs: int) -> Clock:
        """A clock for `share` of the time from now on."""
        until = time.monotonic() + self.log.at(share) - self.log.at(0.0)
        return Clock(min(until, self.log.at(1.0)), epochs, self._slowest, self.log.times.seconds)

    def _trains_again(self, good: FitPoint | None, epochs: int) -> bool:
        """Whether the network of `good` is trained again before others go on from it: for many more epochs.

        Not if none goes on from what it would be, and not if the time suffices for a few trials only.
        """
        if good is None:
            return True
        if self.training.anew and epochs == self.training.whole:
            return False
        trial = max(self._slowest.values(), default=0.0)
        return epochs >= _MORE * good.epochs and time.monotonic() + _FEWEST_AGAIN * trial <= self.log.at(1.0)

    def _goes_on(self, clock: Clock, later: Clock) -> bool:
        """Whether the descent goes on: until `clock`, or `later` where nothing is good or too few say anything.

        Without time for whole trials behind them, short ones go on until the end.
        """
        points = self.log.points.values()
        early = len(points) < FEWEST or not any(point.meets_limits for point in points)
        if clock.has_time() or (early and later.has_time()):
            return True
        rest = self._clock(1.0, self.training.whole)
        return not rest.has_time(_FEWEST_WHOLE) and self._clock(1.0, clock.epochs).has_time()

    def _outlook(self, epochs: int) -> Outlook:
        ranking, whole = self.log.ranking, self.training.whole
        return Outlook(self.names, self.foresight, ranking, whole, epochs, self.foresight.single_layers)

    def _is_hopeless(self, knobs: Knobs) -> bool:
        return self._outlook(self.training.whole).is_hopeless(list(self.log.points.values()), knobs)

    def _begin(self, epochs: int, knobs: Sequence[Knobs], good: FitPoint) -> None:
        """Workers begin what the descent may ask for next; this process waits until it is asked."""
        if isinstance(self.trials.place, Workers):
            for one in knobs[: max(self.trials.place.room(), 0)]:
                self.trials.place.begin(self._job(one, self.foresight.fastest(one), epochs, good))

    def _job(self, knobs: Knobs, laid: DesignLayout, epochs: int, good: FitPoint | None) -> Job:
        return self.trials.job(knobs, laid, epochs, self.training.starts_from(good, knobs, epochs))

    def _judge(self, clock: Clock) -> Judge:
        def judge(knobs: Knobs, laid: DesignLayout, good: FitPoint | None) -> FitPoint | None:
            job = self._job(knobs, laid, clock.epochs, good)
            self.log.begin(job)
            began = time.monotonic()
            point = self.trials.judge(job)
            clock.took(time.monotonic() - began)
            self.log.end(job, point or self.trials.impossible[job.knobs])
            return point

        return judge
