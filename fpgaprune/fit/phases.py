"""`Phases`: how to train, filters of a large network, the descent, and the neighbours of its best network."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from msgspec import structs

from fpgaprune.fit.budget import Deadline, Training
from fpgaprune.fit.descent import STEP, Descent, Evaluate
from fpgaprune.fit.estimates import Estimates
from fpgaprune.fit.knobs import Knobs
from fpgaprune.fit.limits import Sized
from fpgaprune.fit.log import SearchLog, seen_samples
from fpgaprune.fit.neighbours import FEWEST, Neighbourhood
from fpgaprune.fit.result import FitPoint
from fpgaprune.fit.trial import Candidate, Trial, TrialRunner
from fpgaprune.flow import Dataset, starting_model
from fpgaprune.layout import DesignLayout

# With so many bits rounding loses nothing.
_WIDE = 16
# Share of the time after which trials train for all epochs, and the share that the descent may take; the same if long
# trials come after it.
SHORT_TRIALS, _DESCENT = 0.5, 0.75
_SHORT_BEFORE_LONG, _DESCENT_BEFORE_LONG = 0.45, 0.65
# With time for fewer long trials the networks around the best one are trained as usual.
_FEWEST_LONG = 3
# With time for fewer whole trials than this, short ones take it.
_FEWEST_WHOLE = 2
# A network is trained again if it gets so many times the epochs, and if the time suffices for so many trials; so is the
# recipe tried, that of a large network if there is time for fewer.
_MORE, _FEWEST_AGAIN, _FEWEST_OF_LARGE = 2, 4, 3
# Short trials are left out if they take more than this share of the time of whole ones.
_HARDLY_SHORTER = 0.75
# The last training of a search is a long one, so it goes to a network that loses little with this likelihood.
_LIKELY_AT_LAST = 0.5
# Seconds that the choice of a network may take if its training takes less.
_CHOICE = 10.0
# The share that locking filters of a large network may take, and the step that is too small for it.
NARROW, _FINEST_NARROW = 0.25, 0.8
# The share of a search by which the tool that counts its answer may end late.
_LATE = 0.1
# File of the network of a run after dead channels were removed.
_SMALL = "removed.keras"


@dataclass
class Phases:
    """The phases of one search; `log` has every network that they train.

    Attributes:
        trials: makes and runs trials.
        estimates: estimates of networks that were not trained.
        log: the networks of the search, and its time.
        names: the knobs that may move.
        notes: sentences on what stopped a phase.
        training: how networks are trained; `first` chooses it.
        rates: knob to the loss for each halving of the size, at its last move in the descent.
    """

    trials: TrialRunner
    estimates: Estimates
    log: SearchLog
    names: Sequence[str]
    notes: list[str]
    training: Training = field(default_factory=lambda: Training(0, 0, 0))
    rates: dict[str, float] = field(default_factory=dict)
    _slowest: dict[int, float] = field(default_factory=dict, init=False)
    """Epochs to the seconds of the slowest trial."""

    def use(self, training: Training) -> None:
        """Train all networks from now on as `training` says."""
        self.training = training
        self.trials.training = training.settings

    def first(
        self, start: Knobs, ways: Sequence[Training], *, has_seen_samples: bool, parent: FitPoint | None = None
    ) -> FitPoint | None:
        """Choose how to train: the first way in which `start` loses little, else an untried or the best one.

        It is trained from the network of `parent`, or from the trained one. If the trained network has seen the
        validation samples, it is trained whole without them and with many bits: what it loses, all others may lose
        too. This network is returned then. A search that has a network and no time left only takes the first way.
        """
        self.use(ways[0])
        if len(ways) == 1 and not has_seen_samples:
            return None
        knobs = replace(start, weight_bits=_WIDE, activation_bits=_WIDE) if has_seen_samples else start
        trained: list[tuple[Training, FitPoint]] = []
        untried: Training | None = None
        for way in ways:
            self.use(way)
            deadline = self._deadline(1.0, way.whole if has_seen_samples else way.short)
            # A network that may be the answer needs a trial too, if what came before lost too much.
            trials = _FEWEST_WHOLE if trained else 1
            if (trained or self.log.points) and not deadline.has_time(trials):
                untried = way
                break
            point = self._evaluator(deadline)(knobs, self.estimates.best_layout(knobs), parent)
            if point is not None:
                trained.append((way, point))
                if self.log.ranking.margin(point) >= 0:
                    break
        if not trained:
            return None
        training, first = min(trained, key=lambda pair: pair[1].lost)
        self.use(untried or training)
        if not has_seen_samples:
            return None
        if first.lost <= 0:
            return first
        self.trials.limits = replace(self.trials.limits, retraining_loss=first.lost)
        self.log.change_limits(self.trials.limits)
        self.notes.append(seen_samples(self.trials.limits))
        if first.lost > self.trials.limits.max_loss_fraction:
            self.log.warn_of_samples(self.notes[-1])
        return structs.replace(first, loses_little=True)

    def narrow(
        self, start: Knobs, parent: FitPoint | None, ways: Sequence[Training], data: Dataset
    ) -> tuple[Knobs, FitPoint | None, Sequence[Training]]:
        """Lock filters of a large network first: what is left is trained in less time, so for more epochs.

        Half of the loss stays for what comes after it.

        Returns:
            Knobs and point of the narrow network, and the `ways` with the epochs that it can be trained for.
        """
        deadline, margin = self._deadline_from_now(NARROW, self.training.short), self.log.ranking.margin
        descent = Descent(["filters"], self.estimates, self._evaluator(deadline), deadline.has_time, margin)
        found = list(descent.run(start, parent, _FINEST_NARROW))
        self.notes += descent.notes
        kept = [pair for pair in found if margin(pair[1]) >= self.log.ranking.limits.max_loss_fraction / 2]
        if not kept:
            return start, parent, ways
        start, parent = min(kept, key=lambda pair: self.log.ranking.rank(pair[1]))
        small = starting_model(Path(parent.folder) / _SMALL, data)
        return start, parent, [way.of(data, small) for way in ways]

    def descend(self, start: Knobs, parent: FitPoint | None, *, is_short: bool = False) -> None:
        """Descend with short trials, then with whole ones from the best of these; the first one starts from `parent`.

        In a search that `is_short` the first trial is a move from `start`, which is trained only if all moves fail.

        As long as nothing keeps the limits, no network is worth a longer training and none has neighbours to try: short
        trials go on until the descent should end, and whole ones until the end. Whole ones also do where trials are too
        few for a search around the best network.
        """
        shares = (SHORT_TRIALS, _DESCENT)
        if self.training.long > self.training.whole:
            shares = (_SHORT_BEFORE_LONG, _DESCENT_BEFORE_LONG)
        short, whole = self.training.short, self.training.whole
        steps = [(short, shares[0], shares[1]), (whole, shares[1], 1.0)]
        if self.log.times.seconds(short) > _HARDLY_SHORTER * self.log.times.seconds(whole):
            steps = steps[1:]
        for epochs, share, most in steps:
            if self.log.points and not replace(self._deadline(1.0, epochs), moment=self.log.latest).has_time():
                break
            deadline, later = self._deadline(share, epochs), self._deadline(most, epochs)
            descent = Descent(
                self.names,
                self.estimates,
                self._evaluator(deadline),
                partial(self._has_time, deadline, later),
                self.log.ranking.margin,
                partial(self._prefetch, epochs),
                # What a short training loses says little of what a whole one will.
                self._is_hopeless if epochs == whole else lambda _: False,
                self._trains_again(parent, epochs),
                skips_start=is_short and parent is None,
            )
            found = list(descent.run(start, parent))
            self.notes += descent.notes
            self.rates.update(descent.rates)
            begun = [] if parent is None else [(start, parent)]
            kept = [pair for pair in (*begun, *found) if pair[1].loses_little]
            late = len(self.log.points) >= FEWEST and time.monotonic() > self.log.at(shares[1])
            if epochs == whole or not kept or late:
                break
            start, parent = min(kept, key=lambda pair: self.log.ranking.rank(pair[1]))

    def from_recipe(
        self, start: Knobs, parent: FitPoint | None, *, is_short: bool = False
    ) -> tuple[Knobs, FitPoint | None]:
        """Return the smallest network of the recipe for adders that loses little, and its point; else the arguments.

        The share of the locked units is bisected with whole trainings, each from the trained network: a network that
        learned its training samples by heart loses nothing with 97 % of its weights locked, and another one with 60 %.
        They take the place of the first moves of the descent, and are left out where powers of two may not be held,
        where the recipe is not much smaller or is slower, and where time is short. As soon as one loses little they may
        take all of the time; those of a large network may from the first, as it has no more than a few trials. A search
        that `is_short` tries the mildest only.
        """
        estimates, found = self.estimates, (start, parent)
        epochs = self.training.whole
        # In far fewer epochs than wanted a network does not learn powers of two.
        large = self.training.is_cut and 2 * epochs >= self.training.wanted_epochs
        deadline, latest = self._deadline(1.0 if large else SHORT_TRIALS, epochs), self._deadline(1.0, epochs)
        if (
            "hold" not in self.names
            or not start.leads_to(start.recipe)
            or not (is_short or deadline.has_time(_FEWEST_OF_LARGE if large else _FEWEST_AGAIN))
        ):
            return found
        layout = estimates.target_layout(start)
        left = [
            knobs
            for knobs in (start.recipes[:1] if is_short else start.recipes)
            if estimates.is_possible(knobs)
            and estimates.is_in_time(knobs)
            # A start that only a layout of each layer would make fit costs a short search too much time.
            and not ((not is_short or estimates.fits_by_one_rule(start)) and estimates.is_slower(knobs, start))
            and estimates.size(layout, knobs) <= STEP * estimates.size(layout, start)
        ]
        # The first one is at a third: with a small limit most networks are not half so small as the smallest.
        at = len(left) // 3
        while left and (deadline if found[0] == start else latest).has_time():
            # From the trained network: from eight to four bits at once, the last good one is no better a start.
            point = self._evaluator(deadline)(left[at], estimates.best_layout(left[at]), None)
            if point is not None and point.loses_little:
                found, left = (left[at], point), left[at + 1 :]
                at = len(left) // (4 if large else 2)  # a failure of a large one takes minutes
            else:
                left = left[:at]
                at = len(left) // 2
        return found

    def search_neighbours(self) -> None:
        """Train neighbours of the best network, as many at a time as can run, while one promises more.

        They are trained long if there is time for a few long trials, else as usual.
        """
        deadline = self._deadline(1.0, self.training.long)
        if not deadline.has_time(_FEWEST_LONG):
            deadline = self._deadline(1.0, self.training.whole)
        executor, neighbourhood = self.trials.executor, self._neighbourhood(deadline.epochs)
        began: dict[str, float] = {}
        suggested: set[Knobs] = set()
        while True:
            while (
                executor.free() > 0
                and deadline.has_time()
                and (found := neighbourhood.next(list(self.log.points.values()), suggested, until=self._choice()))
            ):
                knobs, parent = found
                suggested.add(knobs)
                trial = self._trial(knobs, self.estimates.best_layout(knobs), deadline.epochs, parent)
                self.log.begin(trial)
                began[trial.key] = time.monotonic()
                executor.submit(trial)
            if not began and executor.free() > 0:
                return
            for trial, outcome in executor.completed():
                # Trials that the descent prefetched end here too.
                seconds = time.monotonic() - began.pop(trial.key, time.monotonic())
                if trial.knobs in suggested:
                    deadline.record(seconds)
                self.trials.note(trial, outcome)
                self.log.end(trial, outcome, len(began), seconds)

    def unfitting(self, start: Knobs) -> Candidate | None:
        """Return the network `start`, untried, if it fits by its estimate and no network of the search does; else None.

        A search with time for nothing else has only measured a network of many bits.
        """
        points, ranking = list(self.log.points.values()), self.log.ranking
        design = self.estimates.design(start)
        if design is None or any(point.fits or point.knobs == start for point in points):
            return None
        layout = self.estimates.best_layout(start)
        if layout.share > ranking.limits.share or not ranking.keeps_time(layout):
            return None
        parent = min(points, key=ranking.rank)
        return Candidate.untried(start, design, self.training.starts_from(parent, start, self.training.long))

    def untried(self, trained: Sequence[FitPoint], shift: float) -> Candidate | None:
        """Suggest a network smaller than the best one, and larger than those that lost too much when `trained` whole.

        It is likely to lose little, by the losses of all of them, if those of the search are raised by `shift`. None
        if there is no such network.
        """
        known, worse = {point.knobs for point in trained}, self.log.ranking.if_worse
        points = [worse(point, shift) for point in self.log.points.values() if point.knobs not in known]
        above = [point.knobs for point in trained if not point.loses_little]
        neighbourhood = replace(self._neighbourhood(self.training.long), likely=_LIKELY_AT_LAST)
        found = neighbourhood.next([*points, *trained], above=above, until=self._choice())
        design = None if found is None else self.estimates.design(found[0])
        if found is None or design is None:
            return None
        knobs, parent = found
        return Candidate.untried(knobs, design, self.training.starts_from(parent, knobs, self.training.long))

    def final_epochs(self, samples: float, first: bool) -> int | None:
        """Return the most epochs of a final run that ends in the time left, on `samples` times the samples of a trial.

        The `first` one leaves time for a second one if it can. None if none ends in the time left.
        """
        left = self.log.seconds_left - self.log.counting()
        second = self.log.final()[1] if first else 0.0
        for seconds in (left - second, left):
            for epochs in self.training.final_epochs():
                if self.log.times.seconds(epochs, samples) <= seconds:
                    return epochs
        return None

    def late_epochs(self, samples: float, candidate: Candidate) -> int:
        """Return the epochs of a final run of `candidate` that begins too late, on `samples` times its trial's samples.

        0 if its trial had all samples: the network of the trial is the answer then, as few epochs at a high rate may
        lose what it learned.
        """
        asked = self.training.keeps_epochs or self.trials.has_own_loop
        if samples == 1 and candidate.point is not None and not asked:
            return 0
        late = list(self.training.late_epochs())
        ends = (epochs for epochs in late if self.log.times.seconds(epochs, samples) <= self.log.seconds_left)
        return next(ends, late[-1])

    def has_time_for_two(self) -> bool:
        """Tell whether two final runs with the fewest epochs end in the time left."""
        return 2 * self.log.final()[1] <= self.log.seconds_left

    def has_time_to_count(self, samples: float, layout: Sized, epochs: int) -> bool:
        """Tell whether a tool counts what `layout` takes after a final run of `epochs` on `samples` times the samples.

        It may end a tenth of the search late. Where nobody knows how long a tool takes, it has time.
        """
        times, allowed = self.log.times, _LATE * 60 * self.log.ranking.limits.minutes
        counting = times.counting_seconds(self.trials.route.counting_seconds(layout))
        return not counting or times.seconds(epochs, samples) + counting <= self.log.seconds_left + allowed

    def _deadline(self, share: float, epochs: int) -> Deadline:
        return Deadline(self.log.at(share), epochs, self._slowest, self.log.times.seconds)

    def _deadline_from_now(self, share: float, epochs: int) -> Deadline:
        """Set a deadline: `share` of the whole search time, from now."""
        until = time.monotonic() + self.log.at(share) - self.log.at(0.0)
        return Deadline(min(until, self.log.at(1.0)), epochs, self._slowest, self.log.times.seconds)

    def _choice(self) -> float:
        """Return until when the next network is chosen: no longer than it trains."""
        return time.monotonic() + max([_CHOICE, *self._slowest.values()])

    def _trains_again(self, parent: FitPoint | None, epochs: int) -> bool:
        """Tell whether the network of `parent` is trained again, for many more epochs, before others start from it.

        Not if whole trainings start anew, and not if the time suffices for a few trials only.
        """
        if parent is None:
            return True
        if self.training.restarts and epochs == self.training.whole:
            return False
        trial = max(self._slowest.values(), default=0.0)
        return epochs >= _MORE * parent.epochs and time.monotonic() + _FEWEST_AGAIN * trial <= self.log.at(1.0)

    def _has_time(self, deadline: Deadline, later: Deadline) -> bool:
        """Tell whether the descent goes on: until `deadline`, or until `later` with no good network or few trials.

        Without time for whole trials after them, short ones go on until the end.
        """
        points = self.log.points.values()
        early = len(points) < FEWEST or not any(point.meets_limits for point in points)
        if deadline.has_time() or (early and later.has_time()):
            return True
        rest = self._deadline(1.0, self.training.whole)
        return not rest.has_time(_FEWEST_WHOLE) and self._deadline(1.0, deadline.epochs).has_time()

    def _neighbourhood(self, epochs: int) -> Neighbourhood:
        ranking, whole = self.log.ranking, self.training.whole
        return Neighbourhood(self.names, self.estimates, ranking, whole, epochs, self.estimates.layer_sensitivity)

    def _is_hopeless(self, knobs: Knobs) -> bool:
        return self._neighbourhood(self.training.whole).is_hopeless(list(self.log.points.values()), knobs)

    def _prefetch(self, epochs: int, moves: Sequence[Knobs], parent: FitPoint | None) -> None:
        """Let free workers begin what the descent may evaluate next; a single process waits until it is asked."""
        executor = self.trials.executor
        if executor.concurrent:
            for knobs in moves[: max(executor.free(), 0)]:
                executor.submit(self._trial(knobs, self.estimates.best_layout(knobs), epochs, parent))

    def _trial(self, knobs: Knobs, layout: DesignLayout, epochs: int, parent: FitPoint | None) -> Trial:
        return self.trials.trial(knobs, layout, epochs, self.training.starts_from(parent, knobs, epochs))

    def _evaluator(self, deadline: Deadline) -> Evaluate:
        def evaluate(knobs: Knobs, layout: DesignLayout, parent: FitPoint | None) -> FitPoint | None:
            trial = self._trial(knobs, layout, deadline.epochs, parent)
            self.log.begin(trial)
            began = time.monotonic()
            point = self.trials.evaluate(trial)
            deadline.record(time.monotonic() - began)
            self.log.end(trial, point or self.trials.impossible[trial.knobs])
            return point

        return evaluate
