"""Every file of a run has the digest that its manifest has of it."""

import json
import shutil

import numpy as np
import pytest

from fpgaprune.flow.run import RunDirectory, touched
from fpgaprune.flow.stages import stage_named

SINGLE = ("trained.keras", "estimate.json", "report.html", "measure.json")
FOLDERS = {
    "hls": ("README.md", "firmware/parameters.h", "firmware/weights/w2.h", "tb_data/tb_input_features.dat"),
    "rtl": ("project.json", "rtl/top.v"),
}


@pytest.fixture
def run(tmp_path):
    made = RunDirectory(tmp_path / "run")
    generator = np.random.default_rng(7)
    for name in (*SINGLE, *(f"{folder}/{name}" for folder, names in FOLDERS.items() for name in names)):
        path = made.file(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(generator.bytes(64))
    made.file("measure.json").write_text("null")
    with made.locked():
        made.record("train", "a", {}, made.digests(["trained.keras", "early.npz"]), {10: 1, 9: 2}, 1.0)
        made.record("hls", "b", made.digests(["trained.keras"]), made.digests(["hls"]), {}, 1.0)
        outputs = made.digests(["rtl", "estimate.json", "report.html", "measure.json"])
        made.record("report", "c", made.digests(["hls"]), outputs, {}, 1.0)
        made.write_certificate({"format": 1, "links": []})
    return made.path


def lines(path):
    run = RunDirectory.existing(path)
    return [*touched(run), *stage_named("measure").claims(run)]


def files(path):
    return sorted(str(file.relative_to(path)) for file in path.rglob("*") if file.is_file() and file.name != ".lock")


def test_an_untouched_run_has_nothing_to_say(run):
    assert lines(run) == []


def test_verilog_that_was_measured_and_cannot_be_read_is_one_line(run):
    (run / "measure.json").write_text("{}")
    (line,) = stage_named("measure").claims(RunDirectory.existing(run))
    assert "rtl/project.json is not a Verilog project" in line


def test_every_file_that_is_changed_gone_or_added_is_one_line(run):
    generator, noticed, tried = np.random.default_rng(1), 0, 0
    names = [name for name in files(run) if name != "manifest.json"]
    for name in names * 3:
        path = run / name
        data = path.read_bytes()
        flipped = bytearray(data)
        flipped[generator.integers(len(data))] ^= 1 << int(generator.integers(8))
        for content, word in (
            (bytes(flipped), "SHA-256 differs"),
            (data[: generator.integers(len(data))], "SHA-256 differs"),
            (None, "is gone"),
        ):
            path.unlink()
            if content is not None:
                path.write_bytes(content)
            (line,) = lines(run)
            noticed += name in line and word in line
            tried += 1
            path.write_bytes(data)
        if "/" not in name:
            continue
        # In the folders of a project an added file may be compiled.
        added = path.with_name(f"more_{path.name}")
        added.write_bytes(data)
        (line,) = lines(run)
        noticed += added.name in line and "was added" in line
        tried += 1
        added.unlink()
    assert noticed == tried >= 100
    assert lines(run) == []


def test_what_was_missing_at_first_and_whole_folders_are_seen(run):
    (run / "early.npz").write_text("late")
    shutil.rmtree(run / "rtl")
    said = lines(run)
    assert "early.npz was added; the run did not write it" in said
    assert sum("is gone" in line for line in said) == len(FOLDERS["rtl"])


@pytest.mark.parametrize(
    "name", [".lock", "trained_kernels/conv1.png", "synth/cached", "hls/net_prj/a.rpt", "notes.txt"]
)
def test_what_stands_beside_is_no_file_of_the_run(run, name):
    (run / name).parent.mkdir(parents=True, exist_ok=True)
    (run / name).write_text("beside")
    assert lines(run) == []


def change(path, edit, renewed=False):
    manifest = json.loads((path / "manifest.json").read_text())
    edit(manifest)
    (path / "manifest.json").write_text(json.dumps(manifest))
    if renewed:
        again = RunDirectory.existing(path)
        again.write_manifest()


@pytest.mark.parametrize(
    "edit",
    [
        lambda m: m["stages"]["train"].update(seconds=2.0),
        lambda m: m["stages"]["report"]["results"].update(metric=1.0),
        lambda m: m.update(config={}),
        lambda m: m.pop("digest"),
        lambda m: m["stages"].pop("hls"),
        lambda m: m["stages"]["hls"].pop("files"),
    ],
)
def test_a_changed_manifest_is_seen(run, edit):
    change(run, edit)
    assert "manifest.json does not have the digest of itself" in lines(run)[0]


def test_a_file_recorded_anew_breaks_the_chain_of_stages(run):
    (run / "trained.keras").write_bytes(b"another")
    other = RunDirectory.existing(run).digests(["trained.keras"])
    change(run, lambda m: m["stages"]["train"]["outputs"].update(other), renewed=True)
    (line,) = lines(run)
    assert line.startswith("manifest.json: stage 'hls' read another trained.keras than stage 'train' wrote")


def test_a_stage_that_was_done_anew_has_no_certificate_yet(run):
    again = RunDirectory.existing(run)
    again.record("report", "d", {}, again.digests(["report.html"]), {}, 1.0)
    assert any("has no digest of certificate.json" in line for line in lines(run))


def test_the_file_for_a_board_has_its_digest_in_what_was_measured(run):
    from fpgaprune.files import digest_file

    (run / "net.bit").write_bytes(b"bits")
    made = {"path": "net.bit", "sha256": digest_file(run / "net.bit")}
    (run / "measure.json").write_text(json.dumps({"bitstream": made}))
    shutil.rmtree(run / "rtl")
    again = RunDirectory.existing(run)
    record = again.manifest["stages"]["report"]
    record["outputs"] = again.digests([name for name in record["outputs"] if not name.startswith("rtl")])
    again.write_manifest()
    assert lines(run) == []
    (run / "net.bit").write_bytes(b"bitz")
    assert lines(run) == ["net.bit is not the file that the run wrote: its SHA-256 differs"]
    (run / "net.bit").unlink()
    assert lines(run) == ["net.bit is gone; the run wrote it"]
