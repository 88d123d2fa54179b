"""A search on workers that was killed at any moment, and begun again, loses no trial and does none twice."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from fpgaprune.fit import Knobs, Workers
from tests.unit.fit import made_up

pytest.importorskip("distributed")

ROOT = Path(__file__).parents[2]
PROGRAM = "from tests.unit.fit.made_up import main\nmain()"


def begun(folder, trials, workers=2):
    """A search in a process of its own, whose trials take a twentieth of a second."""
    environment = {**os.environ, "MADE_UP_S": "0.05", "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    command = [sys.executable, "-c", PROGRAM, str(folder), str(workers), str(trials)]
    with open(folder / "said", "a") as said:
        return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=said, stderr=said)


def children(pid):
    """The processes that `pid` has started, and those that they have started."""
    found = []
    for child in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += [int(number) for number in child.read_text().split()]
        except OSError:
            continue
    return [*found, *(one for child in found for one in children(child))]


def kept(folder):
    """Key of each trial that has ended, to its outcome."""
    return {path.stem: path.read_bytes() for path in (folder / "trials").glob("*.json")}


def lost_or_changed(before, now):
    return [key for key, content in before.items() if now.get(key) != content]


def answer(folder):
    return json.loads((folder / "answer.json").read_text())


def drill(folder, kills, trials, seed):
    """Kills a process of a search `kills` times, and lets it end; the processes that were killed."""
    rng, killed = np.random.default_rng(seed), []
    search, ended = begun(folder, trials), {}
    while len(killed) < kills:
        # A coordinator is also killed while it starts; the others are killed in the middle of their trials.
        of_worker = rng.random() < 0.5
        if not of_worker and rng.random() < 0.5:
            time.sleep(rng.uniform(0, 5))
        else:
            count = len(kept(folder))
            while len(kept(folder)) < count + 3 and search.poll() is None:
                time.sleep(0.02)
            time.sleep(rng.uniform(0, 0.2))
        assert search.poll() is None, "it ended before all kills; more trials are needed"
        victims = children(search.pid) if of_worker else [search.pid]
        if not victims:
            continue
        victim = int(rng.choice(victims))
        try:
            os.kill(victim, signal.SIGKILL)
        except ProcessLookupError:
            continue
        killed.append("coordinator" if victim == search.pid else "worker")
        if victim == search.pid:
            search.wait()
            search = begun(folder, trials)
        assert lost_or_changed(ended, kept(folder)) == []
        ended = kept(folder)
    assert search.wait(timeout=1800) == 0, (folder / "said").read_text()[-2000:]
    assert lost_or_changed(ended, kept(folder)) == []
    return killed


@pytest.mark.slow
def test_fifty_kills_lose_no_trial_and_do_none_twice(tmp_path, capsys):
    kills = int(os.environ.get("FPGAPRUNE_KILLED_SEARCHES", "50"))
    killed = drill(tmp_path, kills, 24 * kills, 1)
    found, lines = answer(tmp_path), (tmp_path / "trials" / "begun").read_text().splitlines()
    with capsys.disabled():
        sys.stdout.write(
            f"\n{killed.count('coordinator')} coordinators and {killed.count('worker')} workers killed, "
            f"{len(found)} trials ended, {len(lines)} were begun\n"
        )
    assert found == {key: json.loads(content)["value"] for key, content in kept(tmp_path).items()}
    # The second word of a line says whether the trial had already ended.
    assert {line.split()[1] for line in lines} == {"False"}
    assert len(found) <= len(lines) <= len(found) + 2 * kills


@pytest.mark.slow
def test_a_thousand_trials_through_dask(tmp_path, capsys):
    began = time.monotonic()
    search = begun(tmp_path, 1000, 2)
    assert search.wait(timeout=1800) == 0, (tmp_path / "said").read_text()[-2000:]
    found = answer(tmp_path)
    lines = (tmp_path / "trials" / "begun").read_text().splitlines()
    with capsys.disabled():
        sys.stdout.write(f"\n1,000 trials in {time.monotonic() - began:.0f} s\n")
    assert len(lines) == len({line.split()[0] for line in lines}) == len(found) == 1000
    assert (tmp_path / "said").read_text() == ""


@pytest.mark.slow
def test_a_trial_that_ends_every_worker_is_left_out(tmp_path):
    executor = Workers(1, None, None, made_up.crash)
    try:
        outcome = executor.result(made_up.trial(tmp_path, Knobs("weight")))
    finally:
        executor.close()
    assert outcome == "3 workers ended in the middle of it; does it take more memory than a worker has?"


@pytest.mark.slow
def test_a_scheduler_that_is_killed_ends_the_search_with_a_line_and_it_goes_on_with_another(tmp_path):
    environment = {**os.environ, "MADE_UP_S": "0.05", "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    address = "tcp://127.0.0.1:18786"
    dask = [sys.executable, "-m", "dask"]
    quiet = {"cwd": ROOT, "env": environment, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}

    def started():
        scheduler = ["scheduler", "--host", "127.0.0.1", "--port", "18786", "--no-dashboard"]
        worker = ["worker", address, "--nthreads", "1", "--no-dashboard", "--death-timeout", "60"]
        return [subprocess.Popen([*dask, *one], **quiet) for one in (scheduler, worker)]

    processes = started()
    try:
        search = begun(tmp_path, 80, address)
        deadline = time.monotonic() + 240
        while len(kept(tmp_path)) < 5 and search.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        processes[0].kill()
        assert search.wait(timeout=300) != 0
        assert f"the scheduler at {address} is gone; start it" in (tmp_path / "said").read_text()
        ended = kept(tmp_path)
        assert ended
        processes += started()
        assert begun(tmp_path, 80, address).wait(timeout=600) == 0
    finally:
        for process in processes:
            process.kill()
            process.wait()
    assert lost_or_changed(ended, kept(tmp_path)) == []
    assert answer(tmp_path) == {key: json.loads(content)["value"] for key, content in kept(tmp_path).items()}
    lines = (tmp_path / "trials" / "begun").read_text().splitlines()
    assert {line.split()[1] for line in lines} == {"False"}
