"""A user hears at once that her samples cannot tell what she asks."""

from dataclasses import asdict, replace
from types import SimpleNamespace

import pytest
from msgspec import structs

from fpgaprune.fit import (
    Fit,
    Knobs,
    Limits,
    Phases,
    Ranking,
    SearchLog,
    Training,
    few_networks,
    few_samples,
    front_title,
    limit_words,
    seen_samples,
)
from fpgaprune.values import loss_text
from tests.unit.fit.made_up import MadeUp, made

TOLERANCE = (0.6, 3, 3)
LIMITS = Limits(max_loss="1 %")


class Told:
    def __init__(self):
        self.warnings = []

    def stage(self, name, state, note="", seconds=None):
        if state == "warning":
            self.warnings.append(note)

    def step(self, done, total, note=""):
        pass


def point(lost=0.0, error=0.0, judged_on="validation"):
    knobs = Knobs("weight")
    found = made(knobs, MadeUp().best_layout(knobs), TOLERANCE)
    return structs.replace(found, lost=lost, lost_error=error, judged_on=judged_on, samples=300)


def log_of(limits):
    return SearchLog(Ranking(limits, 5.0), Told(), lambda _: None)


@pytest.mark.parametrize(
    ("limit", "error", "doubted"), [(0.01, 0.0099, False), (0.01, 0.0101, True), (0.0, 0.01, False)]
)
def test_few_samples_are_those_whose_error_is_beyond_the_limit(limit, error, doubted):
    assert (few_samples(point(error=error), Limits(max_loss=loss_text(limit))) is not None) == doubted


@pytest.mark.parametrize(("lost", "doubted"), [(-0.12, True), (-0.124, False)])
def test_a_network_that_is_better_by_far_keeps_the_limit_whatever_the_samples(lost, doubted):
    assert (few_samples(point(lost, 0.0331), LIMITS) is not None) == doubted


@pytest.mark.parametrize(("judged_on", "key"), [("validation", "x_valid"), ("held-out", "x_test")])
def test_the_doubt_names_the_samples_of_which_there_are_too_few(judged_on, key):
    said = few_samples(point(error=0.0331, judged_on=judged_on), LIMITS)
    assert said.startswith(f"300 {judged_on} samples tell a loss only to ± 3.31 %, and at most 1 % may be lost")
    assert said.endswith(f"give more {key}")


def test_a_search_that_hardly_began_says_so():
    assert [few_networks(count, LIMITS) is None for count in (4, 5)] == [False, True]
    said = "10 min sufficed to try one network: with more --minutes, a smaller one may be found"
    assert few_networks(1, LIMITS) == said


def test_the_first_trial_warns_of_few_samples_and_the_next_ones_do_not():
    log = log_of(LIMITS)
    for number in range(3):
        job = SimpleNamespace(key=str(number), knobs=Knobs("weight"))
        log.begin(job)
        log.end(job, "no price" if number == 0 else point(error=0.02))
        assert len(log.progress.warnings) == min(number, 1)


def test_the_state_after_a_trial_has_its_network_and_none_where_there_is_none():
    seen = []
    log = SearchLog(Ranking(LIMITS, 5.0), Told(), seen.append)
    for key, outcome in (("a", point()), ("b", "no estimate"), ("c", point(lost=0.3))):
        log.end(SimpleNamespace(key=key, knobs=Knobs("weight")), outcome)
    assert [status.point and status.point.lost for status in seen] == [0.0, None, 0.3]
    assert [status.best.lost for status in seen] == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(("lost", "warns"), [(0.14, True), (0.004, False)])
def test_a_network_that_knows_the_samples_of_the_search_is_named_before_the_next_trial(lost, warns):
    log = log_of(LIMITS)
    trials = SimpleNamespace(
        limits=LIMITS,
        document={},
        trial=lambda knobs, *_: SimpleNamespace(key="a", knobs=knobs),
        evaluate=lambda _: point(lost=lost),
    )
    phases = Phases(trials, MadeUp(), log, ("sparsity",), [])
    assert phases.first(Knobs("weight"), [Training(1, 1, 1)], has_seen_samples=True).loses_little
    assert log.progress.warnings == ([seen_samples(replace(LIMITS, retraining_loss=lost))] if warns else [])
    assert phases.notes == [seen_samples(replace(LIMITS, retraining_loss=lost))]


def test_the_table_says_that_the_search_allows_more():
    one = point(lost=0.14)
    for retraining_loss, said in ((0.14, "in the search 14.00 % more"), (0.0, None)):
        found = Fit(
            "n", "p", 5.0, "hls", "estimate", asdict(replace(LIMITS, retraining_loss=retraining_loss)), one, (one,)
        )
        assert (said in limit_words(found)) == bool(said)
        assert front_title(found).endswith(f"{said} may be lost" if said else "at once")


def test_every_limit_is_named_in_words():
    one = point()
    limits = Limits(max_loss="1 %", latency_us=2.5, interval_cycles=1, samples_per_s=1e6)
    said = limit_words(Fit("n", "p", 5.0, "hls", "estimate", asdict(limits), one, (one,)))
    assert said[-3:] == ["at most 2.5 µs", "a sample every cycle", "at least 1,000,000 samples a second"]
