"""A run folder explains itself: its flow file means the flow that ran, and its README names what is there."""

import tomllib

import pytest

from fpgaprune.flow import MEANINGS, STAGES, RunDirectory
from fpgaprune.flow.engine import parse_config, write_guide

VERDICTS = {about: {"text": f"about {about}", "reply": "yes", "tone": "good"} for about in ("metric", "fit")}


def guided(folder, document, **report):
    """The folder of a run of the flow `document` with a report."""
    run = RunDirectory(folder)
    folder.mkdir()
    run.manifest["config"] = parse_config(document, "x").model_dump(mode="json")
    run.write_manifest()
    run.write_json("report.json", {"verdicts": VERDICTS, "measured": None, **report})
    write_guide(run)
    return folder


@pytest.mark.parametrize(
    "document",
    [
        {"name": "net"},
        {"select": {"sparsity": {"conv*/kernel": 0.5}}, "hls": {"layers": {"a b": {"weight_bits": 3}}}},
        {"finetune": {"schedule": {"kind": "rounds", "rounds": 2}}, "verdict": {"max_loss": "1 %"}},
    ],
)
def test_the_flow_file_means_the_flow_that_ran_with_and_without_its_comments(tmp_path, document):
    text = (guided(tmp_path / "run", document) / "flow.toml").read_text()
    wanted = parse_config(document, "x")
    assert parse_config(tomllib.loads(text), "flow.toml") == wanted
    keys = [line.removeprefix("# ") if " = " in line else line for line in text.splitlines()[2:]]
    assert parse_config(tomllib.loads("\n".join(keys)), "flow.toml") == wanted
    # A key that the flow leaves out has a place.
    assert "# activation_bits = 8" in text


def test_the_readme_names_the_files_that_are_there_and_three_commands(tmp_path):
    folder = guided(tmp_path / "run", {"name": "net"})
    text = (folder / "README.md").read_text()
    assert "- about metric\n- about fit\n" in text
    assert "| [flow.toml](flow.toml) |" in text
    assert "masks.npz" not in text
    assert [line.split()[2] for line in text.splitlines() if line.startswith("$ ")] == ["verify", "measure", "export"]
    better = guided(tmp_path / "other", {"name": "net"}, advice={"suggestions": [{}]})
    assert "$ fpgaprune apply . 1" in (better / "README.md").read_text()


def test_every_artefact_of_a_run_has_a_meaning():
    assert {name for stage in STAGES for name in stage.outputs} <= MEANINGS.keys()
