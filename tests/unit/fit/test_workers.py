"""Trials as jobs, here and on workers; options that cannot be; the folder of a search."""

import json
import subprocess
import sys
import threading
from importlib import import_module

import pytest

from fpgaprune import __version__
from fpgaprune.errors import (
    ConfigError,
    DesignError,
    EstimateError,
    RtlError,
    RunError,
    ToolError,
    UnsupportedLayerError,
)
from fpgaprune.fit import (
    InProcess,
    Knobs,
    Limits,
    SearchStatus,
    WorkerOptions,
    Workers,
    locked_folder,
    outcome_of,
    require_search_folder,
    run_encoded,
    saved_outcome,
)
from tests.unit.fit.made_up import made_point, point, searched, trial


def of_sparsity(folder, sparsity=0.5, **more):
    return trial(folder, Knobs("weight", sparsity), **more)


def test_equal_trials_have_equal_keys_and_are_done_once(tmp_path):
    first = outcome_of(of_sparsity(tmp_path), None, point)
    assert outcome_of(of_sparsity(tmp_path), None, lambda *_: pytest.fail("done twice")) == first
    assert of_sparsity(tmp_path).key == of_sparsity(tmp_path, limits=Limits(share=0.1)).key
    assert of_sparsity(tmp_path).key != of_sparsity(tmp_path, seed=1).key


def test_two_processes_do_not_do_the_same_trial(tmp_path):
    """The second one waits for the first one."""
    inside, leave = threading.Event(), threading.Event()

    def slow(one, progress):
        inside.set()
        assert leave.wait(30)
        return point(one, progress)

    found = []
    first = threading.Thread(target=lambda: found.append(outcome_of(of_sparsity(tmp_path), None, slow)))
    first.start()
    assert inside.wait(30)
    second = threading.Thread(target=lambda: found.append(outcome_of(of_sparsity(tmp_path), None, point)))
    second.start()
    leave.set()
    first.join()
    second.join()
    assert found[0] == found[1]
    assert len((tmp_path / "begun").read_text().splitlines()) == 1


def test_a_point_is_judged_by_the_limits_of_the_search_that_reads_it(tmp_path):
    assert outcome_of(of_sparsity(tmp_path), None, point).fits is False
    assert saved_outcome(of_sparsity(tmp_path, limits=Limits(share=1.0, max_loss="0 %"))).fits is False
    small = of_sparsity(tmp_path, 0.9)
    assert outcome_of(small, None, point).fits
    strict = saved_outcome(of_sparsity(tmp_path, 0.9, limits=Limits(share=0.01, latency_us=0.1)))
    assert (strict.fits, strict.in_time) == (False, False)


@pytest.mark.parametrize("kind", [EstimateError, DesignError, RtlError, UnsupportedLayerError])
def test_what_cannot_be_is_remembered_unless_tools_decided_it(tmp_path, kind):
    def impossible(one, progress):
        raise kind("no price")

    assert outcome_of(of_sparsity(tmp_path), None, impossible) == "no price"
    assert outcome_of(of_sparsity(tmp_path), None, lambda *_: pytest.fail("done twice")) == "no price"
    whole = of_sparsity(tmp_path, judged_on="held-out", whole=True)
    assert outcome_of(whole, None, impossible) == "no price"
    assert outcome_of(whole, None, point).samples == 100


def test_a_damaged_outcome_is_refused(tmp_path):
    of_sparsity(tmp_path).outcome_file.write_text("{")
    with pytest.raises(RunError, match=r"is not a trial of this search.*delete it"):
        saved_outcome(of_sparsity(tmp_path))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"workers": 0}, "workers is 0; wanted 1 or more"),
        ({"workers": 2, "scheduler": "tcp://a:1"}, "wanted one of them"),
        ({"memory_gib": 0, "workers": 1}, "memory_gib is 0"),
        ({"memory_gib": 2}, "name their number with workers"),
    ],
)
def test_options_that_cannot_be_are_refused(given, message):
    with pytest.raises(ConfigError, match=message):
        WorkerOptions(**given)


def test_a_folder_is_searched_by_one_process_at_a_time(tmp_path):
    with locked_folder(tmp_path), pytest.raises(RunError, match=r"is in use by process \d+"), locked_folder(tmp_path):
        pytest.fail("two searches in one folder")
    with locked_folder(tmp_path):
        require_search_folder(tmp_path)


def test_without_dask_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ToolError, match=r"distributed.*was not found: pip install 'fpgaprune\[search\]'"):
        Workers(2, None, None)


def test_a_scheduler_that_is_not_there_is_one_line(monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setitem(import_module("fpgaprune.fit.workers")._SETTINGS, "distributed.comm.timeouts.connect", "300ms")
    with pytest.raises(ToolError, match=r"no scheduler of Dask answers at tcp://127.0.0.1:9: .*dask scheduler"):
        Workers(1, "tcp://127.0.0.1:9", None)


def test_a_worker_refuses_a_folder_that_it_does_not_see_and_another_version(tmp_path, monkeypatch):
    import msgspec

    monkeypatch.chdir(tmp_path)
    text = msgspec.json.encode(of_sparsity(tmp_path / "gone" / "trials"))
    with pytest.raises(RunError, match=r"does not see .*shared file system"):
        run_encoded(text, str(tmp_path), __version__, point)
    with pytest.raises(RunError, match=r"sees no folder .*shared file system"):
        run_encoded(text, str(tmp_path / "gone"), __version__, point)
    with pytest.raises(RunError, match=r"has fpgaprune .*the coordinator 0.0.0; install the same"):
        run_encoded(text, str(tmp_path), "0.0.0", point)
    (tmp_path / "trials").mkdir()
    done = run_encoded(msgspec.json.encode(of_sparsity("trials")), str(tmp_path), __version__, point)
    assert json.loads(done)["knobs"]["sparsity"] == 0.5


def test_a_standing_says_the_best_so_far_and_the_time_left():
    best = made_point(Knobs("weight"))
    assert SearchStatus(4, "said", 1, 2, best, 125.4).summary() == "said; best so far: trial 2; 2 min 05 s left"
    assert SearchStatus(1, "said", 0, None, None, 9.0).summary() == "said; 9 s left"


def test_a_search_without_options_loads_no_dask():
    code = (
        "import sys, fpgaprune.fit.search\n"
        "print([name for name in ('dask', 'distributed', 'tensorflow') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_search_that_was_cut_goes_on_and_runs_no_trial_twice(tmp_path):
    class CutError(Exception):
        """Ends the search in the middle, as a kill does."""

    def cut(one, progress):
        if len(list(tmp_path.glob("*.json"))) == 7:
            raise CutError
        return point(one, progress)

    with pytest.raises(CutError):
        searched(tmp_path, InProcess(None, cut), 12)
    kept = {path: path.read_bytes() for path in tmp_path.glob("*.json")}
    found = searched(tmp_path, InProcess(None, point), 12)
    assert len(kept) == 7
    assert {path: path.read_bytes() for path in kept} == kept
    lines = (tmp_path / "begun").read_text().splitlines()
    assert len(lines) == len({line.split()[0] for line in lines}) == len(found) == 12
    assert searched(tmp_path, InProcess(None, lambda *_: pytest.fail("run twice")), 12) == found


def test_the_json_of_a_point_has_its_knobs_in_words(tmp_path):
    one = made_point(Knobs("weight", 0.5, narrow=frozenset({("d1", "weight_bits")})))
    status = SearchStatus(1, "said", 0, 1, one, 9.0)
    assert status.to_json()["best"]["knobs"] == one.to_json()["knobs"] == str(one.knobs)
    narrow = trial(tmp_path, one.knobs)
    assert outcome_of(narrow, None, point).knobs == saved_outcome(narrow).knobs == one.knobs
