"""What would make a network fit, as the reports and the terminal say it."""

import json
from dataclasses import replace

import pytest
from msgspec import structs

import fpgaprune as fp
from fpgaprune.layout import LayerShare, Shortage
from fpgaprune.measure import Figure
from fpgaprune.report import changes_tables, render_page, shortage_lines, suggested_changes
from fpgaprune.target import find_part

from ..estimate.designs import cnn
from .samples import run_report


@pytest.fixture(scope="module")
def advice():
    """A network for a part that has half of what it takes."""
    design = cnn(zeros=0.1)
    part = replace(find_part("xc7z020"), name="half", lut=5000, ff=4000)
    return fp.advise(design, fp.Target(part, "xc7z020"))


def test_a_sentence_says_what_is_short_by_how_much_and_where(advice):
    layers = (LayerShare("conv2", "Conv2D", 5325, 0.71), LayerShare("fc[1]", "Dense", 1500, 0.2))
    shortage = Shortage("lut", Figure(7500, 4000, 14000), 5000, layers)
    [line] = shortage_lines(structs.replace(advice, shortages=(shortage,)))
    assert line.replace("\u00a0", " ") == (
        "LUT: 7,500 of 5,000 (150.0 %), expected within 4,000–14,000; 2,500 too many. "
        "Most of it goes to conv2 (71 %) and fc[1] (20 %)."
    )
    larger = structs.replace(shortage, capacity=9000, layers=())
    [line] = shortage_lines(structs.replace(advice, shortages=(larger,)))
    assert line.replace("\u00a0", " ") == (
        "LUT: 7,500 of 9,000 (83.3 %), expected within 4,000–14,000; the middle of the range fits, its upper end is "
        "5,000 too many."
    )


def test_each_change_says_whether_it_fits(advice):
    found = suggested_changes(advice)
    assert [change.number for change in found] == list(range(1, len(found) + 1))
    for change, row in zip(found, advice.suggestions, strict=True):
        wanted = "good" if row.fits_upper else "open" if row.fits else "bad"
        assert change.tone == wanted
        assert "%" in change.figures
        assert change.change == row.change


def test_each_table_has_the_figures_of_the_changes_of_one_stage(advice):
    own = structs.replace(advice.suggestions[1], after=structs.replace(advice.now, stage="synth(open)"))
    advice = structs.replace(advice, suggestions=(own, *advice.suggestions))
    projects, verilog = changes_tables(advice)
    assert {column.stage for column in projects.columns} == {None, "analytic_synth"}
    assert {column.stage for column in verilog.columns} == {None, "analytic_synth(open)"}
    rows = {cells[0]: cells for table in (projects, verilog) for cells in table.rows}
    assert len(rows) == 1 + len(advice.suggestions)
    for number, row in enumerate(advice.suggestions, start=1):
        cells = rows[f"{number}. {row.knob}"]
        assert f"{row.after.used.lut.value:,}" in cells
        assert f"{row.after.latency_cycles:,}" in cells


def test_the_page_shows_every_change(advice):
    report = run_report(advice=advice)
    page = render_page(report)
    assert report.to_json()["advice"] == json.loads(json.dumps(advice.to_json()))
    for suggestion in advice.suggestions:
        for line in filter(None, suggestion.change.splitlines()):
            assert line.replace('"', "&#34;").replace("'", "&#39;") in page
    assert "What would make it fit" in page


@pytest.mark.parametrize("made", [False, True])
def test_nothing_is_said_where_nothing_is_short(advice, made):
    report = run_report(advice=structs.replace(advice, shortages=()) if made else None)
    assert "What would make it fit" not in render_page(report)


def test_a_layer_whose_name_is_code_stays_text(advice):
    hostile = structs.replace(advice.suggestions[0], change="<script>x</script>", knob="<b>")
    bad = structs.replace(advice, suggestions=(hostile,))
    page = render_page(run_report(advice=bad))
    assert "<script>x" not in page
    assert "<b></h3>" not in page
