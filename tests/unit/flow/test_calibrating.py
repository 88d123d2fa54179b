"""`fpgaprune calibrate` on run folders with vendor reports."""

import json
from dataclasses import replace

import pytest

from fpgaprune.errors import RunError
from fpgaprune.estimate import read_own_calibration
from fpgaprune.flow.finished import calibrate_folders
from fpgaprune.flow.run import price
from tests.unit.estimate.designs import cnn
from tests.unit.vendor.texts import csynth


@pytest.fixture
def runs(tmp_path):
    """Three runs whose tool reports 1.5 times the LUTs and 1.2 times the flip-flops that the estimate says."""
    folders = []
    for seed in range(3):
        folder = tmp_path / f"run{seed}"
        (folder / "hls").mkdir(parents=True)
        replace(cnn(seed=seed, zeros=0.3 * seed), name="digits").save(folder / "design.json")
        (made,) = price(folder).values()
        total = {name: str(made.total["csynth"][name.lower()].value) for name in ("LUT", "FF", "DSP")}
        total["LUT"] = str(round(int(total["LUT"]) * 1.5))
        total["FF"] = str(round(int(total["FF"]) * 1.2))
        total["BRAM"] = "0"
        (folder / "hls" / "digits_csynth.rpt").write_text(csynth(design="digits", total=total, instances={}))
        folders.append(folder)
    return folders


def test_estimates_follow_the_reports(runs, tmp_path):
    out = tmp_path / "mine.toml"
    found = calibrate_folders(runs, out)
    assert found["designs"] == ["run0", "run1", "run2"]
    lut = found["errors"]["csynth.lut"]
    assert lut["before"] == pytest.approx(1 / 3, abs=1e-3)
    assert lut["after"] < 0.05
    assert lut["left_out"] < 0.1
    assert "csynth.lut" in json.dumps(found)
    (before,), (after,) = price(runs[0]).values(), price(runs[0], calibrated=read_own_calibration(out)).values()
    ratio = after.total["csynth"].lut.value / before.total["csynth"].lut.value
    assert 1.4 < ratio < 1.6


def test_folders_without_reports_are_refused_and_nothing_is_written(runs, tmp_path):
    for folder in runs:
        (folder / "hls" / "digits_csynth.rpt").unlink()
    with pytest.raises(RunError, match="holds a vendor report beside its design"):
        calibrate_folders(runs, tmp_path / "mine.toml")
    assert not (tmp_path / "mine.toml").exists()


def test_a_report_that_cannot_be_read_is_named_and_the_others_count(runs, tmp_path):
    whole = calibrate_folders(runs, tmp_path / "whole.toml")
    assert whole["notes"] == []
    broken = runs[1] / "hls" / "cut_csynth.rpt"
    broken.write_text(csynth(design="digits")[:2000])
    found = calibrate_folders(runs, tmp_path / "mine.toml")
    assert found["errors"] == whole["errors"]
    (note,) = found["notes"]
    assert note.startswith("run1: not read: ")
    assert str(broken) in note
    assert "cut off" in note


def test_where_every_report_is_broken_the_refusal_says_why(runs, tmp_path):
    for folder in runs:
        (folder / "hls" / "digits_csynth.rpt").write_text(csynth(design="digits")[:2000])
    with pytest.raises(RunError, match=r"beside its design \(run0: not read: .*digits_csynth\.rpt.*cut off"):
        calibrate_folders(runs, tmp_path / "mine.toml")
