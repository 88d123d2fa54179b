"""The command line: quick to start, quiet about frameworks, honest in its exit status."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

PROBE = (
    "import sys\n"
    "sys.argv = ['fpgaprune', *sys.argv[1:]]\n"
    "from fpgaprune.cli import main\n"
    "try:\n    main()\nexcept SystemExit as stop:\n    code = stop.code\n"
    "loaded = {'tensorflow', 'keras', 'hls4ml', 'onnx', 'matplotlib'} & set(sys.modules)\n"
    "print('LOADED', sorted(loaded), 'CODE', code)\n"
)


def run(*arguments):
    return subprocess.run([sys.executable, "-c", PROBE, *arguments], capture_output=True, text=True, check=True)


@pytest.mark.parametrize("arguments", [["--help"], ["parts"], ["verify", "--help"], ["run", "--help"], ["doctor"]])
def test_what_needs_no_framework_loads_none(arguments):
    assert run(*arguments).stdout.endswith("LOADED [] CODE 0\n")


def test_parts_as_json():
    text = run("parts", "--json").stdout.rpartition("LOADED")[0]
    parts = {part["name"]: part for part in json.loads(text)}
    assert parts["xc7z020"]["dsp"] == 220


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["verify", "nowhere"], "nowhere is no run directory"),
        (["estimate", "nowhere.json"], "no design at nowhere.json"),
        (["run", "nowhere.toml"], "flow file nowhere.toml does not exist"),
        (["measure", "nowhere"], "nowhere is no run directory"),
        (["inspect", "nowhere.keras"], "model file nowhere.keras does not exist"),
    ],
)
def test_errors_are_one_line(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run(*arguments)
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr
    assert "CODE 2" in done.stdout


HANG = """
import sys
import fpgaprune.cli as cli
from fpgaprune.processes import run_tool

@cli.app.command()
def hang():
    run_tool(["sh", "-c", "echo $$ > new && mv new tool.pid; sleep 60"], ".", 60)

sys.argv = ["fpgaprune", "hang"]
cli.main()
"""


@pytest.mark.skipif(os.name != "posix", reason="signals are those of POSIX")
def test_a_request_to_end_ends_the_tool_that_runs_too(tmp_path):
    process = subprocess.Popen([sys.executable, "-c", HANG], cwd=tmp_path)
    pid = tmp_path / "tool.pid"
    deadline = time.monotonic() + 60
    while not pid.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    process.terminate()
    assert process.wait(timeout=30) == 143
    assert not Path("/proc", pid.read_text().strip()).exists()
