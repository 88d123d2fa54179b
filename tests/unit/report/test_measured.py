"""What open tools measured, in the report."""

import json
from xml.etree import ElementTree

import pytest

from fpgaprune.errors import ReportError
from fpgaprune.measure import (
    BIT_BY_BIT,
    OPEN_SYNTH,
    SCHEDULED,
    SYNTH,
    ChosenLayout,
    Figure,
    LaidLayer,
    Measurement,
    Resources,
    StagedCounts,
    VerilogPrice,
)
from fpgaprune.report import Column, counts_tables, kernel_plots, measured_tables, points_figure, write_report

from .samples import measured, run_report


def test_each_table_holds_one_stage_and_says_which():
    tables = measured_tables(run_report(measured=measured()).measured)
    assert [{column.stage for column in table.columns} - {None} for table in tables] == [
        set(),
        {"synth(open)"},
        {"route(ecp5)"},
    ]
    assert "Synthesised for xc7 by Yosys 0.70 (synth(open))" in tables[1].caption


def test_a_design_has_one_count_for_each_stage_on_the_page(tmp_path):
    estimated = Resources(lut=Figure(3720, 3407, 4071), dsp=Figure(10, 10, 10))
    counted = Resources(lut=3652, dsp=10)
    counts = StagedCounts("digits", 64, ("ecp5", "lfe5u-25f"), estimated, counted, placed=Resources(lut=3914))
    (table,) = counts_tables([counts])
    cells = {column.heading: column.cells for column in table.columns}
    assert (cells["estimated"], cells["synthesised"], cells["placed"]) == (
        ("3,720", "10"),
        ("3,652", "10"),
        ("3,914", "–"),
    )
    assert cells["placed, with harness"] == ("–", "–")
    assert "LUT 3,407 to 4,071" in table.note
    write_report(tmp_path, run_report(measured=measured(), counts=[counts]))
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "digits as our Verilog, a sample every 64 cycles: ecp5, lfe5u-25f" in page
    written = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert written["counts"][0]["synthesised"]["lut"] == 3652


def test_a_design_that_nothing_counted_has_no_table_of_stages():
    assert counts_tables([StagedCounts("digits", 64, ("ecp5",), Resources())]) == []


def test_a_figure_of_another_stage_is_refused_in_a_measured_column():
    with pytest.raises(ReportError, match="of stage synth\\(open\\) was given a figure of stage synth;"):
        Column.of("LUT", "lut", [Measurement(stage, None, Resources(lut=1)) for stage in (OPEN_SYNTH, SYNTH)])


def test_rows_are_layers_with_their_kernels_and_the_total():
    table = measured_tables(run_report(measured=measured()).measured)[1]
    columns = {column.heading: column.cells for column in table.columns}
    assert columns["layer"] == ("conv1", "conv2", "dense", "total")
    assert columns["kernels left"] == ("8", "200", "–", "")
    assert columns["LUT"] == ("812", "4,321", "222", "5,432")


def test_a_layer_that_did_not_end_is_a_dash_with_its_reason():
    found = measured()
    layer = found["synth(open)"]["xc7"]["layers"][1]
    layer.update(cells=None, left_out="synthesis did not end within 900 s")
    found["synth(open)"]["xc7"]["whole"].update(cells=None)
    table = measured_tables(run_report(measured=found).measured)[1]
    columns = {column.heading: column.cells for column in table.columns}
    assert columns["LUT"] == ("812", "–", "222", "–")
    assert "conv2: synthesis did not end within 900 s." in table.note
    assert kernel_plots(run_report(measured=found)) == []


def test_a_sum_says_that_it_is_one():
    found = measured()
    synthesis = found["synth(open)"]["xc7"]
    synthesis["whole"].update(cells=None, left_out="synthesis did not end within 900 s")
    note = measured_tables(run_report(measured=found).measured)[1].note
    assert "total: sum of its layers" in note
    assert "logic between the layers is not counted" in note


def test_how_a_layer_is_built_stands_below_its_figures():
    found = measured(built={"conv2": "bit by bit: 29 adders of one bit"})
    assert "conv2: bit by bit: 29 adders of one bit." in measured_tables(run_report(measured=found).measured)[1].note


def test_the_clock_comes_with_its_seeds_and_its_spread():
    note = measured_tables(run_report(measured=measured()).measured)[2].note
    assert "91.2 MHz, median of 3 seeds (88.0 to 95.5)" in note
    assert "With a sample every 100 cycles, this gives 912,500 a second." in note


def test_the_simulation_gives_the_clocks_of_a_sample():
    table = measured_tables(run_report(measured=measured()).measured)[0]
    assert table.caption == "Simulated cycle by cycle by verilator 5.48.0"
    assert [cell for _, cell in table.rows] == ["360", "0", "253", "100"]


def test_without_a_simulation_nothing_is_said_of_clocks():
    tables = measured_tables(run_report(measured=measured(simulation={"left_out": "g++ was not found"})).measured)
    assert len(tables) == 2
    assert "a second" not in tables[-1].note


def test_points_stand_where_their_figures_are():
    svg = ElementTree.fromstring(points_figure([(10, 100, "a"), (5, 50, "b"), (0, 0, "c")], "kept", "LUT", "x"))  # noqa: S314
    dots = [(float(c.get("cx")), float(c.get("cy")), c.find("title").text) for c in svg.findall("circle")]
    (ax, ay, title), (bx, by, _), (cx, cy, _) = dots
    assert title == "a: 100 LUT, 10 kept"
    assert bx == pytest.approx((ax + cx) / 2, abs=0.01)
    assert by == pytest.approx((ay + cy) / 2, abs=0.01)
    assert ay < cy  # more LUTs stand higher
    # Each name stands beside its dot, on the side where there is room.
    names = {text.text: (float(text.get("x")), text.get("text-anchor")) for text in svg.findall("text")}
    assert names["a"] == (pytest.approx(ax - 8, abs=0.01), "end")
    assert names["b"] == (pytest.approx(bx + 8, abs=0.01), "start")


@pytest.mark.parametrize("points", [[(0, 0, "a"), (0, 0, "b")], [(0, 5, "a"), (0, 7, "b")], [(3, 0, "<&>")]])
def test_points_without_extent_are_drawn_too(points):
    ElementTree.fromstring(points_figure(points, "kept", "LUT", "x"))  # noqa: S314


def test_the_page_shows_what_was_measured(tmp_path):
    paths = write_report(tmp_path, run_report(measured=measured()))
    page = paths.html.read_text()
    for wanted in ("Measured with open tools", "4,321", "9,012", "Placed and routed on lfe5u-25f"):
        assert wanted in page
    assert 'class="dot"' in page


def test_a_run_that_measured_nothing_has_no_such_section(tmp_path):
    assert "Measured with open tools" not in write_report(tmp_path, run_report()).html.read_text()


def laid_out():
    """A layout of two layers for a part, with all that `measure.json` has of it."""
    figure = Figure(1200, 1100, 1300)
    price = VerilogPrice("net", "xc7", Resources(lut=figure), (), 900, 640)
    rows = (
        LaidLayer("conv1", BIT_BY_BIT, 0, False, None),
        LaidLayer("conv2", SCHEDULED, 27, True, 600),
        LaidLayer("dense", SCHEDULED, 1, False, 320),
    )
    return ChosenLayout("xc7z020", 0.8, 640, 640, rows, {"lut": 0.02, "dsp": 0.13}, price, 9, 450)


def test_a_layout_for_a_part_says_what_each_layer_is_what_binds_and_what_more_would_bring(tmp_path):
    found = {**measured(), "layout": laid_out().to_json()}
    report = run_report(measured=found)
    table = measured_tables(report.measured)[0]
    assert table.caption == "Layers laid out for xc7z020, by the price of open synthesis"
    columns = {column.heading: column.cells for column in table.columns}
    assert columns == {
        "layer": ("conv1", "conv2", "dense"),
        "computed": ("bit by bit", "scheduled", "scheduled"),
        "multipliers": ("–", "27", "1"),
        "values for each": ("", "two", "one"),
        "cycles": ("–", "600", "320"),
    }
    assert table.note == (
        "xc7z020: LUT 2%, DSP 13%; DSP binds, at most 80% may be used. A sample every 640 cycles; conv2 is the slowest "
        "with 600 cycles and 27 multipliers. 9 multipliers more for conv2: a sample every 450 cycles."
    )
    paths = write_report(tmp_path, report)
    assert "Layers laid out for xc7z020" in paths.html.read_text()
    written = json.loads(paths.json.read_text())["measured"]["layout"]
    assert (written["binding"], written["slowest"], written["then_cycles"]) == ("dsp", "conv2", 450)
    assert [row["way"] for row in written["layers"]] == ["bit by bit", "scheduled", "scheduled"]
