"""Every example and every flow script runs as it stands, and stays small enough to read."""

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
EXAMPLES = sorted((CHECKOUT / "examples").glob("*.py"))
FLOWS = sorted((CHECKOUT / "flows").glob("*.py"))
# What open hardware tools take minutes for, and what the tutorial in the docs and the demo do, too.
SLOW = {"keras_to_bitstream.py", "open_hardware.py", "prune_to_report.py"}


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda path: path.name)
def test_examples_stay_small(script):
    assert len(script.read_text().splitlines()) <= 60


@pytest.mark.parametrize("script", FLOWS, ids=lambda path: path.name)
def test_flows_stay_a_page(script):
    assert len(script.read_text().splitlines()) <= 100


@pytest.mark.flow
@pytest.mark.parametrize(
    "script",
    [
        pytest.param(path, id=path.name, marks=[pytest.mark.slow] if path.name in SLOW else [])
        for path in [*EXAMPLES, *FLOWS]
    ],
)
def test_scripts_run(script, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    if script.name in SLOW:
        subprocess.run([sys.executable, str(script)], timeout=3600, check=True)
    else:
        # Within this process, which has loaded what takes a process of its own half of its time.
        runpy.run_path(str(script), run_name="__main__")
    assert capfd.readouterr().out
