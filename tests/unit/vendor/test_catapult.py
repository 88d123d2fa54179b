"""Reports of Catapult."""

import pytest

from fpgaprune.errors import ReportError
from fpgaprune.measure import Cycles, Resources
from fpgaprune.vendor import parse_reports
from fpgaprune.vendor.comparing import compare
from fpgaprune.vendor.layer_rows import match_layers

from .texts_catapult import END, cycle_rpt, rtl_rpt


def one(text):
    (report,) = parse_reports(text, "report")
    return report


@pytest.mark.parametrize("text", [cycle_rpt(), rtl_rpt()], ids=["cycle.rpt", "rtl.rpt"])
def test_both_reports_give_cycles_and_when_they_were_written(text):
    report = one(text)
    assert (report.tool, report.tool_version, report.stage) == ("Catapult", "2024.1_1", "csynth")
    assert (report.design, report.date) == ("myproject", "Sat Feb  1 14:00:00 CET 2025")
    assert report.cycles == Cycles(25, 25, 3, 3)
    assert [row.name for row in report.rows] == [
        "/myproject/nnet::dense<a_t, b_t, config2>/core",
        "/myproject/nnet::relu<b_t, c_t, relu_config4>/core",
    ]
    assert report.rows[0].module == "nnet::dense<a_t, b_t, config2>"
    assert match_layers([("fc1", "Dense"), ("act", "Activation")], report.rows) == {
        "fc1": report.rows[0],
        "act": report.rows[1],
    }
    assert report.rows[0].cycles == Cycles(1, 1, 3, 3)
    assert report.rows[1].cycles == Cycles(None, None, 3, 3)


def test_the_cycle_report_states_the_clock_and_no_area():
    report = one(cycle_rpt())
    assert (report.clock_ns, report.est_clock_ns, report.slack_ns) == (5.0, None, None)
    assert (report.total, report.notes) == (Resources(), ())


@pytest.mark.parametrize("indent", ["", "  "])
def test_the_rtl_report_states_luts_and_the_critical_path_and_no_clock(indent):
    report = one(rtl_rpt(indent=indent))
    assert (report.clock_ns, report.est_clock_ns, report.slack_ns) == (None, 4.305005, 0.694995)
    assert report.total == Resources(lut=3210, dsp=12)
    assert report.notes == (
        "Catapult estimates the LUTs and DSPs of the datapath; it does not count registers and memories",
    )


def test_an_area_in_the_unit_of_an_asic_library_is_no_count():
    report = one(rtl_rpt(asic=True))
    assert report.total == Resources()
    assert report.notes == ("the area score 880.500 has the unit of the library and is no count of LUTs",)


def test_both_reports_of_a_solution_make_one_column():
    rows = compare({"a": [one(cycle_rpt()), one(rtl_rpt())]}, {}).rows
    assert {row.figure: row.values["csynth"] for row in rows} == {
        "lut": 3210,
        "dsp": 12,
        "latency_min_cycles": 25,
        "latency_max_cycles": 25,
        "interval_min_cycles": 3,
        "interval_max_cycles": 3,
        "est_clock_ns": 4.305005,
    }


@pytest.mark.parametrize("make", [cycle_rpt, rtl_rpt])
def test_a_loop_without_a_bound_has_no_latency(make):
    assert one(make(latency="-1")).cycles == Cycles(None, None, 3, 3)


@pytest.mark.parametrize(
    ("lost", "message"),
    [
        (END, "has no line 'End of Report'; the report is cut off"),
        ("Design Total:", "has no row 'Design Total:'; the report is cut off"),
        ("TOTAL AREA (After Assignment):", r"has no row 'TOTAL AREA \(After Assignment\):' under 'Bill Of Materials"),
    ],
)
def test_a_report_that_lost_a_line_is_refused(lost, message):
    lines = rtl_rpt().splitlines(keepends=True)
    text = "".join(line for line in lines if not line.strip().startswith(lost.strip()))
    with pytest.raises(ReportError, match=message):
        one(text)
