"""Trials as jobs, here and on workers; options that cannot be; the folder of a search."""

import json
import subprocess
import sys
import threading
from dataclasses import asdict

import pytest

from fpgaprune.errors import ConfigError, EstimateError, RunError, ToolError
from fpgaprune.fit import workers
from fpgaprune.fit.job import Job, kept_outcome, outcome_of
from fpgaprune.fit.knobs import Knobs
from fpgaprune.fit.limits import Limits
from fpgaprune.fit.options import SearchOptions
from fpgaprune.fit.own_folder import require_own, used_alone
from fpgaprune.fit.standing import Standing
from tests.unit.fit.made_up import LIMITS, TOLERANCE, Prices, made, point


def job(folder, sparsity=0.5, limits=LIMITS, judged_on="held-back", **more):
    knobs = Knobs("weight", sparsity)
    document = {"epochs": 8, **knobs.settings(), **more}
    return Job("hls", {}, 5.0, asdict(limits), document, str(knobs), knobs.settings(), judged_on, str(folder), "")


def test_equal_trials_have_equal_keys_and_are_done_once(tmp_path):
    first = outcome_of(job(tmp_path), None, point)
    assert outcome_of(job(tmp_path), None, lambda *_: pytest.fail("done twice")) == first
    assert job(tmp_path).key == job(tmp_path, limits=Limits(share=0.1)).key
    assert job(tmp_path).key != job(tmp_path, seed=1).key


def test_two_processes_do_not_do_the_same_trial(tmp_path):
    """The second one waits for the first one."""
    inside, leave = threading.Event(), threading.Event()

    def slow(one, progress):
        inside.set()
        assert leave.wait(30)
        return point(one, progress)

    found = []
    first = threading.Thread(target=lambda: found.append(outcome_of(job(tmp_path), None, slow)))
    first.start()
    assert inside.wait(30)
    second = threading.Thread(target=lambda: found.append(outcome_of(job(tmp_path), None, point)))
    second.start()
    leave.set()
    first.join()
    second.join()
    assert found[0] == found[1]
    assert len((tmp_path / "begun").read_text().splitlines()) == 1


def test_a_point_is_judged_by_the_limits_of_the_search_that_reads_it(tmp_path):
    assert outcome_of(job(tmp_path), None, point).fits is False
    assert kept_outcome(job(tmp_path, limits=Limits(share=1.0, max_loss="0 %"))).fits is False
    small = job(tmp_path, 0.9)
    assert outcome_of(small, None, point).fits
    strict = kept_outcome(job(tmp_path, 0.9, limits=Limits(share=0.01, latency_us=0.1)))
    assert (strict.fits, strict.in_time) == (False, False)


def test_what_cannot_be_is_remembered_unless_tools_decided_it(tmp_path):
    def impossible(one, progress):
        raise EstimateError("no price")

    assert outcome_of(job(tmp_path), None, impossible) == "no price"
    assert outcome_of(job(tmp_path), None, lambda *_: pytest.fail("done twice")) == "no price"
    whole = job(tmp_path, judged_on="held-out", whole=True)
    assert outcome_of(whole, None, impossible) == "no price"
    assert outcome_of(whole, None, point).samples == 100


def test_a_damaged_outcome_is_refused(tmp_path):
    job(tmp_path).kept.write_text("{")
    with pytest.raises(RunError, match=r"is not a trial of this search.*delete it"):
        kept_outcome(job(tmp_path))


def test_knobs_are_read_back_from_their_settings():
    for knobs in (Knobs("filter", 0.35, 4, 6), Knobs("weight", 0.9, 8, 3, "digits(1)"), Knobs("weight", filters=0.5)):
        assert Knobs.of({**knobs.settings(), "target": {"strategy": "resource"}}) == knobs


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"workers": 0}, "workers is 0; wanted 1 or more"),
        ({"trials": -3}, "trials is -3"),
        ({"workers": 2, "scheduler": "tcp://a:1"}, "wanted one of them"),
        ({"memory_gib": 0, "workers": 1}, "memory_gib is 0"),
        ({"memory_gib": 2}, "name their number with workers"),
    ],
)
def test_options_that_cannot_be_are_refused(given, message):
    with pytest.raises(ConfigError, match=message):
        SearchOptions(**given)


def test_only_an_option_begins_a_study():
    assert not SearchOptions().searches
    assert all(
        SearchOptions(**one).searches for one in ({"trials": 1}, {"workers": 1}, {"scheduler": "a"}, {"front": True})
    )


def test_a_folder_is_searched_by_one_process_at_a_time(tmp_path):
    with used_alone(tmp_path), pytest.raises(RunError, match=r"is in use by process \d+"), used_alone(tmp_path):
        pytest.fail("two searches in one folder")
    with used_alone(tmp_path):
        require_own(tmp_path)


def test_without_dask_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ToolError, match=r"distributed.*was not found: pip install 'fpgaprune\[search\]'"):
        workers.Workers(2, None, None)


def test_a_scheduler_that_is_not_there_is_one_line(monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setitem(workers._SETTINGS, "distributed.comm.timeouts.connect", "300ms")
    with pytest.raises(ToolError, match=r"no scheduler of Dask answers at tcp://127.0.0.1:9: .*dask scheduler"):
        workers.Workers(1, "tcp://127.0.0.1:9", None)


def test_a_worker_refuses_a_folder_that_it_does_not_see_and_another_version(tmp_path, monkeypatch):
    import msgspec

    monkeypatch.chdir(tmp_path)
    text = msgspec.json.encode(job(tmp_path / "gone" / "trials"))
    with pytest.raises(RunError, match=r"does not see .*shared file system"):
        workers.do_job(text, str(tmp_path), workers.__version__, point)
    with pytest.raises(RunError, match=r"sees no folder .*shared file system"):
        workers.do_job(text, str(tmp_path / "gone"), workers.__version__, point)
    with pytest.raises(RunError, match=r"has fpgaprune .*the coordinator 0.0.0; install the same"):
        workers.do_job(text, str(tmp_path), "0.0.0", point)
    (tmp_path / "trials").mkdir()
    done = workers.do_job(msgspec.json.encode(job("trials")), str(tmp_path), workers.__version__, point)
    assert json.loads(done)["knobs"] == str(Knobs("weight", 0.5))


def test_a_standing_says_the_best_so_far_and_the_time_left():
    best = made(Knobs("weight"), Prices().fastest(Knobs("weight")), TOLERANCE)
    assert Standing(4, "said", 1, 2, best, 125.4).in_words() == "said; best so far: trial 2; 2 min 05 s left"
    assert Standing(1, "said", 0, None, None, 9.0).in_words() == "said; 9 s left"


def test_a_search_without_options_loads_neither_optuna_nor_dask():
    code = (
        "import sys, fpgaprune.fit.search\n"
        "print([name for name in ('optuna', 'dask', 'distributed', 'tensorflow') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
