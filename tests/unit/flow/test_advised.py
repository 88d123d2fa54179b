"""Advice on a run: the stage `estimate`, its artefact, and the command."""

import json
import tomllib
from dataclasses import replace

import pytest
from typer.testing import CliRunner

import fpgaprune as fp
from fpgaprune.cli import app
from fpgaprune.errors import RunError
from fpgaprune.flow import apply_change
from fpgaprune.flow.engine import parse_config
from fpgaprune.flow.run import RunDirectory
from fpgaprune.flow.stages import StageContext, stage_named
from tests.unit.estimate.designs import cnn

SMALL = 'family = "Mine"\nvendor = "AMD"\nsource = "a data sheet"\ndate = "2026-01-01"\n[[part]]\nname = "mine"\n'


@pytest.fixture
def run(tmp_path):
    """A run up to its designs, before and after pruning, for a part that is too small for either."""
    (tmp_path / "mine.toml").write_text(SMALL + "lut = 3000\nff = 9000\ndsp = 100\nbram18 = 100\n")
    (tmp_path / "run").mkdir()
    directory = RunDirectory(tmp_path / "run")
    for name, zeros in (("design_trained.json", 0.0), ("design.json", 0.5)):
        replace(cnn(zeros=zeros), part=str(tmp_path / "mine.toml")).save(directory.file(name))
    return directory


def test_the_stage_estimates_both_sides_and_advises_only_if_asked(run, tmp_path):
    asked = {"name": "net", "target": {"part": "mine.toml"}, "estimate": {"advice": False}}
    config = parse_config(asked, "flow.toml", tmp_path)
    found = stage_named("estimate").run(StageContext(run, config, None, None))
    written = json.loads(run.file("estimate.json").read_text())
    assert found.advice is written["advice"] is None
    assert {side: getattr(found, side).fits for side in ("before", "after")} == {"before": False, "after": False}
    assert found.after.fits_upper is False


def test_the_command_prints_the_same_and_the_best_first(run):
    shown = CliRunner().invoke(app, ["estimate", str(run.path), "--json"])
    assert shown.exit_code == 0
    advice = json.loads(shown.stdout)["advice"]
    trained, design = (fp.Design.load(run.file(name)) for name in ("design_trained.json", "design.json"))
    assert advice == json.loads(json.dumps(fp.advise(design, trained=trained).to_json()))
    text = CliRunner().invoke(app, ["estimate", str(run.path)]).stdout
    assert "does not fit mine" in text
    assert "what would make cnn fit" in text
    for number, suggestion in enumerate(advice["suggestions"][:3], start=1):
        assert f"{number}. {suggestion['knob']}" in text
        assert all(f"    {line}" in text for line in suggestion["change"].splitlines() if line)


def test_a_design_that_fits_is_left_in_peace(tmp_path):
    cnn().save(tmp_path / "design.json")
    text = CliRunner().invoke(app, ["estimate", str(tmp_path / "design.json")]).stdout
    assert "fits xc7z020, also by its upper end; figures: analytic estimate for logic synthesis" in text
    assert "what would make" not in text


def test_a_change_is_a_new_run_beside_the_old_one(run, tmp_path, monkeypatch):
    target = {"part": str(tmp_path / "mine.toml")}
    run.manifest["config"] = json.loads(parse_config({"name": "net", "target": target}, "x").model_dump_json())
    run.write_manifest()
    trained, design = (fp.Design.load(run.file(name)) for name in ("design_trained.json", "design.json"))
    advice = fp.advise(design, trained=trained).to_json()
    run.write_json("estimate.json", {"advice": None})
    with pytest.raises(RunError, match=r"has no change 1: its report suggests none; fpgaprune fit looks for a smaller"):
        apply_change(run.path, 1)
    run.write_json("estimate.json", {"advice": advice})
    (run.path / ".lock").write_text("process 1")
    number, change = next((n, s["change"]) for n, s in enumerate(advice["suggestions"], 1) if s["place"] == "flow file")
    ran = []
    monkeypatch.setattr(
        "fpgaprune.flow.finished.run_advice.run_flow", lambda config, folder, _: ran.append((config, folder))
    )
    with pytest.raises(RunError, match="has no change 99"):
        apply_change(run.path, 99)
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == ["run"]
    for _ in range(2):  # the second time the folder is there, and its run goes on
        apply_change(run.path, number)
    folder = tmp_path / f"run-{number}"
    assert [where for _, where in ran] == [folder] * 2
    assert {path.name for path in folder.iterdir()} == {path.name for path in run.path.iterdir()} - {".lock"}
    wanted = parse_config(tomllib.loads(change), "change").model_dump(exclude_defaults=True)
    done = ran[0][0].model_dump()
    assert wanted
    assert all(done[section][key] == value for section, table in wanted.items() for key, value in table.items())
