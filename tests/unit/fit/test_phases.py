"""The last phase trains the neighbours of the best network for long, if there is time for some of them."""

import time
from contextlib import suppress
from types import SimpleNamespace
from typing import NamedTuple

import pytest
from msgspec import structs

from fpgaprune.fit import Knobs, LayerSensitivity, Limits, Phases, Ranking, RunTimes, Training
from fpgaprune.values import loss_text
from tests.unit.fit.made_up import LIMIT, MadeUp, laid_out, made

TOLERANCE = (0.6, 3, 3)
TRAINING = Training(1, 1, 3)
WHOLE = 4


class EnoughError(Exception):
    """One network is enough for the test."""


class Made(MadeUp):
    def layer_sensitivity(self, point, until):
        return LayerSensitivity({}, ())


NAMES = ("sparsity", "weight_bits", "activation_bits")


class Asked(NamedTuple):
    """A trial, which is its own key."""

    knobs: Knobs
    epochs: int

    @property
    def key(self):
        return self


class Trials:
    """Makes trials, and runs as many at a time as `slots`: their points are what `judge` says."""

    concurrent = False

    def __init__(self, judge, slots=1):
        self.judge, self.slots, self.running, self.impossible, self.executor = judge, slots, [], {}, self

    def trial(self, knobs, layout, epochs, parent):
        return Asked(knobs, epochs)

    def evaluate(self, trial):
        return self.note(trial, self.judge(trial))

    def note(self, trial, outcome):
        if isinstance(outcome, str):
            self.impossible[trial.knobs] = outcome
            return None
        return outcome

    def free(self):
        return self.slots - len(self.running)

    def submit(self, trial):
        self.running.append(trial)

    def completed(self):
        """The first one that was submitted ends first."""
        return [(trial := self.running.pop(0), self.judge(trial))] if self.running else []


def phases_of(judge, points, deadline, training=TRAINING):
    """Phases whose trials `judge` makes, as a function of knobs and epochs; the search ends at `deadline`."""
    trials = Trials(judge)
    ranking = Ranking(Limits(max_loss=loss_text(LIMIT), latency_us=10.0), 5.0)
    began = time.monotonic()
    log = SimpleNamespace(
        at=lambda share: began + share * (deadline - began),
        latest=deadline,
        times=RunTimes(),
        ranking=ranking,
        points=points,
        begin=lambda _: None,
        end=lambda *_: None,
    )
    return Phases(trials, Made(), log, NAMES, [], training)


def point(knobs):
    return made(knobs, MadeUp().best_layout(knobs), TOLERANCE)


@pytest.mark.parametrize(("seconds", "left", "epochs"), [(0.0, 1.0, 3), (1.0, 10.0, 3), (1.0, 8.0, 1)])
def test_neighbours_are_trained_for_long_where_there_is_time_for_three(seconds, left, epochs):
    asked = []
    tried = [Knobs("weight", sparsity, bits, 8) for sparsity in (0.0, 0.35, 0.5) for bits in (8, 6, 4)]

    def judge(job):
        asked.append(job[1])
        raise EnoughError

    phases = phases_of(judge, {knobs: point(knobs) for knobs in tried}, time.monotonic() + left)
    phases.log.times = SimpleNamespace(seconds=lambda epochs: seconds * epochs)
    with pytest.raises(EnoughError):
        phases.search_neighbours()
    assert asked == [epochs]


@pytest.mark.parametrize(("fits", "seconds", "trials"), [(True, 7, 7), (False, 7, 10), (True, 24, 3)])
def test_short_trials_go_on_past_their_share_as_long_as_they_say_too_little(fits, seconds, trials, monkeypatch):
    """Of 100 seconds they may take 50; 75 where nothing fits, or where too few have ended to look around."""
    now, asked, points = [0.0], [], {}
    monkeypatch.setattr(time, "monotonic", lambda: now[0])

    def judge(job):
        knobs, passes = job
        if passes == WHOLE:
            raise EnoughError
        asked.append(knobs)
        now[0] += seconds
        points[knobs] = structs.replace(point(knobs), fits=fits, loses_little=True)
        return points[knobs]

    phases = phases_of(judge, points, 100.0, Training(1, WHOLE, WHOLE))
    with pytest.raises(EnoughError):
        phases.descend(Knobs("weight"), None)
    assert len(asked) == trials


@pytest.mark.parametrize(("whole", "trials"), [(10, 7), (40, 14)])
def test_without_time_for_two_whole_trials_short_ones_go_on(whole, trials, monkeypatch):
    """Of 100 seconds short trials of 7 take 50; all of them where a whole one takes 40."""
    now, asked, points = [0.0], [], {}
    monkeypatch.setattr(time, "monotonic", lambda: now[0])

    def judge(job):
        knobs, passes = job
        if passes == WHOLE:
            raise EnoughError
        asked.append(knobs)
        now[0] += 7
        points[knobs] = structs.replace(point(knobs), loses_little=True, fits=True)
        return points[knobs]

    phases = phases_of(judge, points, 100.0, Training(1, WHOLE, WHOLE))
    phases.log.times = SimpleNamespace(seconds=lambda epochs: whole if epochs == WHOLE else 7)
    with suppress(EnoughError):
        phases.descend(Knobs("weight"), None)
    assert len(asked) == trials


@pytest.mark.parametrize(("short", "first"), [(7, 1), (8, WHOLE)])
def test_short_trials_that_are_hardly_shorter_than_whole_ones_are_left_out(short, first):
    asked = []

    def judge(job):
        asked.append(job.epochs)
        raise EnoughError

    phases = phases_of(judge, {}, time.monotonic() + 100, Training(1, WHOLE, WHOLE))
    phases.log.times = SimpleNamespace(seconds=lambda epochs: 10 if epochs == WHOLE else short)
    with pytest.raises(EnoughError):
        phases.descend(Knobs("weight"), None)
    assert asked == [first]


@pytest.mark.parametrize(("known", "latest", "trials"), [(True, 6.0, 0), (True, 8.0, 1), (False, 6.0, 1)])
def test_no_trial_begins_that_the_final_run_has_no_time_for(known, latest, trials):
    """A trial takes 7 seconds; one is made in any case if there is no network yet."""
    asked = []

    def judge(job):
        asked.append(job)
        raise EnoughError

    phases = phases_of(judge, {"first": point(Knobs("weight"))} if known else {}, time.monotonic() + 5)
    phases.log.latest = time.monotonic() + latest
    phases.log.times = SimpleNamespace(seconds=lambda epochs: 7)
    with suppress(EnoughError):
        phases.descend(Knobs("weight", weight_bits=6), None)
    assert len(asked) == trials


@pytest.mark.parametrize("most", [0.0, 0.6, 0.87, 0.95])
def test_the_descent_goes_on_from_the_smallest_network_of_the_recipe_that_loses_little(most):
    asked, points, start = [], {}, Knobs("weight")

    def judge(job):
        knobs, passes = job
        asked.append((knobs, passes))
        if passes != WHOLE:
            raise EnoughError
        little = knobs in start.recipes and knobs.sparsity <= most
        points[knobs] = structs.replace(point(knobs), loses_little=little, lost=0.0, epochs=passes)
        return points[knobs]

    phases = phases_of(judge, points, time.monotonic() + 100, Training(1, WHOLE, WHOLE))
    phases.names = ("hold", *NAMES)
    with pytest.raises(EnoughError):
        phases.descend(*phases.from_recipe(start, None))
    *recipes, (last, _) = asked
    assert len(recipes) <= 5
    found = [knobs for knobs, _ in recipes if knobs.sparsity <= most]
    if found:
        best = max(found, key=lambda knobs: knobs.sparsity)
        assert best.sparsity == most
        assert best.leads_to(last)
    else:
        assert last == start


@pytest.mark.parametrize(("most", "trials"), [(0.95, 3), (0.0, 2)])
def test_a_slow_bisection_goes_on_if_a_network_loses_little(most, trials, monkeypatch):
    """Of 100 seconds it may take 50, and all as soon as one network loses little; a trial takes 20."""
    now, asked = [0.0], []
    monkeypatch.setattr(time, "monotonic", lambda: now[0])

    def judge(job):
        asked.append(job.knobs.sparsity)
        now[0] += 20
        return structs.replace(point(job.knobs), loses_little=job.knobs.sparsity <= most)

    phases = phases_of(judge, {}, 100.0, Training(1, WHOLE, WHOLE))
    phases.names = ("hold", *NAMES)
    knobs, found = phases.from_recipe(Knobs("weight"), None)
    assert len(asked) == trials
    assert knobs.sparsity == (most if found else 0.0)


@pytest.mark.parametrize(
    ("most", "seconds", "wanted", "tried"),
    [
        (0.0, 20, WHOLE + 1, [0.8, 0.68, 0.6]),
        (0.87, 20, WHOLE + 1, [0.8, 0.87, 0.92, 0.9]),
        (0.95, 20, WHOLE + 1, [0.8, 0.87, 0.92, 0.94, 0.95]),
        (0.87, 30, 2 * WHOLE, [0.8, 0.87, 0.92]),
        # In less than half of the epochs powers of two are not learned; there is time for two.
        (0.87, 30, 2 * WHOLE + 1, []),
        (0.87, 34, WHOLE + 1, []),
    ],
)
def test_the_recipe_of_a_large_network_may_take_all_of_the_time_in_small_steps(
    most, seconds, wanted, tried, monkeypatch
):
    now, asked = [0.0], []
    monkeypatch.setattr(time, "monotonic", lambda: now[0])

    def judge(job):
        asked.append(job.knobs.sparsity)
        now[0] += seconds
        return structs.replace(point(job.knobs), loses_little=job.knobs.sparsity <= most)

    phases = phases_of(judge, {}, 100.0, Training(1, WHOLE, WHOLE, wanted_epochs=wanted))
    phases.log.times = SimpleNamespace(seconds=lambda epochs: seconds)
    phases.names = ("hold", *NAMES)
    knobs, _ = phases.from_recipe(Knobs("weight"), None)
    assert asked == tried
    assert knobs.sparsity == max([share for share in tried if share <= most], default=0.0)


def test_whole_trials_follow_late_short_ones_if_all_are_too_few_to_look_around(monkeypatch):
    """A bisection has found a network in 64 of 100 seconds; the short trial after it loses too much, and ends at 75."""
    now, asked, points = [0.0], [], {}
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    start = Knobs("weight").recipe

    def judge(job):
        asked.append(job.epochs)
        now[0] += 11
        points[job.knobs] = structs.replace(point(job.knobs), loses_little=job.epochs == WHOLE, fits=True)
        return points[job.knobs]

    phases = phases_of(judge, points, 100.0, Training(1, WHOLE, WHOLE, restarts=True))
    points[start] = structs.replace(point(start), lost=0.0, loses_little=True, fits=True, epochs=WHOLE)
    now[0] = 64.0
    phases.descend(start, points[start])
    assert asked == [1, WHOLE, WHOLE]


def test_where_powers_of_two_may_not_be_held_the_descent_begins_with_the_trained_network():
    def judge(job):
        assert job.knobs == Knobs("weight")
        raise EnoughError

    phases = phases_of(judge, {}, time.monotonic() + 100, Training(1, WHOLE, WHOLE))
    with pytest.raises(EnoughError):
        phases.descend(*phases.from_recipe(Knobs("weight"), None))


@pytest.mark.parametrize(("restarts", "seconds", "again"), [(True, 8, False), (False, 8, True), (False, 16, False)])
def test_what_short_trials_end_with_is_trained_whole_if_others_go_on_from_it_in_time(
    restarts, seconds, again, monkeypatch
):
    now, asked, points = [0.0], [], {}
    monkeypatch.setattr(time, "monotonic", lambda: now[0])

    def judge(job):
        knobs, passes = job
        asked.append((knobs, passes))
        now[0] += seconds
        points[knobs] = structs.replace(point(knobs), fits=True, epochs=passes)
        return points[knobs]

    phases = phases_of(judge, points, 100.0, Training(1, WHOLE, WHOLE, restarts=restarts))
    phases._is_hopeless = lambda _: False
    phases.descend(Knobs("weight"), None)
    short = {knobs for knobs, passes in asked if passes == 1}
    whole = [knobs for knobs, passes in asked if passes == WHOLE]
    assert whole
    assert bool(short & set(whole)) == again


def test_filters_get_their_share_of_the_time_however_long_the_first_trial_took(monkeypatch):
    now, asked = [40.0], []
    monkeypatch.setattr(time, "monotonic", lambda: now[0])

    def judge(job):
        asked.append(job[0].filters)
        now[0] += 10
        if job[0].filters:
            raise EnoughError
        return structs.replace(point(job[0]), fits=True, loses_little=True)

    phases = phases_of(judge, {}, 100.0)
    phases.log.at = lambda share: 100.0 * share
    with pytest.raises(EnoughError):
        phases.narrow(Knobs("weight"), None, [TRAINING], None)
    assert asked[0] == 0.0


def test_what_has_been_trained_for_about_as_many_epochs_is_not_trained_again():
    phases = phases_of(None, {}, time.monotonic() + 100, Training(2, 8, 8))
    good = structs.replace(point(Knobs("weight")), epochs=2)
    assert [phases._trains_again(good, epochs) for epochs in (2, 3, 4, 8)] == [False, False, True, True]
    assert phases._trains_again(None, 2)


def test_a_milder_network_lies_between_the_refuted_one_and_the_best_other_one():
    tried = [Knobs("weight", sparsity, bits, 8) for sparsity in (0.0, 0.35, 0.6) for bits in (8, 6)]
    points = {knobs: structs.replace(point(knobs), loses_little=True, fits=True) for knobs in tried}
    phases = phases_of(None, points, time.monotonic() + 100)
    phases.estimates.design = lambda knobs: knobs
    small, other = sorted(points.values(), key=lambda point: point.share)[:2]
    refuted = structs.replace(small, epochs=TRAINING.long, lost=1.1 * LIMIT, loses_little=False)
    found = phases.untried([refuted], 0.0)
    assert small.share < MadeUp().best_layout(found.design).share < other.share
    assert found.parent is None or found.parent.loses_little
    # What is refuted counts: the networks between are likely to lose too much if all of them lost so much.
    bad = [structs.replace(one, epochs=TRAINING.long, lost=9 * LIMIT, loses_little=False) for one in points.values()]
    assert phases.untried(bad, 0.0) is None
    assert phases.untried([refuted], 9 * LIMIT) is None


@pytest.mark.parametrize(
    ("fits", "share", "tried", "found"),
    [
        (False, 0.5, False, True),
        (True, 0.5, False, False),
        (False, 0.9, False, False),
        (False, 0.5, True, False),
    ],
)
def test_where_no_network_of_the_search_fits_the_one_it_starts_from_may(fits, share, tried, found):
    start, wide = Knobs("weight"), Knobs("weight", weight_bits=16, activation_bits=16)
    points = {"wide": structs.replace(point(wide), fits=fits)}
    if tried:
        points["start"] = structs.replace(point(start), fits=False)
    phases = phases_of(None, points, time.monotonic())
    layout = laid_out("all", {}, share, 10, 10)
    phases.estimates = SimpleNamespace(design=lambda knobs: knobs, best_layout=lambda knobs: layout)
    candidate = phases.unfitting(start)
    assert (candidate is not None) == found
    assert candidate is None or (candidate.knobs, candidate.design, candidate.point) == (start, start, None)


@pytest.mark.parametrize(("left", "ways"), [(100.0, 2), (19.0, 1)])
def test_another_way_to_train_is_tried_if_the_network_itself_can_be_too(left, ways, monkeypatch):
    """Each trial takes ten seconds."""
    now, asked = [0.0], []
    monkeypatch.setattr(time, "monotonic", lambda: now[0])

    def judge(job):
        asked.append(job)
        now[0] += 10
        return structs.replace(point(job[0]), lost=1.0)

    phases = phases_of(judge, {}, 10 + left)
    phases.log.change_limits, phases.log.warn_of_samples = (lambda limits: None), (lambda text: None)
    phases.trials.limits = phases.log.ranking.limits
    both = (Training(1, WHOLE, WHOLE), Training(1, WHOLE, WHOLE))
    phases.first(Knobs("weight"), both, has_seen_samples=True)
    assert len(asked) == ways


@pytest.mark.parametrize(("left", "trials"), [(-1.0, 0), (60.0, 1)])
def test_no_way_to_train_is_tried_once_the_time_is_over_and_there_is_a_network(left, trials):
    knobs, asked = Knobs("weight"), []

    def judge(job):
        asked.append(job)
        return point(job[0])

    phases = phases_of(judge, {"first": point(knobs)}, time.monotonic() + left)
    ways = (Training(2, WHOLE, WHOLE), Training(1, WHOLE, WHOLE))
    assert phases.first(knobs, ways, has_seen_samples=False, parent=point(knobs)) is None
    assert len(asked) == trials
    assert phases.training == ways[0]


@pytest.mark.parametrize("slots", [1, 3])
def test_neighbours_are_trained_at_the_same_time_and_none_twice(slots, monkeypatch):
    now, running, most = [0.0], [], []
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    tried = [Knobs("weight", sparsity, bits, 8) for sparsity in (0.0, 0.35, 0.5) for bits in (8, 6, 4)]
    points = {knobs: point(knobs) for knobs in tried}
    phases = phases_of(None, points, 100.0)

    def judge(trial):
        now[0] += 5
        running.append(trial.knobs)
        most.append(len(phases.trials.running) + 1)
        if len(running) == 2:
            return "no such network"
        points[trial.knobs] = structs.replace(point(trial.knobs), epochs=trial.epochs)
        return points[trial.knobs]

    phases.trials = Trials(judge, slots)
    phases.search_neighbours()
    assert len(running) == len(set(running)) > slots
    assert not set(running) & set(tried)
    assert max(most) == slots
    assert list(phases.trials.impossible) == [running[1]]
    # No trial begins after the deadline: those that were running then are the last.
    assert now[0] <= 100 + 5 * slots


def test_a_search_without_time_or_without_a_good_network_trains_no_neighbour():
    tried = [Knobs("weight", sparsity, bits, 8) for sparsity in (0.0, 0.35, 0.5) for bits in (8, 6, 4)]
    bad = {knobs: structs.replace(point(knobs), loses_little=False) for knobs in tried}
    for points, seconds in (({knobs: point(knobs) for knobs in tried}, -1.0), (bad, 100.0)):
        phases_of(lambda _: pytest.fail("trained"), points, time.monotonic() + seconds).search_neighbours()
