"""Runs side by side: every figure of both reports, the change of each count, and only the settings that differ."""

import json

import pytest
from typer.testing import CliRunner

from fpgaprune.cli import app
from fpgaprune.errors import ConfigError, RunError
from fpgaprune.flow import ComparedRuns, compare_runs
from fpgaprune.flow.run import FORMAT
from fpgaprune.measure import Figure, Resources, StagedCounts
from fpgaprune.report import MINUS, NO_BREAK, Metric, write_report
from tests.unit.report.samples import conv, estimate, measured, run_report

CONFIG = {"name": "a", "select": {"sparsity": 0.6, "granularity": "kernel"}, "hls": {"layers": {"conv1": {"reuse": 4}}}}


def counts(lut):
    figure = Figure(5000, 4800, 5200)
    return StagedCounts("digits", 100, ("xc7",), Resources(lut=figure), Resources(lut=lut), Resources(lut=9000))


def finished(folder, config, data=None, **changes):
    write_report(folder, run_report(**changes))
    manifest = {"format": FORMAT, "stages": {}, "config": config, "data": data}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


@pytest.fixture
def runs(tmp_path):
    first = finished(tmp_path / "first", CONFIG, measured=measured(), counts=[counts(5432)])
    metric = Metric("accuracy", 0.975, 0.96, 360, "digits", hardware=0.95, errors={"hardware": 0.011}, lost=0.025)
    config = {"name": "b", "select": {"sparsity": 0.8, "granularity": "kernel"}, "hls": {"layers": {}}}
    second = finished(
        tmp_path / "second", config, metric=metric, after=estimate(0.2), layers=[conv("conv1", (1, 16), 0.25)]
    )
    return first, second


def values(found: ComparedRuns) -> dict:
    return {(row.group, row.figure): row.values for row in found.rows}


def test_every_figure_of_both_stands_in_its_group(runs):
    found = compare_runs(runs)
    assert found.names == ("first", "second")
    said = values(found)
    assert said["accuracy", "in hardware"] == (None, "95.00 ± 1.10 %")
    assert said["answers", "kept"] == ("yes", "unknown")
    assert said["answers", "part"] == ("xc7z020", "xc7z020")
    # The estimates of both stages stay apart.
    assert said["hls4ml, estimated csynth", "LUT"] == (1600, 800)
    assert said["hls4ml, estimated synth", "LUT"] == (800, 400)
    assert said["hls4ml, estimated synth", "latency, cycles"] == (1234, 1234)
    assert said["our Verilog, estimated, xc7", "LUT"] == (5000, None)
    assert said["our Verilog, synthesised, xc7", "LUT"] == (5432, None)
    assert said["our Verilog, placed, xc7", "LUT"] == (9000, None)
    assert said["our Verilog, simulated", "interval, cycles"] == (100, None)
    locked, total = (sum(getattr(one, f"kernels_{of}") for one in run_report().layers) for of in ("locked", "total"))
    assert said["locks", "kernels locked"][0] == locked
    assert said["locks", "locked share of kernels"][0] == f"{100 * locked / total:.1f} %"
    assert len(said) == len(found.rows)


def test_only_settings_that_differ_are_shown_and_the_name_is_none(runs):
    found = [row for row in compare_runs(runs).rows if row.group == "settings that differ"]
    assert {row.figure: row.values for row in found} == {
        "select.sparsity": ("0.6", "0.8"),
        "hls.layers.conv1.reuse": ("4", None),
    }
    same = [row for row in compare_runs([runs[0], _copy(runs[0])]).rows if row.group == "settings that differ"]
    assert same == []


@pytest.mark.parametrize(("content", "differ"), [("7f", []), ("a1", ["data.source"]), (None, ["data.source"])])
def test_a_file_under_another_path_is_the_same_setting(tmp_path, content, differ):
    runs = [
        finished(tmp_path / place, CONFIG | {"data": {"source": f"{place}/mine.npz"}}, data=data)
        for place, data in (("one", "7f"), ("two", content))
    ]
    rows = [row.figure for row in compare_runs(runs).rows if row.group == "settings that differ"]
    assert rows == differ


def _copy(run):
    twin = run.with_name("twin")
    twin.mkdir()
    for path in run.iterdir():
        (twin / path.name).write_bytes(path.read_bytes())
    return twin


def test_the_change_is_that_of_counts_of_two_runs(runs):
    by_place = {(row.group, row.figure): row.change for row in compare_runs(runs).rows}
    assert by_place["hls4ml, estimated synth", "LUT"] == f"{MINUS}50{NO_BREAK}%"
    assert by_place["our Verilog, synthesised, xc7", "LUT"] == ""
    assert by_place["settings that differ", "select.sparsity"] == ""
    three = compare_runs([*runs, _copy(runs[0])])
    assert {row.change for row in three.rows} == {""}
    headings, rows = three.table()
    assert headings == ("figure", "first", "second", "twin")
    assert all(len(row) == len(headings) for row in rows)


def test_the_command_prints_one_table_that_fits_a_narrow_window(runs):
    done = CliRunner().invoke(app, ["compare", *map(str, runs)], env={"COLUMNS": "80"})
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert max(map(len, lines[:-1])) <= 80
    assert lines[0].split() == ["figure", "first", "second", "change"]
    (luts,) = [line.split() for line in lines if line.split()[:2] == ["LUT", "800"]]
    assert luts[1:3] == ["800", "400"]
    assert lines[-1].endswith(f"fpgaprune verify {runs[1]}")
    data = json.loads(CliRunner().invoke(app, ["compare", *map(str, runs), "--json"]).stdout)
    assert data["runs"]["names"] == ["first", "second"]
    assert {"group": "answers", "figure": "kept", "values": ["yes", "unknown"]} in data["runs"]["rows"]
    assert repr(compare_runs(runs)).startswith("Runs compared: first, second")
    assert "<table" in compare_runs(runs)._repr_html_()


def test_what_is_no_pair_of_finished_runs_is_refused_in_one_line(runs, tmp_path):
    with pytest.raises(ConfigError, match="wanted two run folders or more, each once"):
        compare_runs([runs[0], runs[0]])
    with pytest.raises(ConfigError, match="wanted two run folders or more"):
        compare_runs([runs[0]])
    with pytest.raises(RunError, match="nowhere is not a run folder"):
        compare_runs([runs[0], tmp_path / "nowhere"])
    (runs[1] / "report.json").unlink()
    with pytest.raises(RunError, match="second has no report"):
        compare_runs(runs)


def test_runs_of_one_name_are_told_apart_by_their_paths(runs, tmp_path):
    (tmp_path / "other").mkdir()
    moved = runs[1].rename(tmp_path / "other" / "first")
    assert compare_runs([runs[0], moved]).names == (str(runs[0]), str(moved))
