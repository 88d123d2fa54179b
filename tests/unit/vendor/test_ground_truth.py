"""Original reports of real designs parse to the figures that were read off them by others.

The files are not part of the project: without `shared` beside the checkout these tests are left out.
"""

import functools
import json
from pathlib import Path

import pytest

from fpgaprune.errors import ReportError
from fpgaprune.vendor import ModuleRow, compare, match_layers, parse_reports, read_reports

TRUTH = Path(__file__).parents[3].parent / "shared" / "ground_truth"
FOLDERS = sorted(path for path in (TRUTH / "reports").glob("*") if path.is_dir())
if not FOLDERS:
    pytest.skip("no ../shared/ground_truth/reports beside the checkout", allow_module_level=True)
USAGE = {"LUT": "lut", "FF": "ff", "DSP": "dsp", "BRAM18": "bram18", "URAM": "uram"}
CYCLES = {"lat_min": "latency_min", "lat_max": "latency_max", "ii_min": "interval_min", "ii_max": "interval_max"}


@pytest.fixture(scope="module")
def rows():
    with (TRUTH / "calibration.jsonl").open() as file:
        return {row["id"]: row for row in map(json.loads, file)}


@functools.cache
def all_of(folder):
    return read_reports(folder)


def agree(truth, report, names):
    """Each figure of the truth; one that it does not have is not compared, one that is null must be None."""
    for name, ours in names.items():
        if name in truth:
            assert getattr(report, ours) == truth[name], name


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name[:40])
def test_every_report_parses_to_the_figures_of_its_row(folder, rows):
    row = rows[folder.name]
    truth = row["truth"]
    reports = {report.source.relative_to(folder): report for report in all_of(folder) if report.stage != "cosim"}
    csynth = next(report for path, report in reports.items() if path.name in ("myproject_csynth.rpt", "csynth.rpt"))
    agree(row, csynth, {"tool": "tool", "tool_version": "tool_version", "part": "part", "clock_ns": "clock_ns"})
    agree(truth["csynth"], csynth.total, USAGE)
    agree(truth["csynth"], csynth.cycles, {"latency_min": "latency_min", "latency_max": "latency_max"})
    agree(truth["csynth"], csynth.cycles, {"II_min": "interval_min", "II": "interval_max"})
    agree(truth["csynth"], csynth, {"pipeline": "pipeline", "est_clock_ns": "est_clock_ns", "date": "date"})
    for name, usage in truth["csynth"].get("breakdown", {}).items():
        agree(usage, csynth.breakdown[name], USAGE)
    for instance in row.get("instances", ()):
        ours = next(one for one in csynth.rows if one.name == instance["name"])
        assert (ours.module, ours.pipeline) == (instance["module"], instance["pipe"])
        agree(instance, ours.usage, USAGE)
        agree(instance, ours.cycles, CYCLES)
    for name, figures in row.get("modules", {}).items():
        ours = reports[Path("modules", f"{name}_csynth.rpt")]
        assert ours.design == name
        agree(figures, ours.total, USAGE)
        agree(figures, ours.cycles, CYCLES)
        agree(figures, ours, {"pipe": "pipeline", "est_clock_ns": "est_clock_ns", "tool_version": "tool_version"})


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name[:40])
def test_logic_synthesis_and_simulation_agree_too(folder, rows):
    truth = rows[folder.name]["truth"]
    reports = {report.stage: report for report in all_of(folder)}
    vsynth = truth.get("vsynth")
    assert ("synth" in reports) == bool(vsynth)
    if vsynth:
        ours = reports["synth"]
        agree(vsynth, ours.total, USAGE)
        agree(vsynth, ours, {"design": "design", "device": "part", "state": "state", "date": "date"})
        assert ours.other["lut_logic"] == vsynth["LUT_logic"]
        assert ours.other["lut_memory"] == vsynth["LUT_mem"]
        assert ours.other[vsynth["carry_kind"].lower()] == vsynth["CARRY"]
    if "cosim" in truth and "cosim" in reports:
        agree(truth["cosim"], reports["cosim"].cycles, CYCLES)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name[:40])
def test_an_original_that_is_cut_off_is_refused_or_says_the_same(folder):
    for path in sorted(folder.glob("*.rpt")):
        text = path.read_text()
        wanted = parse_reports(text, path)
        for tenth in range(10):
            try:
                got = parse_reports(text[: len(text) * tenth // 10], path)
            except ReportError:
                continue
            assert got == wanted[: len(got)]
            assert len(got) == len(wanted) or "CO-SIMULATION" in text


def test_a_layer_is_never_given_the_row_of_another(rows):
    """Over all rows whose instances and layers are known: what is matched is what others matched by hand."""
    right = unknown = 0
    for row in rows.values():
        if not row.get("layers") or not row.get("instances"):
            continue
        layers = [(layer.get("name") or f"layer {at}", layer["class"]) for at, layer in enumerate(row["layers"])]
        found = match_layers(layers, [ModuleRow(one["name"], one["module"]) for one in row["instances"]])
        for (name, _), layer in zip(layers, row["layers"], strict=True):
            if layer.get("truth"):
                if name in found:
                    assert found[name].module == layer["truth"]["module"], (row["id"], name)
                    right += 1
                else:
                    unknown += 1
    assert right > 3 * unknown


def test_the_reports_of_one_project_stand_side_by_side():
    folders = [folder for folder in FOLDERS if len(list(folder.glob("*.rpt"))) > 1]
    table = compare({folder.name: all_of(folder) for folder in folders}, {})
    assert {row.design for row in table.rows} == {folder.name for folder in folders}
    for row in table.rows:
        assert set(row.values) == set(table.columns)
