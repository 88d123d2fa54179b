"""The command line: quick to start, quiet about frameworks, honest in its exit status."""

import json
import os
import re
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import typer
from typer.testing import CliRunner

import fpgaprune
from fpgaprune.cli import app
from fpgaprune.errors import ConfigError, EstimateError
from tests.benchmarks.verilog_networks import random_network

from .estimate.designs import mlp

PROBE = (
    "import sys\n"
    "sys.argv = ['fpgaprune', *sys.argv[1:]]\n"
    "from fpgaprune.cli import main\n"
    "try:\n    main()\nexcept SystemExit as stop:\n    code = stop.code\n"
    "loaded = {'tensorflow', 'keras', 'hls4ml', 'onnx', 'matplotlib', 'h5py', 'jinja2'} & set(sys.modules)\n"
    "print('LOADED', sorted(loaded), 'CODE', code)\n"
)


def run(*arguments):
    return subprocess.run([sys.executable, "-c", PROBE, *arguments], capture_output=True, text=True, check=True)


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], ["config"], ["parts"], ["verify", "--help"], ["run", "--help"], ["doctor"]]
)
def test_what_needs_no_framework_loads_none(arguments):
    assert run(*arguments).stdout.endswith("LOADED [] CODE 0\n")


def test_the_end_of_a_command_looks_through_no_objects_that_stay():
    """Looking through those of TensorFlow took longer than most commands; what registers first is asked last."""
    code = "import atexit, gc\natexit.register(lambda: print(gc.get_freeze_count() > 10_000))\n" + PROBE
    done = subprocess.run([sys.executable, "-c", code, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("True\n")


def test_the_help_compiles_no_annotation_and_loads_no_bars():
    texts = {
        command.callback.__name__: named
        for command in app.registered_commands
        if (named := [name for name, kind in command.callback.__annotations__.items() if isinstance(kind, str)])
    }
    assert texts == {}
    code = "import sys, fpgaprune.cli\nprint(sorted({'rich.progress'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_named_parts_are_shown_with_their_source():
    shown = run("parts", "xc7a100tcsg324-1", "xc7z020")
    assert [line.split()[0] for line in shown.stdout.splitlines()[1:3]] == ["xc7a100t", "xc7z020"]
    assert "xc7a100t: " in shown.stdout
    unknown = run("parts", "xc7a101t")
    assert unknown.stdout.endswith("CODE 2\n")
    assert "part 'xc7a101t' is unknown; nearest: " in unknown.stderr


def test_parts_as_json():
    text = run("parts", "--json").stdout.rpartition("LOADED")[0]
    parts = {part["name"]: part for part in json.loads(text)}
    assert parts["xc7z020"]["dsp"] == 220
    assert {"pynq-z2", "zybo-z7-20"} <= set(parts["xc7z020"]["boards"])


def test_the_version_is_that_of_the_package():
    done = CliRunner().invoke(app, ["--version"])
    assert (done.exit_code, done.output) == (0, f"fpgaprune {fpgaprune.__version__}\n")


def test_boards_are_listed_and_named_ones_are_shown_with_their_part():
    done = CliRunner().invoke(app, ["parts"])
    assert ["zcu104", "xczu7ev-ffvc1156-2-e"] in [line.split() for line in done.output.splitlines()]
    done = CliRunner().invoke(app, ["parts", "kv260"])
    assert "kv260: xck26-sfvc784-2LV-c; UG1089" in done.output
    assert done.output.splitlines()[1].split()[0] == "xck26"


@pytest.fixture
def design(tmp_path):
    mlp().save(tmp_path / "design.json")
    return str(tmp_path / "design.json")


def test_an_estimate_for_another_clock(design):
    found = [
        json.loads(CliRunner().invoke(app, ["estimate", design, "--json", *clock]).output)["mlp"]
        for clock in ((), ("--clock-ns", "2.5"))
    ]
    assert [one["target"]["clock_ns"] for one in found] == [5.0, 2.5]
    assert found[1]["latency_us"] == pytest.approx(found[1]["latency_cycles"] * 0.0025)


def test_the_price_of_the_verilog(tmp_path):
    made, _ = random_network(10)
    design = str(replace(made, name="mlp", part="xc7z020clg400-1").save(tmp_path / "design.json"))
    done = CliRunner().invoke(app, ["estimate", design, "--verilog", "--family", "ecp5", "--interval", "1"])
    assert done.exit_code == 0
    assert "mlp, estimated (analytic_synth(open))" in done.output
    assert "mlp as our Verilog, a sample every cycle: ecp5\n" in done.output
    found = json.loads(CliRunner().invoke(app, ["estimate", design, "--verilog", "--json"]).output)["mlp"]
    assert (found["stage"], found["family"]) == ("analytic_synth(open)", "xc7")
    assert found["resources"]["lut"]["low"] < found["resources"]["lut"]["value"] < found["resources"]["lut"]["high"]


def test_a_design_for_our_verilog_is_priced_as_such_without_being_asked(tmp_path):
    made, _ = random_network(10)
    design = str(replace(made, name="mlp", backend="Verilog", part="gw2ar-18").save(tmp_path / "design.json"))
    asked, plain = (CliRunner().invoke(app, ["estimate", design, *option]).output for option in (["--verilog"], []))
    assert "mlp as our Verilog" in plain
    assert plain == asked


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--family", "xc7"], "--family and --interval belong to --verilog"),
        (["--verilog", "--clock-ns", "5"], "--verilog takes one run folder, design or project, and no clock"),
        (
            ["--verilog", "--family", "gatemate"],
            "family 'gatemate' has no price of Verilog; those that have: ecp5, gowin, ice40",
        ),
    ],
)
def test_what_does_not_go_with_the_price_of_the_verilog(design, options, message):
    done = CliRunner().invoke(app, ["estimate", design, *options])
    assert isinstance(done.exception, ConfigError | EstimateError)
    assert message in str(done.exception)


def test_an_estimate_of_rows_takes_no_part_and_no_clock(tmp_path):
    for option in (["--clock-ns", "4"], ["--part", "xc7z020"]):
        done = CliRunner().invoke(app, ["estimate", "--designs", str(tmp_path / "rows.jsonl"), *option])
        assert "leave out --part and --clock-ns" in str(done.exception)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["verify", "nowhere"], "nowhere is not a run folder"),
        (["estimate", "nowhere.json"], "no design at nowhere.json"),
        (["run", "nowhere.toml"], "flow file or model nowhere.toml does not exist"),
        (["measure", "nowhere"], "nowhere is not a run folder"),
        (
            ["compare", "mine.keras"],
            "mine.keras is a network; wanted a run folder, a design.json or an hls4ml project",
        ),
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


def test_a_file_whose_name_is_nearly_there_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.keras").write_bytes(b"")
    assert "mine.kera does not exist; did you mean mine.keras?" in run("run", "mine.kera").stderr


def report_of(fits, *checks):
    """The JSON of a report with these checks, of a network whose fit is answered so."""
    answers = {"metric": ("yes", "Accuracy kept"), "fit": (fits, f"Fits xc7z020: {fits}")}
    answers["measured"] = answers["fit"]
    said = {about: {"reply": reply, "text": text, "tone": "open"} for about, (reply, text) in answers.items()}
    target = {"part": {"name": "xc7z020", "vendor": "AMD"}}
    return {"checks": checks, "verdicts": said, "target": target}


def finished_run(folder, report, manifest=None, **measured):
    """A run of this report, as `run_flow` and `measure_run` return it."""
    for name, content in (("manifest", {}), ("measure", measured), ("report", report)):
        (folder / f"{name}.json").write_text(json.dumps(content))
    return SimpleNamespace(file=folder.joinpath, manifest=manifest or {}, read_report=lambda: report)


@pytest.mark.parametrize("command", ["run", "measure"])
@pytest.mark.parametrize(
    ("holds", "fits", "status"),
    [
        (True, "yes", 0),
        (None, "probably", 0),
        (True, "unknown", 0),
        (False, "yes", 1),
        (True, "no", 3),
        (None, "no", 3),
        (False, "no", 4),
    ],
)
def test_the_exit_status_says_whether_checks_hold_and_whether_it_fits(
    command, holds, fits, status, tmp_path, monkeypatch
):
    check = {
        "name": "agreement",
        "quantity": "share",
        "holds": holds,
        "at_least": True,
        "limit": 0.99,
        "measured": 0.98,
    }
    finished = finished_run(tmp_path, report_of(fits, check))
    work = {"run": "run_flow", "measure": "measure_run"}[command]
    monkeypatch.setattr(f"fpgaprune.flow.{work}", lambda *_, **__: finished)
    arguments = ["--out", str(tmp_path)] if command == "run" else [str(tmp_path), "--family", "xc7"]
    done = CliRunner().invoke(app, [command, "--quiet", *arguments])
    assert done.exit_code == status
    assert ("check fails: agreement: share 0.98, wanted at least 0.99" in done.stderr) == (holds is False)


@pytest.mark.parametrize(("project", "ours", "status"), [("no", "yes", 0), ("yes", "no", 3), ("no", "unknown", 0)])
def test_measure_ends_and_begins_by_the_verilog_that_it_counted(project, ours, status, tmp_path, monkeypatch):
    report = report_of(project)
    report["verdicts"]["measured"] = {"reply": ours, "text": f"Fits xc7z020: {ours}, as our Verilog", "tone": "open"}
    found = {"simulation": {"left_out": "g++ was not found"}, "bitstream": None, "kernels": [], "part_family": None}
    finished = finished_run(tmp_path, report, **found, **{"synth(open)": {}, "route(ecp5)": None})
    monkeypatch.setattr("fpgaprune.flow.measure_run", lambda *_: finished)
    monkeypatch.setattr("fpgaprune.flow.counts_of_run", lambda _: [])
    done = CliRunner().invoke(app, ["measure", str(tmp_path), "--family", "xc7"])
    assert done.exit_code == status
    assert done.stdout.splitlines()[:2] == ["Accuracy kept", f"Fits xc7z020: {ours}, as our Verilog"]


def test_a_simulation_that_was_left_out_is_said(tmp_path, monkeypatch):
    manifest = {"config": {"target": {"part": "xc7z020"}}}
    found = {"simulation": {"left_out": "g++ was not found"}, "bitstream": None, "kernels": [], "part_family": None}
    finished = finished_run(tmp_path, report_of("yes"), manifest, **found, **{"synth(open)": {}, "route(ecp5)": None})
    monkeypatch.setattr("fpgaprune.flow.measure_run", lambda *_: finished)
    monkeypatch.setattr("fpgaprune.flow.counts_of_run", lambda _: [])
    done = CliRunner().invoke(app, ["measure", str(tmp_path), "--family", "xc7"])
    assert done.exit_code == 0
    assert "simulation  left out: g++ was not found" in done.stdout


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


def test_no_word_of_the_help_is_taken_for_markup():
    command = typer.main.get_command(app)
    for name, sub in command.commands.items():
        texts = [sub.help or "", *(getattr(option, "help", None) or "" for option in sub.params)]
        assert not [text for text in texts if re.search(r"\[[a-z_/]+\]", text)], name
