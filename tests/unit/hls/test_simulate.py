"""The C simulation's processes, played by a program that doubles what it reads and can be slow, hang or crash."""

import os
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

from fpgaprune.errors import DataError, ToolError, ToolTimeoutError
from fpgaprune.hls import CSimulation, HlsProject

from ..emulate.designs import mlp
from ..programs import write_program

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the program is a script")
PROGRAM = """#!{python}
import os, sys, time
import struct
while True:
    data = b""
    while len(data) < 8:
        got = os.read(0, 8 - len(data))
        if not got:
            sys.exit(0)
        data += got
    a, b = struct.unpack("ff", data)
    {body}
    os.write(1, struct.pack("ff", 2 * a, 2 * b))
"""


@pytest.fixture
def program(tmp_path):
    """Writes the program with `body` and hands back the simulation that runs it."""
    (tmp_path / "firmware").mkdir()

    def write(body="pass"):
        text = PROGRAM.format(python=sys.executable, body=body)
        return CSimulation(write_program(tmp_path / "firmware" / "net-stamp", text), mlp())

    return write


def samples(count):
    return np.arange(2 * count, dtype=np.float32).reshape(count, 2)


def test_all_samples_come_back_in_order_from_several_processes(program, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2})
    x = samples(50)
    told = []
    # Slower than the time between two looks, or none may fall into the run.
    ran = program("time.sleep(0.03)").run(x, on_progress=told.append)
    assert np.array_equal(ran.outputs, 2 * x)
    assert (ran.samples, ran.asked) == (50, 50)
    assert told
    assert told[-1] <= 50
    assert told == sorted(told)
    assert program().predict(samples(0)).shape == (0, 2)


def test_the_first_samples_run_in_the_time_that_there_is(program, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    x = samples(400)
    started = time.monotonic()
    ran = program("time.sleep(0.05)").run(x, seconds=1.0)
    assert time.monotonic() - started < 6
    assert 1 <= ran.samples < ran.asked == 400
    assert np.array_equal(ran.outputs, 2 * x[: ran.samples])


def test_so_many_samples_run_however_little_time_there_is(program):
    x = samples(40)
    ran = program("time.sleep(0.01)").run(x, seconds=1e-9, at_least=7)
    assert ran.samples == 7
    assert np.array_equal(ran.outputs, 2 * x[:7])


def test_a_crash_of_the_compiled_code_is_an_error_of_one_line(program):
    crash = "a == 6 and (sys.stderr.write('Assertion `a < 6` failed\\n'), sys.stderr.flush(), os.abort())"
    with pytest.raises(ToolError, match=r"ended by SIGABRT at a sample; its last line: 'Assertion `a < 6` failed'"):
        program(crash).predict(samples(12))
    with pytest.raises(ToolError, match="ended with code 3 at a sample"):
        program("sys.exit(3)").predict(samples(2))


def test_what_hangs_is_stopped(program):
    with pytest.raises(ToolTimeoutError, match=r"took longer than 0\.3 s for one sample and was stopped"):
        program("time.sleep(60)").run(samples(2), sample_timeout_s=0.3)


def test_samples_must_fit(program):
    with pytest.raises(DataError, match=r"samples have shape \(3,\); design 'net' takes \(2,\)"):
        program().predict(np.zeros((4, 3)))


def test_a_compilation_that_takes_too_long_is_stopped_and_says_so(tmp_path):
    (tmp_path / "build_lib.sh").write_text("PROJECT=net\nLIB_STAMP=stamp\nsleep 60\n")
    project = HlsProject(tmp_path, replace(mlp(), part="xc7z020clg400-1"))
    with pytest.raises(ToolTimeoutError, match=r"g\+\+ did not compile the C simulation of .* within 0\.2 s") as caught:
        project.compile(timeout_s=0.2)
    assert "\n" not in str(caught.value)
