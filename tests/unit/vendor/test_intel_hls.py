"""Reports of Intel's HLS compilers: i++, OpenCL, oneAPI."""

import json

import pytest

from fpgaprune.errors import ReportError
from fpgaprune.measure import Resources
from fpgaprune.vendor import parse_reports
from fpgaprune.vendor.report import PLATFORM, SUMMARY

from .texts_intel_hls import (
    area,
    area_lines,
    fit,
    ipp_report_data,
    kernel_area,
    nodes,
    quartus_data,
    report_data,
    summary_lines,
    summary_table,
)


def one(text):
    (report,) = parse_reports(text, "report")
    return report


def test_ipp_gives_its_estimate_and_the_fit():
    estimate, fitted = parse_reports(ipp_report_data(), "report")
    assert (estimate.tool, estimate.tool_version, estimate.stage) == ("Intel HLS Compiler", "19.1.0 Build 1", "csynth")
    assert (estimate.design, estimate.part) == ("myproject", "10AX115S2F45I1SG")
    assert estimate.date == "Sat Feb  1 15:00:00 2025"
    assert estimate.total == Resources(lut=1000, ff=2000, dsp=13)
    assert estimate.other == {"ram_block": 30, "mlab": 4}
    assert [(row.name, row.usage) for row in estimate.rows] == [("myproject", Resources(lut=1000, ff=2000, dsp=13))]
    assert (fitted.tool, fitted.stage, fitted.design, fitted.est_clock_ns) == ("Quartus", "route", "myproject", 4.0)
    assert fitted.total == Resources(ff=3821, dsp=11)
    assert fitted.other == {"alm": 2825, "ram_block": 30}


def test_columns_are_found_by_name_in_any_order():
    moved = area(("MLABs", "DSPs", "ALUTs", "RAMs", "FFs"))
    assert one(ipp_report_data(moved, fitted=False)).total == Resources(lut=1000, ff=2000, dsp=13)


def test_ipp_without_a_fit_gives_its_estimate_alone():
    assert one(ipp_report_data(fitted=False)).stage == "csynth"


@pytest.mark.parametrize("named", [False, True], ids=["JSON", "names inside lists"])
def test_a_file_on_the_fit_says_what_the_report_says(named):
    report, whole = one(fit(named=named)), parse_reports(ipp_report_data(), "report")[1]
    assert report == whole


def test_names_inside_lists_may_stand_in_any_order():
    text = fit(named=True).replace('"ALMs": 2824.5 ,"FFs": 3821', '"FFs": 3821 ,"ALMs": 2824.5')
    assert one(text).total.ff == 3821


def test_several_components_have_no_sum_since_none_is_stated():
    text = fit().replace(
        '"children":[\n  {"name":"myproject"', '"children":[\n  {"name":"a","data":[1,2,3,4]},{"name":"b"'
    )
    report = one(text)
    assert (report.design, report.total) == (None, Resources())
    assert [row.usage for row in report.rows] == [Resources(ff=2, dsp=4), Resources(ff=3821, dsp=11)]


def test_an_estimate_without_column_names_is_refused():
    with pytest.raises(ReportError, match="areaJSON has no list 'columns'; without it the figures have no names"):
        one(report_data({**kernel_area(), "columns": []}))


def test_the_board_s_interface_is_no_part_of_the_kernels():
    report = one(report_data())
    assert (report.tool, report.stage, report.design) == ("Intel oneAPI or OpenCL compiler", "csynth", "'lambda'(auto)")
    assert report.total == Resources(lut=1500, ff=3000, dsp=2)
    assert report.breakdown == {
        PLATFORM: Resources(lut=100_000, ff=200_000, dsp=123),
        "Global interconnect": Resources(lut=400, ff=500, dsp=0),
    }
    assert report.other == {
        "ram_block": 40,
        "mlab": 9,
        "system_lut": 101_500,
        "system_ff": 203_000,
        "system_dsp": 125,
        "system_ram_block": 540,
        "system_mlab": 9,
    }
    assert [(row.name, row.usage) for row in report.rows] == [("'lambda'(auto)", Resources(lut=1100, ff=2500, dsp=2))]


def test_a_board_larger_than_the_whole_is_refused():
    with pytest.raises(ReportError, match="the board's interface takes 100000 ALUTs, more than the total of 99999"):
        one(report_data({**kernel_area(), "total": [99_999, 203_000, 540, 125, 9]}))


@pytest.mark.parametrize("name", ["Component Name", "Function Name"])
def test_a_summary_says_the_same_rounded_down_and_takes_second_place(name):
    report = one(json.dumps(summary_table(name), indent=2))
    assert (report.tool, report.state, report.design) == ("Intel HLS Compiler", SUMMARY, "myproject")
    assert report.total == Resources(lut=1000, ff=2000, dsp=12)
    assert report.other == {"ram_block": 30, "mlab": 4}


@pytest.mark.parametrize("text", [summary_lines(), area_lines()], ids=["summary", "area"])
def test_multipliers_that_share_a_dsp_count_by_the_number_that_shares_it(text):
    report = one(text)
    assert (report.tool, report.design) == ("Intel oneAPI or OpenCL compiler", None)
    assert report.total == Resources(lut=1065, ff=2300, dsp=7)
    assert report.breakdown == {"Pipe resources": Resources(lut=65, ff=300, dsp=0)}
    assert [(row.name, row.usage.dsp) for row in report.rows] == [("dense", 7), ("Myproject", 0)]


def test_shared_dsps_are_unknown_where_the_file_does_not_say_how_many_share_one():
    assert one(summary_lines(packing=None)).total == Resources(lut=1065, ff=2300, dsp=None)


@pytest.mark.parametrize("text", [quartus_data(), json.dumps(nodes())], ids=["js", "json"])
def test_the_fit_counts_the_kernels_and_keeps_the_board_apart(text):
    report = one(text)
    assert (report.stage, report.est_clock_ns, report.design) == ("route", 4.0, None)
    assert report.total == Resources(ff=3821, dsp=12)
    assert report.other == {
        "alm": 2825,
        "ram_block": 30,
        "mlab": 7,
        "system_alm": 84229,
        "system_ff": 146217,
        "system_dsp": 10,
        "system_ram_block": 1319,
    }
    assert PLATFORM in report.breakdown
    assert [(row.name, row.usage) for row in report.rows] == [
        (name, Resources(ff=1100, dsp=4)) for name in ("dense", "relu")
    ]


def test_the_fit_of_an_ip_core_has_no_board():
    report = one(quartus_data(nodes(board=False)))
    assert (report.est_clock_ns, report.breakdown) == (4.0, {})


def test_a_clock_is_no_fmax():
    values = nodes()
    del values["quartusFitClockSummary"]["nodes"][0]["kernel clock fmax"]
    with pytest.raises(ReportError, match="states none of 1x clock fmax, kernel clock fmax, clock fmax"):
        one(quartus_data(values))


def test_an_fmax_of_nothing_is_refused():
    values = nodes()
    values["quartusFitClockSummary"]["nodes"][0]["kernel clock fmax"] = "0.00"
    with pytest.raises(ReportError, match="holds 0 MHz; wanted a frequency above 0"):
        one(quartus_data(values))


NOT_RUN = "no fit has been run, so there are no figures; compile with Quartus first"


@pytest.mark.parametrize(
    "text",
    [
        quartus_data(nodes(fitted=False)),
        json.dumps(nodes(fitted=False)),
        json.dumps({"quartusFitClockSummary": {"name": "Quartus Fit Summary", "children": [{"name": "Run Quartus"}]}}),
    ],
    ids=["js", "json", "i++"],
)
def test_a_fit_that_was_not_run_is_refused(text):
    with pytest.raises(ReportError, match=NOT_RUN):
        one(text)


def test_a_script_that_names_a_variable_in_a_text_is_not_misled():
    assert 'var areaJSON={"' in report_data().split("fileJSON")[1]
    assert one(report_data()).total.lut == 1500
