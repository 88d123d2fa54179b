"""Long work is seen, with a terminal and without one."""

import contextlib
import os
import re
import subprocess
import sys
import time

import pytest

from fpgaprune.commands import Watcher


def wait_for(text, capsys, seconds=10.0):
    """What standard error holds once `text` is there."""
    seen = ""
    deadline = time.monotonic() + seconds
    while text not in seen and time.monotonic() < deadline:
        time.sleep(0.01)
        seen += capsys.readouterr().err
    return seen


def test_without_a_terminal_a_running_stage_is_a_line_every_so_often(capsys):
    with Watcher(quiet=False, every_s=0.05) as watcher:
        watcher.stage("finetune", "running")
        watcher.step(1, 400, "epoch 1 of 40, loss 0.7")
        time.sleep(0.02)
        watcher.step(10, 400, "epoch 1 of 40, loss 0.5")
        seen = wait_for("10 of 400", capsys)
    assert seen.startswith("finetune   ...\n")
    assert re.search(r"finetune   \d+\.\d s, 10 of 400, about .* left; epoch 1 of 40, loss 0\.5\n", seen)


def test_a_stage_without_steps_is_seen_too(capsys):
    with Watcher(quiet=False, every_s=0.05) as watcher:
        watcher.stage("export", "running")
        seen = wait_for(" s\n", capsys)
    assert re.search(r"export     \d+\.\d s\n", seen)


def test_the_end_of_a_stage_says_how_long_it_took(capsys):
    with Watcher(quiet=False) as watcher:
        watcher.stage("train", "running")
        watcher.stage("train", "done", seconds=12.34)
        watcher.stage("select", "unchanged")
        watcher.stage("measure", "running")
        watcher.stage("samples", "warning", "[few] of them")
        watcher.stage("time", "said", "about 2 min")
        watcher.stage("measure", "skipped", "pip install 'fpgaprune[rtl]'", 0.0)
    assert capsys.readouterr().err.splitlines() == [
        "train      ...",
        "train      done  12.3 s",
        "select     unchanged",
        "measure    ...",
        "samples    warning: [few] of them",
        "time       about 2 min",
        "measure    skipped: pip install 'fpgaprune[rtl]'",
    ]


def test_the_last_words_say_where_the_time_went():
    watcher = Watcher(quiet=True)
    assert watcher.where_the_time_went() == "nothing to do, because every stage is unchanged"
    for name, seconds in (("train", 80.0), ("select", 1.0), ("finetune", 49.5)):
        watcher.stage(name, "running")
        watcher.stage(name, "done", seconds=seconds)
    assert watcher.where_the_time_went() == (
        "2 min 10 s in total: 1 min 20 s reading or training your network, 49.5 s training under the locks"
    )


def test_time_is_measured_where_nobody_gives_it():
    watcher = Watcher(quiet=True)
    watcher.stage("select", "running")
    time.sleep(0.02)
    watcher.stage("select", "done")
    assert 0.02 <= watcher.seconds["select"] < 5


@pytest.mark.parametrize(("kind", "word"), [(ValueError, "failed"), (KeyboardInterrupt, "stopped")])
def test_a_stage_that_does_not_end_is_named(kind, word, capsys):
    watcher = Watcher(quiet=False)
    watcher.stage("export", "running")
    with pytest.raises(kind), watcher:
        raise kind
    assert f"export     {word} after 0." in capsys.readouterr().err


def test_quiet_is_quiet(capsys):
    with Watcher(quiet=True, every_s=0.01) as watcher:
        watcher.stage("train", "running")
        watcher.step(1, 2, "x")
        time.sleep(0.05)
        watcher.stage("train", "done")
    assert capsys.readouterr() == ("", "")


def steps_at(watcher, clock, *steps):
    for seconds, done, total in steps:
        clock[0] = seconds
        watcher.step(done, total)


@pytest.fixture
def clock(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("fpgaprune.commands.watcher.time.monotonic", lambda: now[0])
    return now


def test_the_expected_time_follows_the_last_steps(clock):
    watcher = Watcher(quiet=True)
    watcher.stage("train", "running")
    assert watcher.remaining_s() is None
    steps_at(watcher, clock, (10.0, 1, 11))
    assert watcher.remaining_s() == pytest.approx(100.0)
    # The last steps took a tenth of the time.
    steps_at(watcher, clock, *((10.0 + step, 1 + step, 101) for step in range(1, 50)))
    assert watcher.remaining_s() == pytest.approx(51.0)
    clock[0] += 21.0
    assert watcher.remaining_s() == pytest.approx(30.0)


def test_the_compilation_in_the_first_of_many_steps_does_not_count(clock):
    watcher = Watcher(quiet=True)
    watcher.stage("train", "running")
    steps_at(watcher, clock, (40.0, 1, 90))
    assert watcher.remaining_s() is None
    steps_at(watcher, clock, (41.0, 3, 90))
    assert watcher.remaining_s() == pytest.approx(43.5)


def test_other_work_of_a_stage_has_an_expected_time_of_its_own(clock):
    watcher = Watcher(quiet=True)
    watcher.stage("measure", "running")
    steps_at(watcher, clock, (0.0, 0, 1), (100.0, 1, 1), (110.0, 1, 6))
    assert watcher.remaining_s() == pytest.approx(50.0)
    steps_at(watcher, clock, (120.0, 0, 6))
    assert watcher.remaining_s() is None


HIDDEN = """
import time
from fpgaprune.flow.task import quiet_standard_error
from fpgaprune.commands import Watcher
with Watcher(quiet=False, every_s=0.05) as watcher:
    watcher.stage("train", "running")
    with quiet_standard_error():
        time.sleep(0.5)
    raise SystemExit(0)
"""


def test_a_stage_is_seen_while_the_messages_of_an_import_are_hidden():
    done = subprocess.run([sys.executable, "-c", HIDDEN], capture_output=True, text=True, check=True)
    assert re.search(r"^train      0\.\d s$", done.stderr, re.MULTILINE)
    assert re.search(r"^train      stopped after ", done.stderr, re.MULTILINE)


SHOWN = """
import time
from fpgaprune.commands import Watcher
with Watcher(quiet=False) as watcher:
    watcher.stage("train", "running")
    watcher.step(60, 12_000, "epoch 12 of 24, loss 0.31, sparse categorical accuracy 0.912")
    time.sleep(0.5)
    watcher.stage("train", "done", seconds=0.5)
"""


@pytest.mark.skipif(os.name != "posix", reason="pseudo-terminals are those of POSIX")
@pytest.mark.parametrize(("width", "words"), [(60, "60 of 12,000"), (100, "60 of 12,000"), (140, "epoch 12 of 24")])
def test_no_line_of_a_terminal_is_wider_than_its_window(width, words):
    terminal, end = os.openpty()
    environment = {**os.environ, "COLUMNS": str(width), "TERM": "xterm"}
    process = subprocess.Popen([sys.executable, "-c", SHOWN], stderr=end, env=environment)
    os.close(end)
    text = b""
    # Once the other end is closed, reading is an error on Linux and empty elsewhere.
    with contextlib.suppress(OSError):
        while read := os.read(terminal, 4096):
            text += read
    os.close(terminal)
    assert process.wait() == 0
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text.decode())
    lines = [line.rstrip() for line in re.split(r"[\r\n]+", plain)]
    assert max(map(len, lines)) <= width
    assert any("train" in line and words in line for line in lines)
    assert "train      done  0.5 s" in lines
