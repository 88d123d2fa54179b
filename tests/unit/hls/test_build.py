"""Vendor tools of each backend, played by scripts on PATH that log their arguments and leave a report behind."""

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from fpgaprune import processes
from fpgaprune.backends import BACKENDS
from fpgaprune.errors import HlsError, ToolError
from fpgaprune.hls import HlsProject, build_commands
from fpgaprune.hls.readme import readme

from ..emulate.designs import mlp
from ..programs import play_tools, write_program

pytestmark = pytest.mark.skipif(os.name != "posix", reason="process groups are those of POSIX")
TOOLS = ("vitis-run", "vitis_hls", "vivado_hls", "vivado", "i++", "icpx", "catapult", "shls", "make", "cmake")


@pytest.fixture
def bench(tmp_path, monkeypatch):
    """A project folder with a space in its name, and a PATH on which only fake tools are found first."""
    (tmp_path / "my project").mkdir()
    return play_tools(tmp_path, monkeypatch, TOOLS)


def fake(bench: Path, *names: str, body: str = "") -> None:
    for name in names:
        write_program(
            bench / "bin" / name,
            f'#!/bin/sh\n{{ printf "%s" "{name}"; for a in "$@"; do printf "|%s" "$a"; done; echo; }} >> called.txt\n'
            f"{body or 'mkdir -p report; echo done | tee report/' + name.replace('+', 'p')}\n",
        )


def project(bench: Path, backend: str = "Vitis") -> HlsProject:
    return HlsProject(bench / "my project", replace(mlp(), backend=backend, part="xc7z020clg400-1"))


@pytest.mark.parametrize(
    ("backend", "tools", "steps", "calls"),
    [
        ("Vitis", ("vitis-run",), ("synth",), ["vitis-run|--mode|hls|--tcl|build_prj.tcl"]),
        ("Vitis", ("vitis_hls",), ("synth",), ["vitis_hls|-f|build_prj.tcl"]),
        (
            "Vivado",
            ("vivado_hls",),
            ("csim", "synth"),
            [
                "vivado_hls|-f|build_prj.tcl|reset=0 csim=1 synth=1 cosim=0 validation=0 export=0 vsynth=0 fifo_opt=0",
            ],
        ),
        (
            "VivadoAccelerator",
            ("vivado_hls", "vivado"),
            ("synth", "bitfile"),
            [
                "vivado_hls|-f|build_prj.tcl|reset=0 csim=0 synth=1 cosim=0 validation=0 export=0 vsynth=0 fifo_opt=0",
                "vivado|-mode|batch|-source|design.tcl",
            ],
        ),
        (
            "oneAPI",
            ("icpx", "cmake"),
            ("csim", "synth"),
            ["cmake|-S|.|-B|build", "cmake|--build|build|--target|fpga_emu", "cmake|--build|build|--target|report"],
        ),
        (
            "Catapult",
            ("catapult",),
            ("synth",),
            [
                'catapult|-product|ultra|-shell|-f|build_prj.tcl|-eval|set ::argv "reset=0 csim=0 synth=1 cosim=0 '
                'validation=0 export=0 vsynth=0 fifo_opt=0 bitfile=0"'
            ],
        ),
        ("Libero", ("shls",), ("csim", "synth", "vsynth"), ["shls|-s|sw_compile", "shls|-s|hw", "shls|-s|rtl_synth"]),
    ],
)
def test_each_backend_runs_its_tool(bench, backend, tools, steps, calls):
    fake(bench, *tools)
    heard = []
    build = project(bench, backend).build(steps, timeout_s=20, on_line=heard.append)
    assert (bench / "my project" / "called.txt").read_text().splitlines() == calls
    assert heard == ["done"] * len(calls)
    assert [run.log.read_text() for run in build.runs] == ["done\n"] * len(calls)
    assert all(run.log.name.startswith(f"build_{place}_") for place, run in enumerate(build.runs, start=1))
    assert (bench / "my project" / "report").is_dir()


def test_vitis_is_told_its_steps_in_a_file(bench):
    fake(bench, "vitis-run")
    project(bench).build(("synth", "vsynth"), timeout_s=20)
    options = (bench / "my project" / "build_opt.tcl").read_text()
    assert "synth      1" in options
    assert "vsynth     1" in options
    assert "cosim      0" in options


@pytest.mark.parametrize(
    ("backend", "tool", "product"),
    [
        ("Vitis", "vitis-run", "AMD Vitis"),
        ("Vivado", "vivado_hls", "AMD Vivado HLS"),
        ("oneAPI", "icpx", "oneAPI"),
        ("Catapult", "catapult", "Siemens Catapult"),
        ("Libero", "shls", "Microchip SmartHLS"),
    ],
)
def test_a_missing_tool_is_named_with_the_cure_and_the_command(bench, backend, tool, product):
    made = project(bench, backend)
    with pytest.raises(ToolError) as caught:
        made.build()
    message = str(caught.value)
    assert "\n" not in message
    assert f"{tool} (" in message
    assert product in message
    assert f"set {processes.tool_variable(tool)} to its path" in message
    assert str(made.path) in message
    assert message.endswith(" && ".join(_typed(c) for c in build_commands(made.design)))
    assert list(made.path.iterdir()) == []


def _typed(command):
    import shlex

    return shlex.join(command.arguments)


def test_a_tool_that_is_pointed_to_finds_its_siblings(bench, monkeypatch):
    for name in ("icpx", "sibling"):
        write_program(bench / "opt" / name, "#!/bin/sh\necho sibling > sibling.txt\n")
    fake(bench, "cmake", body="sibling")
    monkeypatch.setenv("FPGAPRUNE_ICPX", str(bench / "opt" / "icpx"))
    project(bench, "oneAPI").build(timeout_s=20)
    assert (bench / "my project" / "sibling.txt").exists()


def test_a_failing_tool_says_where_its_output_is_and_stops_the_build(bench):
    fake(bench, "cmake", body="echo no licence; exit 3")
    fake(bench, "icpx")
    with pytest.raises(ToolError, match=r"cmake ended with code 3 .*'no licence'.*build_1_cmake\.log"):
        project(bench, "oneAPI").build(timeout_s=20)
    assert len((bench / "my project" / "called.txt").read_text().splitlines()) == 1


def test_a_tool_that_runs_too_long_is_ended_with_its_children(bench):
    fake(bench, "vitis-run", body="sleep 60 & echo $! > child.txt; sleep 60")
    started = time.monotonic()
    with pytest.raises(ToolError, match=r"ran longer than 0\.5 s"):
        project(bench).build(timeout_s=0.5)
    assert time.monotonic() - started < 20
    child = (bench / "my project" / "child.txt").read_text().strip()
    status = Path("/proc", child, "status")
    assert not status.exists() or "\nState:\tZ" in status.read_text()


def test_a_step_that_a_backend_has_not_is_refused(bench):
    with pytest.raises(
        HlsError, match="backend oneAPI has no build step 'export'; wanted some of csim, synth, cosim, vsynth"
    ):
        project(bench, "oneAPI").build(("export",))
    with pytest.raises(HlsError, match="there is no step to build"):
        project(bench).build(())


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_readme_says_what_to_run(backend):
    design = replace(mlp(), backend=backend, part="some-part")
    text = readme(design)
    assert text == readme(design)
    for command in build_commands(design):
        assert _typed(command) in text
        assert command.product in text
    assert "some-part" in text
    assert ("build_lib.sh" in text) == BACKENDS[backend].compiles
    assert ("`build_opt.tcl` says which steps" in text) == (backend == "Vitis")
    assert "weights: 4, of which 0 are zero" in text


def test_what_is_no_project_cannot_be_opened(tmp_path):
    with pytest.raises(HlsError, match="is not a project that fpgaprune wrote"):
        HlsProject.open(tmp_path)
