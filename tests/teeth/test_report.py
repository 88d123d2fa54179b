"""What the report must refuse, and what must never appear on a page."""

import re

import pytest

from fpgaprune.errors import ReportError
from fpgaprune.report import Check, Metric, write_report
from fpgaprune.report.table import Column, Figure, Table
from tests.unit.report.samples import conv, estimate, run_report

HOSTILE = "<script>alert('x')</script>|<u>&"


def test_a_column_refuses_a_figure_of_another_stage():
    with pytest.raises(ReportError, match="'after' of stage 'csynth' was given a figure of stage 'synth'"):
        Column.of("after", "csynth", [Figure("csynth", 1), Figure("synth", 1)])


def test_a_table_refuses_columns_of_two_stages():
    columns = tuple(Column.of(stage, stage, [Figure(stage, 1)]) for stage in ("csynth", "synth"))
    with pytest.raises(ReportError, match="compares stages csynth, synth; wanted one"):
        Table("both", columns)


def test_a_stage_smuggled_into_an_estimate_is_refused(tmp_path):
    smuggled = estimate()
    smuggled["total"]["csynth"]["lut"]["stage"] = "route"
    with pytest.raises(ReportError, match="figures of different stages never share a column"):
        write_report(tmp_path, run_report(after=smuggled))
    smuggled = estimate()
    smuggled["layers"][0]["synth"]["lut"]["stage"] = "csynth"
    with pytest.raises(ReportError, match="figures of different stages never share a column"):
        write_report(tmp_path, run_report(before=smuggled))
    assert not list(tmp_path.iterdir())


def test_a_binding_resource_must_say_its_stage(tmp_path):
    bad = estimate(binding={"resource": "lut", "layer": "conv1", "used": 1, "capacity": 2})
    with pytest.raises(ReportError, match="binding resource is of stage None"):
        write_report(tmp_path, run_report(after=bad))


def test_the_unknown_never_prints_as_zero(tmp_path):
    unknown = {"value": None, "low": None, "high": None}
    figures = dict.fromkeys(("lut", "ff", "dsp", "bram18"), unknown)
    layer = {"name": "conv1", "kind": "Conv2D", "multiplications": None, "csynth": figures, "synth": figures}
    nothing = estimate(
        total={"csynth": figures, "synth": figures},
        latency_cycles=None,
        interval_cycles=None,
        latency_us=None,
        fits=None,
        binding=None,
        layers=[{**layer, "latency_cycles": None, "interval_cycles": None}],
    )
    report = run_report(before=nothing, after=nothing, layers=[], certificate=[], stages=[])
    paths = write_report(tmp_path, report)
    tables = re.findall(r"<td[^>]*>([^<]*)</td>", paths.html.read_text())
    assert "–" in tables
    assert "0" not in tables
    assert not any(cell.startswith("0") for cell in tables)
    cells = [cell.strip() for line in paths.markdown.read_text().splitlines() for cell in line.split("|")]
    assert not any(re.fullmatch(r"0(\.0+)?(\u00a0%)?", cell) for cell in cells)


def test_names_are_escaped_everywhere(tmp_path):
    hostile = estimate(notes=[HOSTILE])
    hostile["layers"][0]["name"] = HOSTILE
    report = run_report(
        name=HOSTILE,
        metric=Metric("accuracy", 0.5, 0.5, 3, HOSTILE),
        layers=[conv(HOSTILE, (3, 4))],
        before=hostile,
        checks=[Check(HOSTILE, HOSTILE, left_out=HOSTILE)],
        left_out={HOSTILE: HOSTILE},
        versions={HOSTILE: HOSTILE},
    )
    paths = write_report(tmp_path, report)
    for text in (paths.html.read_text(), paths.markdown.read_text()):
        assert "<script" not in text
        assert "<u>" not in text
        assert "&lt;script&gt;" in text


def test_the_page_refers_to_nothing_outside_it(tmp_path):
    page = write_report(tmp_path, run_report(layers=[conv("huge", (200, 200))])).html.read_text()
    assert "http" not in page
    for reference in re.findall(r"""(?:href|src|srcset|action|data|poster)\s*=\s*["']([^"']*)""", page):
        assert reference.startswith("data:image/png;base64,")
    for forbidden in ("<script", "<link", "<iframe", "<object", "@import", "url(", "//"):
        assert forbidden not in re.sub(r"base64,[A-Za-z0-9+/=]*", "", page)
