"""RunDirectory: one run at a time, nothing of another's, digests that see every change."""

import json
import subprocess
import sys

import pytest

from fpgaprune.errors import RunError
from fpgaprune.flow.run import RunDirectory


def test_a_second_process_is_kept_out_by_name(tmp_path):
    run = RunDirectory(tmp_path / "run")
    code = (
        "import sys; from pathlib import Path; from fpgaprune.flow.run import RunDirectory\n"
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


def test_a_folder_that_a_kill_left_before_its_manifest_is_taken_up(tmp_path):
    # The lock, drafts and an artefact of the first stage.
    for name in (".manifest.json.abc.partial", ".hls.x.partial", "trained.keras"):
        (tmp_path / name).mkdir() if name.startswith(".hls") else (tmp_path / name).write_text("half")
    with pytest.raises(RunError, match="holds other files"):
        RunDirectory(tmp_path)
    (tmp_path / ".lock").write_text("process 77")
    with RunDirectory(tmp_path).locked():
        assert {entry.name for entry in tmp_path.iterdir()} == {".lock", "trained.keras"}


def test_drafts_are_dropped_under_the_lock_only(tmp_path):
    run = RunDirectory(tmp_path)
    run.write_manifest()
    (tmp_path / "rtl" / "rtl").mkdir(parents=True)
    drafts = [tmp_path / ".hls.x.partial", tmp_path / "rtl" / "rtl" / ".a.v.y.partial"]
    for draft in drafts:
        draft.mkdir()
        (draft / "file").write_text("")
    kept = [tmp_path / "notes.partial", tmp_path / ".hidden"]
    for path in kept:
        path.write_text("")
    run.require_unused()
    assert all(draft.exists() for draft in drafts)
    with run.locked(["rtl"]):
        assert not any(draft.exists() for draft in drafts)
    assert all(path.exists() for path in kept)


def test_a_directory_in_use_is_known_before_anything_is_prepared(tmp_path):
    run = RunDirectory(tmp_path / "run")
    run.require_unused()
    assert not (tmp_path / "run").exists()
    with run.locked(), pytest.raises(RunError, match=r"is in use by process \d+; wait for it"):
        RunDirectory(tmp_path / "run").require_unused()
    run.require_unused()


def test_what_a_vendors_tool_adds_to_a_project_leaves_the_stage_current(tmp_path):
    run = RunDirectory(tmp_path)
    source = tmp_path / "hls" / "firmware" / "defines.h"
    source.parent.mkdir(parents=True)
    source.write_text("1")
    run.record("hls", "key", {}, run.digests(["hls"]), {}, 0.5)
    reports = tmp_path / "hls" / "tiny_prj" / "solution1" / "syn" / "report"
    reports.mkdir(parents=True)
    (reports / "csynth.xml").write_text("<profile/>")
    for name in ("vivado_synth.rpt", "vitis_hls.log", "firmware/tiny-0123abcd"):
        (tmp_path / "hls" / name).write_text("")
    assert RunDirectory.existing(tmp_path).is_current("hls", "key")
    (tmp_path / "hls" / "firmware" / "more.h").write_text("")
    assert not RunDirectory.existing(tmp_path).is_current("hls", "key")


def test_folders_of_something_else_are_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(RunError, match=r"holds other files and no manifest\.json"):
        RunDirectory(tmp_path)
    with pytest.raises(RunError, match="is a file"):
        RunDirectory(tmp_path / "thesis.tex")
    with pytest.raises(RunError, match="is not a run folder"):
        RunDirectory.existing(tmp_path / "gone")
    assert [entry.name for entry in tmp_path.iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize("content", ["", "[]", '{"format": 99, "stages": {}}', "{"])
def test_a_broken_manifest_is_refused(tmp_path, content):
    (tmp_path / "manifest.json").write_text(content)
    with pytest.raises(RunError, match=r"manifest\.json is no"):
        RunDirectory(tmp_path)


def test_a_lock_that_is_no_text_is_none_of_a_run(tmp_path):
    (tmp_path / ".lock").write_bytes(b"process \xff")
    (tmp_path / "trained.keras").write_text("")
    with pytest.raises(RunError, match="holds other files"):
        RunDirectory(tmp_path)


@pytest.mark.parametrize(
    ("outputs", "is_sound"),
    [
        ({"a": "0f"}, True),
        ({"a/b": None}, True),
        ({"a": 3}, False),
        ({"../a": "0f"}, False),
        ({"/a": "0f"}, False),
        ({"a/~": "0f", "~": None}, False),
        ([], False),
    ],
)
def test_a_manifest_names_files_of_its_own_folder_and_their_digests(tmp_path, outputs, is_sound):
    record = {"key": "k", "results": {}, "seconds": 1.0, "inputs": {}, "outputs": outputs}
    (tmp_path / "manifest.json").write_text(json.dumps({"format": 1, "stages": {"s": record}}))
    if is_sound:
        assert RunDirectory(tmp_path).manifest["stages"]["s"]["outputs"] == outputs
    else:
        with pytest.raises(RunError, match=r"manifest\.json is no"):
            RunDirectory(tmp_path)


def test_a_report_without_answers_is_refused_in_one_line(tmp_path):
    run = RunDirectory(tmp_path)
    with pytest.raises(RunError, match=r"has no report\.json, because the run has not ended; run the flow again"):
        run.read_report()
    run.write_json("report.json", {"checks": [], "metric": {}})
    with pytest.raises(RunError, match=r"report\.json has no answers, because an earlier fpgaprune wrote it; run the"):
        run.read_report()
    run.write_json("report.json", {"verdicts": {"fit": {"reply": "yes"}}})
    assert run.read_report()["verdicts"]["fit"] == {"reply": "yes"}
