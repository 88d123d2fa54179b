"""A search leaves time for its final run, which is as long as that time allows."""

import json
import time
from types import SimpleNamespace

import pytest
from msgspec import structs

from fpgaprune.fit import (
    Candidate,
    HlsRoute,
    Knobs,
    Limits,
    Phases,
    Ranking,
    RunTimes,
    SearchLog,
    Training,
    TrialRunner,
    VerilogRoute,
    is_short,
    run_seconds,
    seconds_of_training,
)
from fpgaprune.flow import Silent
from fpgaprune.target import Target, find_part
from tests.unit.fit.made_up import made_point


def point(folder="", epochs=4):
    knobs = Knobs("weight")
    return made_point(knobs, (0.6, 3, 3), folder=str(folder), epochs=epochs)


def ran(folder, epochs, training):
    """The point of a run that trained for `training` seconds, and took 5 seconds beside it."""
    folder.mkdir()
    stages = {"train": {"seconds": 5.0}, "finetune": {"seconds": training - 1}, "quantise": {"seconds": 1.0}, "hls": {}}
    (folder / "manifest.json").write_text(json.dumps({"stages": stages}))
    return point(folder, epochs)


class Told(Silent):
    def __init__(self):
        self.said = []

    def stage(self, name, state, note="", seconds=None):
        if state == "warning":
            self.said.append(note)


def log_of(minutes, most, fewest):
    log = SearchLog(Ranking(Limits(minutes=minutes), 5.0), Told(), lambda _: None)
    log.final = lambda: (most, fewest)
    return log


def test_nothing_is_known_of_runs_before_the_first(tmp_path):
    times = RunTimes()
    times.record(point(tmp_path / "gone"))
    assert times.seconds(100) == 0.0


def test_of_one_run_training_grows_with_epochs_and_samples_and_the_rest_stays(tmp_path):
    times = RunTimes()
    times.record(ran(tmp_path / "a", 4, 8.0))
    assert times.seconds(4) == pytest.approx(1.1 * (5 + 8))
    assert times.seconds(8, 1.5) == pytest.approx(1.1 * (5 + 8 * 3))


def test_an_epoch_far_slower_than_expected_is_mostly_preparation(tmp_path):
    times = RunTimes(expected=0.1)
    times.record(ran(tmp_path / "a", 2, 8.0))
    assert times.seconds(2) == pytest.approx(1.1 * (5 + 8))
    assert times.seconds(12) == pytest.approx(1.1 * (5 + 8 + 10 * 0.15))


def test_two_runs_tell_preparation_from_epochs(tmp_path):
    times = RunTimes()
    times.record(ran(tmp_path / "a", 2, 6.0))
    times.record(ran(tmp_path / "b", 12, 11.0))
    assert times.seconds(22, 2) == pytest.approx(1.1 * (5 + 5 + 0.5 * 22 * 2))


def test_runs_with_nearly_the_same_epochs_do_not(tmp_path):
    times = RunTimes()
    times.record(ran(tmp_path / "a", 3, 6.0))
    times.record(ran(tmp_path / "b", 4, 6.1))
    assert times.seconds(8) == pytest.approx(1.1 * (5 + 2 * 6.1))


@pytest.mark.parametrize(
    ("most", "fewest", "reserved"),
    # Both final runs; less of the first; of a long one only the shortest, whatever is left for the search.
    [(0.0, 0.0, 0.0), (10.0, 4.0, 14.0), (50.0, 10.0, 18.0), (70.0, 30.0, 30.0)],
)
def test_the_search_ends_before_its_time_by_what_the_end_takes(most, fewest, reserved):
    log = log_of(1.0, most, fewest)
    began = log.at(0.0)
    assert log.at(1.0) - began == pytest.approx(60.0 - reserved)
    assert log.latest - began == pytest.approx(60.0 - fewest)
    assert log.seconds_left == pytest.approx(60.0, abs=5.0)


def test_what_the_end_takes_beyond_the_time_is_said_before_it(monkeypatch):
    log = log_of(1.0, 90.0, 30.0)
    assert log.overrun(30.0) is None
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + 50.0)
    assert log.overrun(30.0).startswith("the shortest training of the best network takes about 30 s, ")
    assert log.overrun(30.0).endswith(" s more than are left of 1 min")


@pytest.mark.parametrize(("minutes", "said"), [(1.0, []), (0.5, ["about 33 s at least, and 0.5 min were asked for"])])
def test_a_time_that_is_too_short_is_said_at_once(minutes, said):
    log = log_of(minutes, 0.0, 0.0)
    log.warn_if_short(run_seconds(5.0, 8.0))
    assert len(log.progress.said) == len(said)
    assert all(text in log.progress.said[0] for text in said)


@pytest.mark.parametrize(
    ("minutes", "trial", "final", "short"),
    [
        # A run takes 10 seconds beside its training: 90 s are time for six runs of 14 s.
        (2.0, 4.0, 20.0, True),
        # 150 s are time for 15 runs of 10 s, 100 s for just ten.
        (3.0, 0.0, 20.0, False),
        (2.0, 0.0, 10.0, False),
        (2.0, 0.0, 10.1, True),
        (10.0, 30.0, 120.0, False),
    ],
)
def test_a_search_is_short_that_has_no_time_for_ten_short_trials(minutes, trial, final, short):
    assert is_short(minutes, trial, final) == short


def test_a_tool_takes_longer_where_the_last_trial_took_longer_beside_its_training(tmp_path):
    times = RunTimes()
    assert times.counting_seconds(8.0) == 8.0
    times.record(ran(tmp_path / "a", 4, 8.0))
    assert times.counting_seconds(8.0) == 8.0
    times._beside = 30.0
    assert times.counting_seconds(8.0) == pytest.approx(24.0)


@pytest.mark.parametrize(
    ("left", "first", "epochs"),
    [
        # A run of 16, 8 or 4 epochs takes 23.1, 14.3 or 9.9 s.
        (100.0, True, 16),
        # The first run leaves 19.9 s for a second one.
        (45.0, True, 8),
        (45.0, False, 16),
        (22.0, True, 4),
        (22.0, False, 4),
        # Too late for a tool to count it as well.
        (15.0, True, None),
        (15.0, False, None),
    ],
)
def test_the_final_run_has_the_epochs_for_which_there_is_time(tmp_path, left, first, epochs):
    times = RunTimes()
    times.record(ran(tmp_path / "a", 4, 4.0))
    # Ten more seconds are kept for the tool that counts the answer.
    final = (times.seconds(16) + 10, times.seconds(4) + 10)
    log = SimpleNamespace(times=times, seconds_left=left, counting=lambda: 10.0, final=lambda: final)
    phases = Phases(None, None, log, (), [], Training(1, 4, 16))
    assert phases.final_epochs(1.0, first) == epochs


@pytest.mark.parametrize(
    ("left", "samples", "tried", "asked", "epochs"),
    [
        # 4, 2 or 1 epochs take 9.9, 7.7 or 6.6 s.
        (15.0, 1.0, False, "", 4),
        (8.0, 1.0, False, "", 2),
        (3.0, 1.0, False, "", 1),
        (3.0, 1.25, True, "", 1),
        # Its trial had these samples.
        (15.0, 1.0, True, "", 0),
        # The flow says how to train.
        (15.0, 1.0, True, "epochs", 4),
        (15.0, 1.0, True, "loop", 4),
    ],
)
def test_a_final_run_that_begins_late_has_few_epochs_or_the_network_of_its_trial(
    tmp_path, left, samples, tried, asked, epochs
):
    times = RunTimes()
    times.record(ran(tmp_path / "a", 4, 4.0))
    log = SimpleNamespace(times=times, seconds_left=left)
    trials = SimpleNamespace(has_own_loop=asked == "loop")
    phases = Phases(trials, None, log, (), [], Training(1, 4, 16, keeps_epochs=asked == "epochs"))
    candidate = Candidate(Knobs("weight"), {}, None, None, point=point() if tried else None)
    assert phases.late_epochs(samples, candidate) == epochs


@pytest.mark.parametrize(("luts", "left", "counts"), [(1000, 30.4, True), (1000, 30.2, False), (9000, 30.4, False)])
def test_a_tool_counts_the_answer_if_it_ends_in_time(tmp_path, luts, left, counts):
    """14.3 seconds of the run and 22 of the synthesis of 1,000 LUTs, of which 6 may be late."""
    times = RunTimes()
    times.record(ran(tmp_path / "a", 4, 4.0))
    log = SimpleNamespace(times=times, seconds_left=left, ranking=Ranking(Limits(minutes=1.0), 5.0))
    trials = SimpleNamespace(route=VerilogRoute(find_part("xc7z020"), "xc7"))
    layout = structs.replace(point(), used={"lut": luts})
    assert Phases(trials, None, log, (), []).has_time_to_count(1.0, layout, 8) == counts
    # Nobody knows how long a vendor's tool takes, and it takes extra time.
    trials.route = HlsRoute(Target.of("xc7z020clg400-1"))
    assert Phases(trials, None, log, (), []).has_time_to_count(1.0, layout, 8)


def test_an_end_that_is_asked_for_has_its_epochs():
    assert list(Training(1, 5, 5).final_epochs()) == [5]
    assert list(Training(1, 9, 118).final_epochs()) == [118, 59, 29, 14, 9]
    assert list(Training(2, 9, 118).late_epochs()) == [9, 4, 2]
    assert list(Training(2, 9, 9, keeps_epochs=True).late_epochs()) == [9]
    assert list(Training(0, 0, 0).late_epochs()) == [0]


@pytest.mark.parametrize(("minutes", "seconds"), [(0.01, 0.0), (1.0, 4.0), (3.0, 28.0), (20.0, 120.0)])
def test_a_short_search_trains_for_less(minutes, seconds):
    assert seconds_of_training(minutes) == seconds


def test_each_reason_for_what_was_left_out_is_told_once(tmp_path):
    trials = TrialRunner(None, {}, tmp_path, tmp_path, Limits(), None, "")
    trials.impossible.update({"a": "no price", "b": "a filter", "c": "no price", "d": "no price"})
    assert trials.left_out() == ["left out: a, and 2 more: no price", "left out: b: a filter"]


@pytest.mark.parametrize(("left", "two"), [(8.0, True), (7.9, False)])
def test_two_final_runs_take_twice_the_time_of_the_shortest(left, two):
    log = SimpleNamespace(seconds_left=left, final=lambda: (10.0, 4.0))
    assert Phases(None, None, log, (), []).has_time_for_two() == two
