"""Vendor tools, played by small scripts on PATH."""

import os
import sys
import time
from pathlib import Path

import pytest

from fpgaprune import processes
from fpgaprune.errors import ToolError
from fpgaprune.processes import find_tool, tool_variable
from fpgaprune.vendor import TOOLS, find_tools, read_reports, run_tool

from ..programs import play_tools, write_program
from .texts import csynth

pytestmark = pytest.mark.skipif(os.name != "posix", reason="process groups are those of POSIX")


@pytest.fixture
def bench(tmp_path, monkeypatch):
    """An empty PATH but for `bin`, and a project folder with a space in its name."""
    (tmp_path / "my project").mkdir()
    return play_tools(tmp_path, monkeypatch, TOOLS)


def fake(bench: Path, name: str, body: str) -> Path:
    return write_program(bench / "bin" / name, f"#!/bin/sh\n{body}\n")


def gone(pid_file: Path) -> bool:
    """Whether the process whose number the file holds has ended, zombies included."""
    status = Path("/proc", pid_file.read_text().strip(), "status")
    try:
        return "\nState:\tZ" in status.read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_tools_are_found_on_path(bench):
    fake(bench, "vitis-run", "exit 0")
    fake(bench, "vivado", "exit 0")
    assert find_tools() == {name: bench / "bin" / name for name in ("vitis-run", "vivado")}


def test_a_variable_goes_before_the_path(bench, monkeypatch):
    fake(bench, "vivado", "exit 0")
    other = fake(bench, "vivado-2024", "exit 0")
    monkeypatch.setenv("FPGAPRUNE_VIVADO", str(other))
    assert find_tool("vivado") == other


def test_a_variable_that_points_nowhere_is_refused(bench, monkeypatch):
    monkeypatch.setenv("FPGAPRUNE_VIVADO", "/nowhere/vivado")
    with pytest.raises(
        ToolError,
        match="FPGAPRUNE_VIVADO is '/nowhere/vivado', which is not an executable file; set it to vivado or unset it",
    ):
        find_tool("vivado")


def test_variables_are_distinct_and_plain():
    variables = [tool_variable(name) for name in TOOLS]
    assert len(set(variables)) == len(TOOLS)
    assert tool_variable("i++") == "FPGAPRUNE_IPP"
    assert tool_variable("vitis-run") == "FPGAPRUNE_VITIS_RUN"


def test_a_missing_tool_names_itself_the_cure_and_the_command(bench):
    with pytest.raises(ToolError) as caught:
        run_tool(["vitis-run", "--mode", "hls", "--tcl", "build prj.tcl"], bench / "my project", 5)
    message = str(caught.value)
    assert "vitis-run (AMD Vitis 2023.2 or newer) was not found: source settings64.sh of Vitis" in message
    assert "FPGAPRUNE_VITIS_RUN" in message
    assert message.endswith("vitis-run --mode hls --tcl 'build prj.tcl'")
    assert "\n" not in message


def test_a_run_passes_arguments_untouched_and_leaves_reports_and_a_log(bench):
    (bench / "report").write_text(csynth())
    fake(
        bench,
        "vitis_hls",
        f"for argument; do printf '<%s>\\n' \"$argument\"; done; echo oops >&2; pwd\n"
        f"mkdir -p prj/solution1/syn/report\n"
        f"cp '{bench / 'report'}' prj/solution1/syn/report/myproject_csynth.rpt",
    )
    lines: list[str] = []
    run = run_tool(["vitis_hls", "-f", "a b.tcl", "$(touch x); *"], bench / "my project", 5, lines.append)
    assert lines == ["<-f>", "<a b.tcl>", "<$(touch x); *>", "oops", str(bench / "my project")]
    assert run.log.read_text().splitlines() == lines
    assert (run.returncode, run.command[0], run.log.name) == (0, "vitis_hls", "fpgaprune_vitis_hls.log")
    assert 0 < run.seconds < 5
    assert not (bench / "my project" / "x").exists()
    (report,) = read_reports(run.folder)
    assert report.total.lut == 4567


def test_lines_arrive_while_the_tool_runs(bench):
    fake(bench, "vivado", "echo one; while [ ! -e go ]; do sleep 0.02; done; printf 'two without an end'")
    seen: list[str] = []

    def on_line(line: str) -> None:
        seen.append(line)
        (bench / "my project" / "go").touch()

    run_tool(["vivado"], bench / "my project", 5, on_line)
    assert seen == ["one", "two without an end"]


def test_standard_input_is_empty(bench):
    fake(bench, "vivado", "cat; echo end")
    keyboard, write, ours = *os.pipe(), os.dup(0)
    try:
        os.write(write, b"typed by somebody\n")
        os.close(write)
        os.dup2(keyboard, 0)
        run = run_tool(["vivado"], bench / "my project", 5)
    finally:
        os.dup2(ours, 0)
        os.close(ours)
        os.close(keyboard)
    assert run.log.read_text() == "end\n"


def test_the_tool_leads_a_group_of_its_own(bench):
    fake(bench, "vivado", "echo $$; sleep 0.2")
    groups: list[tuple[int, int]] = []
    run_tool(["vivado"], bench / "my project", 5, lambda line: groups.append((int(line), os.getpgid(int(line)))))
    ((pid, group),) = groups
    assert group == pid != os.getpgrp()


@pytest.mark.parametrize("after", ["", "0 warnings, 1 error"])
def test_a_tool_that_dies_is_an_error_with_its_last_line_or_that_of_the_error(bench, after):
    fake(bench, "quartus_sh", f"echo 'Error: no licence'; echo '{after}'; exit 3")
    with pytest.raises(ToolError, match=r"quartus_sh ended with code 3 in .*it said: 'Error: no licence'"):
        run_tool(["quartus_sh"], bench / "my project", 5)


def test_a_tool_that_is_killed_is_an_error(bench):
    fake(bench, "shls", "kill -9 $$")
    with pytest.raises(ToolError, match="shls ended with code -9"):
        run_tool(["shls"], bench / "my project", 5)


@pytest.mark.parametrize("detach", ["", "setsid "], ids=["in the group", "in a session of its own"])
def test_a_timeout_leaves_no_grandchild(bench, detach):
    if detach and not Path("/proc/self/environ").exists():
        pytest.skip("no /proc: a process that leaves the group cannot be found here")
    fake(bench, "child", "trap '' TERM; echo $$ > grandchild.pid; while :; do sleep 0.05; done")
    fake(bench, "vivado", f"{detach}child & echo $$ > tool.pid; wait; sleep 60")
    folder = bench / "my project"
    started = time.monotonic()
    with pytest.raises(ToolError, match=r"vivado ran longer than 1 s in .* and was stopped"):
        run_tool(["vivado"], folder, 1)
    assert time.monotonic() - started < 6
    assert gone(folder / "tool.pid")
    assert gone(folder / "grandchild.pid")


def test_a_tool_that_ends_well_leaves_no_daemon_and_does_not_wait_for_it(bench):
    fake(bench, "vivado", "sleep 60 & echo $! > daemon.pid; echo done")
    started = time.monotonic()
    run_tool(["vivado"], bench / "my project", 30)
    assert time.monotonic() - started < 5
    assert gone(bench / "my project" / "daemon.pid")


def test_an_exception_from_the_callback_ends_the_tool(bench):
    fake(bench, "vivado", "echo $$ > tool.pid; echo line; sleep 60")

    def on_line(line: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_tool(["vivado"], bench / "my project", 30, on_line)
    assert gone(bench / "my project" / "tool.pid")


def test_a_file_that_cannot_be_started_is_an_error(bench):
    path = bench / "bin" / "catapult"
    path.write_bytes(b"\x7fELF not a program")
    path.chmod(0o755)
    with pytest.raises(ToolError, match="catapult cannot be started"):
        run_tool(["catapult"], bench / "my project", 5)


def test_a_folder_that_is_missing_is_an_error(bench):
    with pytest.raises(ToolError, match="is not a folder; write the project before running vivado in it"):
        run_tool(["vivado"], bench / "nothing", 5)


@pytest.mark.parametrize(("command", "timeout_s"), [([], 1), (["vivado"], 0), (["vivado"], float("nan"))])
def test_senseless_arguments_are_refused(bench, command, timeout_s):
    with pytest.raises(ValueError, match="wanted a tool and more than 0 seconds"):
        run_tool(command, bench, timeout_s)


def test_a_tool_ends_when_its_caller_wants_no_more_of_it(bench):
    fake(bench, "vivado", "echo $$ > tool.pid; sleep 60")
    pid = bench / "my project" / "tool.pid"
    with pytest.raises(ToolError, match=r"vivado was stopped in .*; run it again to go on"):
        processes.run_tool(["vivado"], bench / "my project", 30, stop=pid.exists)
    assert gone(pid)


def test_a_tool_that_computes_gets_its_seconds_of_the_processor(bench, monkeypatch):
    """Other work has taken three quarters of the cores; a tool that may wait gets no more than the clock allows."""
    fake(bench, "vivado", "sleep 0.8")
    started = time.monotonic()
    monkeypatch.setattr(processes, "group_seconds", lambda group: (time.monotonic() - started) / 4)
    processes.run_tool(["vivado"], bench / "my project", 0.4, computes=True)
    with pytest.raises(ToolError, match=r"vivado ran longer than 0\.4 s in "):
        processes.run_tool(["vivado"], bench / "my project", 0.4)


def test_a_tool_that_does_nothing_ends_after_three_times_its_seconds(bench):
    fake(bench, "vivado", "sleep 60")
    started = time.monotonic()
    with pytest.raises(ToolError, match=r"vivado ran longer than 0\.6 s of processor time \(2 s by the clock\) in "):
        processes.run_tool(["vivado"], bench / "my project", 0.6, computes=True)
    assert time.monotonic() - started < 3


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc: processor time is not known here")
def test_the_processor_time_of_a_tool_is_that_of_all_its_processes(bench):
    """One child has ended, another one runs."""
    work = f"exec {sys.executable} -c 'import time\nwhile time.process_time() < 0.3: pass\nif {{}}: time.sleep(60)'"
    fake(bench, "ended", work.format(0))
    fake(bench, "stays", work.format(1))
    fake(bench, "vivado", "ended; stays & echo $$; sleep 60")
    group: list[str] = []

    def both_have_worked() -> bool:
        return bool(group) and processes.group_seconds(int(group[0])) > 0.5

    with pytest.raises(ToolError, match="vivado was stopped"):
        processes.run_tool(["vivado"], bench / "my project", 30, group.append, stop=both_have_worked)


def test_a_countdown_does_not_count_what_other_work_takes(monkeypatch):
    clock, used = iter((0.0, 8.0, 20.0, 40.0)), iter((3.0, 5.0, 11.0, 13.0))
    monkeypatch.setattr(processes.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(processes, "used_seconds", lambda: next(used))
    left = processes.countdown(10)
    # 2 s of the processor in 8 s of the clock, of which a third counts; 8 in 20; 10 in 40.
    assert [left(), left(), left()] == [pytest.approx(10 - 8 / 3), 2, 0.01]
