"""A run that was killed anywhere, and resumed, ends with the bytes of an undisturbed one."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("killed_flow.py")


def drill(folder, capsys, kind, *numbers):
    command = [sys.executable, str(PROGRAM), kind, str(folder), *map(str, numbers)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=3600)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    with capsys.disabled():
        sys.stdout.write(
            f"\n{found['kills']} kills in {found['runs']} runs, {found['same']} ended with the bytes of an undisturbed "
            f"one; killed in: {', '.join(f'{stage} {count}' for stage, count in found['stages'].items())}\n"
        )
    return found


def test_a_kill_before_any_change_of_a_file_changes_nothing(tmp_path, capsys):
    found = drill(tmp_path, capsys, "files", 0, 0, 1)
    assert found["kills"] == found["runs"] == found["changes"] >= 50
    assert found["differing"] == []
    assert set(found["stages"]) == {"before the manifest", "train", "hls", "measure", "certificate"}


@pytest.mark.slow
@pytest.mark.flow
def test_kills_in_every_stage_of_a_flow_change_nothing(tmp_path, capsys):
    runs = int(os.environ.get("FPGAPRUNE_KILLED_RUNS", "34"))
    found = drill(tmp_path, capsys, "flow", runs, 5, 1)
    assert found["kills"] >= 3 * runs
    assert found["differing"] == []
    assert {"train", "finetune", "remove", "export", "hls"} <= set(found["stages"])
