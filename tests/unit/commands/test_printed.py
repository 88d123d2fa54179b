"""What commands print and hand on, with the work itself replaced: whole lines, no markup, JSON where asked."""

import json
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from msgspec import structs
from typer.testing import CliRunner

from fpgaprune.cli import app
from fpgaprune.commands import (
    by_pattern,
    parse_sparsity,
    print_advice,
    print_next_of_run,
    read_max_loss,
    receiver_of,
)
from fpgaprune.errors import ConfigError
from fpgaprune.flow import RunDirectory
from fpgaprune.layout import Advice, DesignLayout, Shortage
from fpgaprune.measure import Figure, Resources, to_plain
from fpgaprune.target import Target
from fpgaprune.values import MaskSet

LONG = "a sentence of a hundred words and more, 12 % of which are 'numbers', goes on behind the 80th column of a line"


def printed(*arguments):
    done = CliRunner().invoke(app, list(map(str, arguments)))
    assert done.exception is None, done.output
    return done.output


def replaced(monkeypatch, name, value):
    monkeypatch.setattr(f"fpgaprune.flow.{name}", lambda *_, **__: value)


@pytest.fixture
def model(tmp_path, monkeypatch):
    """A file that passes for a model."""
    replaced(monkeypatch, "require_kind", None)
    path = tmp_path / "m.keras"
    path.write_bytes(b"")
    return path


def test_options_are_one_value_or_values_by_glob():
    assert parse_sparsity(None) is None
    assert parse_sparsity([]) is None
    assert parse_sparsity(["0.8"]) == 0.8
    assert parse_sparsity(["a*=0.5", "b=0.25"]) == {"a*": 0.5, "b": 0.25}


def test_a_loss_has_its_unit():
    assert read_max_loss(None) is None
    assert read_max_loss("0") == "0 %"
    assert read_max_loss("0.5%") == "0.5 %"
    with pytest.raises(
        ConfigError, match=r'--max-loss: 0\.5 has no unit: write "0\.5 %", or "50 %" if it is a fraction'
    ):
        read_max_loss("0.5")
    for wrong in ("-1", "nan", "much", "-1 %"):
        with pytest.raises(ConfigError, match=f"--max-loss: '{wrong}' is no loss; wanted a text in per cent"):
            read_max_loss(wrong)


def test_values_by_pattern_are_all_or_none():
    assert by_pattern(["a=b=c"], "--fixed") == {"a": "b=c"}
    with pytest.raises(ConfigError, match="--fixed is given x, a=y; wanted one value"):
        by_pattern(["x", "a=y"], "--fixed")


@pytest.mark.parametrize("as_json", [True, False])
def test_a_selection_has_the_defaults_of_the_library_and_counts_its_locks(model, tmp_path, monkeypatch, as_json):
    mask = np.ones((3, 4), bool)
    mask[1] = False
    heard = []

    def chosen(path, settings, *_):
        heard.append(settings)
        return MaskSet({"c/kernel": mask}), [], []

    monkeypatch.setattr("fpgaprune.flow.select_masks", chosen)
    said = printed("select", model, "--sparsity", "0.5", "--out", tmp_path / "m.npz", *["--json"] * as_json)
    (settings,) = heard
    assert (settings.sparsity, settings.min_free_channels, settings.min_free, settings.samples) == (0.5, 0.125, 1, None)
    if as_json:
        assert json.loads(said)["weights"] == {"c/kernel": {"locked": 4, "elements": 12}}
    else:
        assert any(line.split()[-3:] == ["c/kernel", "4", "12"] for line in said.splitlines())
        assert "nothing is locked" not in said


def test_a_selection_that_locks_nothing_says_which_options_do(model, tmp_path, monkeypatch):
    free = MaskSet({"c/kernel": np.ones((3, 4), bool)})
    monkeypatch.setattr("fpgaprune.flow.select_masks", lambda *_: (free, [], []))
    said = printed("select", model, "--out", tmp_path / "m.npz")
    assert "nothing is locked; give --sparsity 0.6, --filters 0.5, --lock, --masks, --zeros or --fixed" in said


ON_A_TANG_NANO = SimpleNamespace(read_report=lambda: {"target": {"part": {"name": "gw1nr-9", "vendor": "Gowin"}}})


@pytest.mark.parametrize(
    ("held", "problems", "said"),
    [
        ([False], [], "every locked element is exactly zero\n"),
        ([False, True], [], "every locked element is exactly zero or has the value that it is held at\n"),
        ([False], ["keras: 1 of 9 locked elements are not zero"], None),
    ],
)
def test_verify_says_of_locked_elements_what_was_compared_and_nothing_if_one_is_wrong(
    tmp_path, monkeypatch, held, problems, said
):
    links = [SimpleNamespace(link="keras", weights=(), locked=9, violations=0, held=one) for one in held]
    replaced(monkeypatch, "require_kind", None)
    replaced(monkeypatch, "verify_run", (links, problems))
    replaced(monkeypatch, "RunDirectory", ON_A_TANG_NANO)
    done = CliRunner().invoke(app, ["verify", str(tmp_path)])
    assert done.exit_code == bool(problems)
    assert ("every locked element" in done.stdout) == (said is not None)
    assert said is None or said in done.stdout


@pytest.mark.parametrize("as_json", [True, False])
def test_a_verified_run_is_json_or_a_table(tmp_path, monkeypatch, as_json):
    replaced(monkeypatch, "require_kind", None)
    link = SimpleNamespace(link="keras", weights=(), locked=0, violations=0, to_json=lambda: {"link": "keras"})
    replaced(monkeypatch, "verify_run", ([link], []))
    replaced(monkeypatch, "RunDirectory", ON_A_TANG_NANO)
    said = printed("verify", tmp_path, *["--json"] * as_json)
    if as_json:
        assert json.loads(said)["ok"] is True
    else:
        assert "nothing is locked, so there is nothing to check" in said
        assert said.endswith(f"next        fpgaprune export {tmp_path} --for tang-nano-9k\n")


def test_paths_and_notes_are_whole_lines_without_colours(model, tmp_path, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    path = tmp_path / ("x" * 90) / "[red]" / "c.png"
    replaced(monkeypatch, "inspect_model", {"layers": [], "heat_maps": [str(path)]})
    assert str(path) in printed("inspect", model)
    found = {"errors": {}, "designs": [], "moved": [], "notes": [LONG]}
    replaced(monkeypatch, "calibrate_folders", found)
    out = tmp_path / "[red].toml"
    *_, moved, note, following = printed("calibrate", tmp_path, "--out", out).splitlines()
    assert following.startswith(f"next        fpgaprune estimate {tmp_path} --calibration ")
    assert (moved, note) == (f"0 coefficients changed; written to {out}", LONG)


def test_rows_are_priced_a_line_each(tmp_path, monkeypatch):
    rows, refusal = [{"id": "a"}, {"id": "b"}], SimpleNamespace(line=3, reason="it has no layers")
    monkeypatch.setattr(import_module("fpgaprune.estimate"), "estimate_designs_file", lambda *_: (rows, [refusal]))
    done = CliRunner().invoke(app, ["estimate", "--designs", str(tmp_path / "rows.jsonl")])
    assert [json.loads(line) for line in done.stdout.splitlines()] == rows
    assert "refused: line 3: it has no layers" in done.stderr
    assert done.exit_code == 1


def test_advice_is_printed_with_its_notes(capsys):
    now = DesignLayout("part", {"lut": 200}, Resources(lut=Figure(300, 250, 350)), 1, 1)
    shortage = Shortage("lut", Figure(300, 250, 350), 200, ())
    advice = Advice("net", "part", now, (shortage,), notes=(LONG,))
    print_advice(advice)
    said = " ".join(capsys.readouterr().out.split())
    assert "what would make net fit" in said
    assert LONG in said
    # A number and its % stand in one line, wherever that ends.
    for start in range(70, 80):
        print_advice(structs.replace(advice, notes=("x" * start + " (25–33 %) of them",)))
        assert "33 %)" in capsys.readouterr().out
    print_advice(structs.replace(advice, shortages=()))
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("kept", "lost", "fits", "suggestions", "said"),
    [
        ("no", 0.5, "yes", [], "run r/flow.toml --epochs 100 --out r"),
        ("unknown", 0.5, "yes", [], "run r/flow.toml --epochs 100 --out r"),
        ("unknown", 0.1, "yes", [], "export r --for vivado"),
        ("no", 0.1, "yes", [], "run r/flow.toml --epochs 100 --out r"),
        ("unknown", None, "yes", [], "export r --for vivado"),
        ("yes", 0.0, "probably", [{"place": "model"}, {"place": "flow file"}], "apply r 2"),
        ("yes", 0.0, "no", [{"place": "model"}], "fit r/flow.toml"),
        ("yes", 0.0, "probably", [], "export r --for vivado"),
        ("yes", 0.0, "yes", [{"place": "flow file"}], "export r --for vivado"),
    ],
)
def test_the_next_command_follows_from_the_two_answers(capsys, kept, lost, fits, suggestions, said):
    report = {
        "metric": {"lost": lost, "lost_error": 0.06},
        "verdicts": {"metric": {"reply": kept}, "fit": {"reply": fits}},
        "advice": {"suggestions": suggestions},
        "target": {"part": {"name": "xc7none", "vendor": "AMD"}},
    }
    print_next_of_run(Path("r"), report)
    assert capsys.readouterr().out == f"next        fpgaprune {said}\n"


@pytest.mark.parametrize(
    ("asked", "board"),
    [
        ("basys3", "basys3"),
        ("arty-a7-35", "arty-a7-35"),
        ("xc7a35t", "arty-a7-35"),
        ("xc7z020clg400-1", "pynq-z2"),
        ("ulx3s-25f", "ulx3s-25f"),
        ("colorlight-i5", "colorlight-i5"),
        ("LFE5U-25F-6BG381C", "colorlight-i5"),
    ],
)
def test_a_run_for_a_board_is_exported_for_that_board(asked, board):
    assert receiver_of(to_plain(Target.of(asked))) == board


def test_a_run_says_what_it_came_to(tmp_path, monkeypatch):
    side = {"fits": True, "fits_upper": False, "latency_cycles": 1234}
    metric = {"name": "accuracy", "value": 0.9, "error": 0.0, "samples": 1000}
    metric |= {"higher_is_better": True, "is_fraction": True}
    counts = {"locked": 0, "elements": 9, "digest": "", "additions": [], "changes": []}
    stages = {
        "finetune": {**counts, "metric": metric, "warnings": ["[red] did not converge"]},
        "hls": {
            **dict.fromkeys(("advice", "precision", "build")),
            "notes": [],
            "free_locks": {},
            "emulation": {**metric, "agreement": 0.975},
            "simulation": {"left_out": "no [red] compiler"},
        },
        "estimate": {"before": {**side, "fits": False}, "after": side, "advice": None},
    }
    out = tmp_path / "[red]"
    finished = RunDirectory(out)
    out.mkdir()
    for name, results in stages.items():
        finished.record(name, "key", {}, {}, results, 1.0)
    answers = {"metric": "Accuracy kept", "fit": "Fits xc7z020: yes"}
    verdicts = {about: {"text": text, "tone": "good", "reply": "yes"} for about, text in answers.items()}
    target = {"part": {"name": "xc7z020", "vendor": "AMD"}}
    answered = {"metric": {"lost": 0.0}, "verdicts": verdicts, "target": target}
    (out / "report.json").write_text(json.dumps({**answered, "checks": []}))
    monkeypatch.setattr("fpgaprune.flow.run_flow", lambda *_, **__: finished)
    estimated = "1,234 cycles (analytic estimate for logic synthesis)"
    *lines, _, following = printed("run", "--out", out).splitlines()
    assert following == f"next        fpgaprune export '{out}' --for pynq-z2"
    assert lines == [
        "Accuracy kept",
        "Fits xc7z020: yes",
        "warning: [red] did not converge",
        "hardware    gives the same class as Keras for 97.50 % of 1,000 samples",
        "compiled    left out: no [red] compiler",
        f"before      does not fit, {estimated}",
        f"after       fits by the middle of its range, not by the upper end, {estimated}",
        f"report      {out / 'report.html'}",
    ]
