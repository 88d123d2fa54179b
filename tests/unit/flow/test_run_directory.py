"""RunDirectory: one run at a time, nothing of another's, digests that see every change."""

import subprocess
import sys

import pytest

from fpgaprune.errors import RunError
from fpgaprune.flow.run_directory import RunDirectory


def test_a_second_process_is_kept_out_by_name(tmp_path):
    run = RunDirectory(tmp_path / "run")
    code = (
        "import sys; from pathlib import Path; from fpgaprune.flow.run_directory import RunDirectory\n"
        "try:\n"
        "    with RunDirectory(Path(sys.argv[1])).locked(): print('entered')\n"
        "except Exception as error: print(error)\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "run")]
    with run.locked():
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        assert "is in use by process" in said
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == "entered"


def test_a_stage_is_current_until_key_or_artefact_changes(tmp_path):
    run = RunDirectory(tmp_path)
    run.file("a").write_text("1")
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "b").write_text("2")
    run.record("s", "key", {}, run.digests(["a", "tree"]), {"x": 1}, 0.5)
    again = RunDirectory.existing(tmp_path)
    assert again.is_current("s", "key")
    assert again.results("s") == {"x": 1}
    assert not again.is_current("s", "other")
    assert not again.is_current("t", "key")
    (tmp_path / "tree" / "c.so").write_text("compiled")
    assert again.is_current("s", "key")
    (tmp_path / "tree" / "b").write_text("3")
    assert not again.is_current("s", "key")
    (tmp_path / "tree" / "b").write_text("2")
    assert again.is_current("s", "key")
    run.file("a").unlink()
    assert not again.is_current("s", "key")


def test_folders_of_something_else_are_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(RunError, match=r"holds other files and no manifest\.json"):
        RunDirectory(tmp_path)
    with pytest.raises(RunError, match="is a file"):
        RunDirectory(tmp_path / "thesis.tex")
    with pytest.raises(RunError, match="is no run directory"):
        RunDirectory.existing(tmp_path / "gone")
    assert [entry.name for entry in tmp_path.iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize("content", ["", "[]", '{"format": 99, "stages": {}}', "{"])
def test_a_broken_manifest_is_refused(tmp_path, content):
    (tmp_path / "manifest.json").write_text(content)
    with pytest.raises(RunError, match=r"manifest\.json is no"):
        RunDirectory(tmp_path)
