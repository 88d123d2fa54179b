"""`verify` names every file of a run that was changed, cut or deleted, or added to the folders of its projects."""

import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from fpgaprune.flow.engine import verify_run

PROGRAM = Path(__file__).with_name("killed_flow.py")


@pytest.mark.slow
@pytest.mark.flow
def test_every_touched_file_is_named(tmp_path, capsys):
    # One undisturbed run, and none that is killed.
    subprocess.run([sys.executable, str(PROGRAM), "flow", str(tmp_path), "0", "1", "1"], check=True, timeout=600)
    run = tmp_path / "undisturbed"
    assert verify_run(run)[1] == []
    # A person may change the flow, and the page that says what the files are; no claim rests on them.
    free = {run / ".lock", run / "flow.toml", run / "README.md"}
    files = sorted(path for path in run.rglob("*") if path.is_file() and path not in free)
    rng = np.random.default_rng(1)
    tried, named = Counter(), Counter()
    for number in range(max(200, 2 * len(files))):
        path = files[number % len(files)]
        data, how = (
            path.read_bytes(),
            ("changed", "cut", "deleted", "added")[int(rng.integers(3 + (path.parent != run)))],
        )
        touched = path
        if how == "changed":
            flipped = bytearray(data)
            flipped[int(rng.integers(len(data)))] ^= 1 << int(rng.integers(8))
            path.write_bytes(flipped)
        elif how == "cut":
            path.write_bytes(data[: int(rng.integers(len(data)))])
        elif how == "deleted":
            path.unlink()
        else:
            touched = path.with_name(f"more_{path.name}")
            touched.write_bytes(data)
        problems = verify_run(run)[1]
        tried[how] += 1
        named[how] += any(touched.name in line for line in problems) and all("\n" not in line for line in problems)
        if how == "added":
            touched.unlink()
        path.write_bytes(data)
    with capsys.disabled():
        sys.stdout.write(
            f"\ntouched files named: {', '.join(f'{how} {named[how]} of {tried[how]}' for how in tried)}\n"
        )
    assert named == tried
    assert verify_run(run)[1] == []
    shutil.rmtree(run / "hls")
    assert sum(" is gone" in line for line in verify_run(run)[1]) > 80
