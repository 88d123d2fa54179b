"""A search leaves time to train its best network whole, and says what that takes beyond its time."""

import json
import time

import pytest
from msgspec import structs

from fpgaprune.fit import log as fit_log
from fpgaprune.fit.ending import seconds_of_end
from fpgaprune.fit.job import Job
from fpgaprune.fit.knobs import Knobs
from fpgaprune.fit.limits import Limits
from fpgaprune.fit.log import SearchLog
from fpgaprune.fit.ranking import Ranking
from fpgaprune.fit.trial import Trials
from fpgaprune.flow import Silent
from tests.unit.fit.made_up import Prices, made

JOB = Job("hls", {}, 5.0, {}, {}, "knobs", {}, "held-back", "folder", "content")


def point(folder="", epochs=4):
    knobs = Knobs("weight")
    return structs.replace(made(knobs, Prices().fastest(knobs), (0.6, 3, 3)), folder=str(folder), epochs=epochs)


def log_of(minutes, seconds):
    log = SearchLog(Ranking(Limits(minutes=minutes), 5.0), Silent(), lambda _: None)
    log.ending = lambda _: seconds
    return log


def test_training_grows_with_epochs_and_samples_and_the_rest_stays(tmp_path):
    stages = {"train": {"seconds": 1.0}, "finetune": {"seconds": 3.0}, "quantise": {"seconds": 1.0}, "hls": {}}
    (tmp_path / "manifest.json").write_text(json.dumps({"stages": stages}))
    assert seconds_of_end(point(tmp_path), 4, 1.0) == 5.0
    assert seconds_of_end(point(tmp_path), 8, 1.5) == 1.0 + 4.0 * 3
    assert seconds_of_end(point(tmp_path / "gone"), 8, 1.5) == 0.0


@pytest.mark.parametrize(("seconds", "reserved"), [(0.0, 0.0), (10.0, 10.0), (50.0, 24.0)])
def test_the_search_ends_before_its_time_by_what_the_end_takes(seconds, reserved):
    log = log_of(1.0, seconds)
    began, ends = log.at(0.0), log.at(1.0)
    assert ends - began == pytest.approx(60.0)
    log.end(JOB, point())
    assert log.at(0.0) == began
    assert ends - log.at(1.0) == pytest.approx(reserved)
    assert log.seconds_left == pytest.approx(60.0, abs=5.0)


def test_what_the_end_takes_beyond_the_time_is_said_before_it(monkeypatch):
    log = log_of(1.0, 30.0)
    log.end(JOB, point())
    assert log.beyond() is None
    now = time.monotonic()
    monkeypatch.setattr(fit_log.time, "monotonic", lambda: now + 50.0)
    assert log.beyond().startswith("to train the best network whole takes about 30 s, ")
    assert log.beyond().endswith(" s more than are left of 1 min")


def test_each_reason_for_what_was_left_out_is_told_once(tmp_path):
    trials = Trials(None, {}, tmp_path, tmp_path, Limits(), None, "")
    trials.impossible.update({"a": "no price", "b": "a filter", "c": "no price", "d": "no price"})
    assert trials.left_out() == ["left out: a, and 2 more: no price", "left out: b: a filter"]
