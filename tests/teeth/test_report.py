"""What the report must refuse, and what must never appear on a page."""

import itertools
import re

import pytest

from fpgaprune.errors import ReportError
from fpgaprune.measure import PRICED, ROUTE, STAGES, LayerEstimate, Measurement, Resources
from fpgaprune.report import Check, Column, Metric, Table, write_report
from tests.unit.report.samples import conv, estimate, layer, run_report

HOSTILE = "<script>alert('x')</script>|<u>&"


def test_a_column_refuses_a_figure_of_another_stage():
    measured = [estimate().at(stage) for stage in PRICED]
    with pytest.raises(ReportError, match="'after' of stage analytic_csynth was given a figure of stage analytic_s"):
        Column.of("after", "lut", measured)


@pytest.mark.parametrize("stages", list(itertools.combinations(STAGES, 2)), ids=str)
def test_a_table_refuses_columns_of_two_stages(stages):
    columns = tuple(Column.of("lut", "lut", [Measurement(stage, None, Resources(lut=1))]) for stage in stages)
    with pytest.raises(ReportError, match=r"compares stages .*; wanted one"):
        Table("both", columns)


def test_an_estimate_has_no_figures_of_a_tool():
    with pytest.raises(KeyError):
        estimate().at(ROUTE)


def test_the_unknown_never_prints_as_zero(tmp_path):
    unknown = LayerEstimate("conv1", "Conv2D", None, Resources(), Resources(), 7, 7)
    total = {"csynth": Resources(), "synth": Resources()}
    nothing = estimate(total=total, latency_cycles=7, interval_cycles=7, layers=(unknown,))
    report = run_report(before=nothing, after=nothing, layers=[], certificate=[], stages=[])
    paths = write_report(tmp_path, report)
    tables = re.findall(r"<td[^>]*>([^<]*)</td>", paths.html.read_text())
    assert "–" in tables
    assert "0" not in tables
    assert not any(cell.startswith("0") for cell in tables)


def test_names_are_escaped_everywhere(tmp_path):
    hostile = estimate(notes=(HOSTILE,), layers=(layer(HOSTILE),))
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
    text = paths.html.read_text()
    assert "<script" not in text
    assert "<u>" not in text
    assert "&lt;script&gt;" in text


def test_the_page_refers_to_nothing_outside_it(tmp_path):
    page = write_report(tmp_path, run_report(layers=[conv("huge", (200, 200))])).html.read_text()
    assert "http" not in page
    for reference in re.findall(r"""(?:href|src|srcset|action|data|poster)\s*=\s*["']([^"']*)""", page):
        assert reference.startswith(("data:image/png;base64,", "#"))
    for forbidden in ("<script", "<link", "<iframe", "<object", "@import", "url(", "//"):
        assert forbidden not in re.sub(r"base64,[A-Za-z0-9+/=]*", "", page)
