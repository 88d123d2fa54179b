"""Every example and every flow script runs as it stands, and stays small enough to read."""

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
def test_scripts_run(script, tmp_path):
    limit = 3600 if script.name in SLOW else 600
    done = subprocess.run([sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, timeout=limit)
    assert done.returncode == 0, done.stderr
    assert done.stdout
