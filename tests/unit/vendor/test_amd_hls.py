"""Reports of Vivado HLS and Vitis HLS."""

import itertools
import json
from pathlib import Path

import pytest

from fpgaprune.errors import ReportError
from fpgaprune.measure import Cycles, Resources, to_plain
from fpgaprune.vendor import parse_reports, read_report, read_reports

from .texts import INSTANCES, cosim, csynth, csynth_xml, summary

TOTAL = Resources(lut=4567, ff=2120, dsp=9, bram18=6, uram=0)


def one(text, name="report"):
    (report,) = parse_reports(text, name)
    return report


@pytest.mark.parametrize("tool", ["Vivado HLS", "Vitis HLS"])
def test_a_csynth_report_gives_every_figure(tool):
    report = one(csynth(tool=tool), "a/b.rpt")
    assert (report.tool, report.tool_version, report.stage, report.design) == (tool, "2022.2", "csynth", "myproject")
    assert (report.part, report.clock_ns, report.est_clock_ns) == ("xczu9eg-ffvb1156-2-e", 5.0, 3.77)
    assert report.total == TOTAL
    assert report.cycles == Cycles(243, 2293, 227, 2277)
    assert (report.pipeline, report.date) == ("dataflow", "Sat Feb  1 10:00:00 2025")
    assert report.source == Path("a/b.rpt")
    assert [row.name for row in report.rows] == list(INSTANCES)
    first = report.rows[0]
    assert first.module == "dense_latency_ap_fixed_config2_s"
    assert first.usage == Resources(lut=3000, ff=1500, dsp=5, bram18=6, uram=0)
    assert first.cycles == Cycles(9, 10, 1, 2)


def test_columns_are_found_by_name_in_any_order():
    for columns in itertools.permutations(["BRAM", "DSP", "FF", "LUT", "URAM"]):
        assert one(csynth(columns=["Name", *columns])).total == TOTAL


def test_a_dash_is_none_and_a_zero_is_zero():
    report = one(csynth(total={"LUT": "1", "FF": "0", "BRAM": "-", "DSP": "-", "URAM": "-"}))
    assert report.total == Resources(lut=1, ff=0)
    assert report.breakdown["FIFO"] == Resources(lut=104, ff=103, bram18=0)
    assert report.breakdown["Memory"] == Resources()
    assert "Utilization (%)" not in report.breakdown
    assert "Available" not in report.breakdown


def test_a_column_that_a_release_does_not_print_is_none():
    report = one(csynth(columns=["Name", "BRAM", "DSP", "FF", "LUT"]))
    assert report.total == Resources(lut=4567, ff=2120, dsp=9, bram18=6, uram=None)


def test_unknown_cycles_are_none():
    report = one(csynth(latency=("?", "?"), interval=("-", "undef")))
    assert report.cycles == Cycles()


@pytest.mark.parametrize("at", [7, 12, 30])
def test_wrapped_cells_are_put_together(at):
    report = one(csynth(wrap_at=at))
    assert [row.name for row in report.rows] == list(INSTANCES)
    assert [row.module for row in report.rows] == [module for module, *_ in INSTANCES.values()]
    assert report.rows == one(csynth()).rows


def test_thousands_may_have_separators():
    total = {"LUT": "1,234,567", "FF": "2,120", "BRAM": "6", "DSP": "9", "URAM": "0"}
    assert one(csynth(total=total)).total.lut == 1_234_567


@pytest.mark.parametrize("printed", ["~0", "1.5", "12a", "1,23", "-4", "0x10"])
def test_anything_else_in_a_figure_s_place_is_refused(printed):
    total = {"LUT": printed, "FF": "2120", "BRAM": "6", "DSP": "9", "URAM": "0"}
    with pytest.raises(ReportError, match=rf"line \d+: 'Total', 'LUT' holds {printed!r}; wanted a whole number"):
        one(csynth(total=total))


def test_a_report_without_lut_column_is_refused():
    with pytest.raises(ReportError, match=r"no column 'LUT' or 'LUTs'; the table has 'Name', 'BRAM_18K', 'DSP', 'FF'"):
        one(csynth(columns=["Name", "BRAM", "DSP", "FF"]))


def test_reports_printed_one_after_the_other_are_all_read():
    # The form in which hls4ml prints a finished project: the synthesis report ends before its interface.
    synthesis = csynth(tool="Vivado HLS").split("    * Memory:")[0]
    text = f"C SIMULATION RESULT:\n0.1 0.2\n\nSYNTHESIS REPORT:{synthesis}\nCO-SIMULATION RESULT:\n{cosim()}"
    csynth_report, cosim_report = parse_reports(text, "log")
    assert csynth_report.total == TOTAL
    assert cosim_report.stage == "cosim"
    assert cosim_report.cycles == Cycles(14157, 23290, None, None)


def test_the_summary_gives_the_top_and_its_modules_without_loops():
    report = one(summary())
    assert (report.tool, report.design, report.clock_ns, report.est_clock_ns) == ("Vitis HLS", "myproject", 5.0, 3.77)
    assert report.total == Resources(lut=4567, ff=2120, dsp=9, bram18=6)
    assert report.cycles == Cycles(latency_max=2293, interval_max=2277)
    assert [row.name for row in report.rows] == ["dense_latency_ap_fixed_config2_s", "relu_ap_fixed_relu_config4_s"]
    assert report.rows[1].usage == Resources(lut=50, ff=20)
    assert report.rows[1].cycles == Cycles()
    assert "dash" in report.notes[0]


@pytest.mark.parametrize(("dsp", "tool"), [("DSP", "Vitis HLS"), ("DSP48E", "Vivado HLS")])
def test_the_xml_says_the_same_as_the_text(dsp, tool):
    report = one(csynth_xml(dsp=dsp))
    assert (report.tool, report.tool_version, report.design) == (tool, "2022.2", "myproject")
    assert (report.part, report.clock_ns, report.est_clock_ns) == ("xczu9eg-ffvb1156-2-e", 5.0, 3.77)
    assert report.total == TOTAL
    assert report.cycles == Cycles(243, None, 227, 2277)
    (row,) = report.rows
    assert (row.name, row.module, row.pipeline) == ("dense_U0", "dense_config2", "yes")
    assert row.usage == Resources(lut=3000, ff=1500, dsp=5, bram18=6, uram=0)
    assert row.cycles == Cycles(9, 10, 2, 2)


@pytest.mark.parametrize(
    ("printed", "interval"),
    [("2 ~ 53", (2, 53)), ("4 ~ -1", (4, None)), ("3 ~ 0", (3, None)), ("2 ~ ?", (2, None)), ("undef", (None, None))],
)
def test_an_interval_of_the_xml_may_be_a_range(printed, interval):
    row = one(csynth_xml(interval=printed)).rows[0]
    assert (row.cycles.interval_min, row.cycles.interval_max) == interval


@pytest.mark.parametrize("printed", ["2 ~ 53 ~ 54", "2 ~ many", "~ 0x3", "-2 ~ 5"])
def test_a_range_of_something_else_is_refused(printed):
    with pytest.raises(ReportError, match=r"<PipelineInitiationInterval> holds .*; wanted"):
        one(csynth_xml(interval=printed))


def test_without_a_hierarchy_the_xml_gives_every_module_below_the_top():
    assert [row.name for row in one(csynth_xml(hierarchy=False)).rows] == ["dense_config2", "product"]


def test_xml_with_entities_is_refused():
    text = csynth_xml().replace("<profile>", '<!DOCTYPE p [<!ENTITY a "b">]><profile>', 1)
    with pytest.raises(ReportError, match="declares a document type"):
        one(text)


def test_xml_that_lacks_an_element_names_it():
    text = csynth_xml().replace("SummaryOfOverallLatency", "Summary")
    with pytest.raises(ReportError, match="has no element <PerformanceEstimates/SummaryOfOverallLatency>"):
        one(text)


@pytest.mark.parametrize("unit", ["", "(Clock Cycles)", " (Clock Cycles)"])
def test_cosim_gives_the_language_that_was_simulated(unit):
    report = one(cosim(unit=unit))
    assert (report.stage, report.state, report.passed) == ("cosim", "Verilog", True)
    assert report.cycles == Cycles(14157, 23290, None, None)
    assert report.total == Resources()


def test_a_failed_cosim_says_so():
    report = one(cosim(verilog="Fail"))
    assert report.passed is False
    assert report.notes == ("the simulation ended with 'Fail': its cycles are not those of the design",)


def test_a_failed_cosim_may_name_no_simulator_and_state_no_cycles():
    report = one(cosim(verilog="Fail", simulator=False, cycles=False, unit="(Clock Cycles)"))
    assert (report.tool, report.stage, report.passed) == ("C/RTL co-simulation", "cosim", False)
    assert (report.cycles, report.date) == (Cycles(), "Sat Feb  1 11:00:00 UTC 2025")


def test_a_cosim_that_was_not_run_is_refused():
    with pytest.raises(ReportError, match="no language of this co-simulation was simulated"):
        one(cosim(verilog="NA"))


def test_a_project_folder_gives_all_its_reports_in_the_order_of_the_stages(tmp_path):
    reports = tmp_path / "prj" / "solution1"
    for path, text in {
        "sim/report/myproject_cosim.rpt": cosim(),
        "syn/report/myproject_csynth.rpt": csynth(),
        "syn/report/csynth.xml": csynth_xml(),
        "syn/report/csynth.rpt": summary(),
        "syn/report/notes.rpt": "nothing of any tool\n",
        ".autopilot/db/myproject_csynth.rpt": csynth()[:900],
        "settings.xml": "<settings><profiles><profile><id>x</id></profile></profiles></settings>",
    }.items():
        (reports / path).parent.mkdir(parents=True, exist_ok=True)
        (reports / path).write_text(text)
    found = read_reports(tmp_path)
    assert [report.stage for report in found] == ["csynth", "csynth", "csynth", "cosim"]
    assert read_report(reports / "syn/report/csynth.xml").total == TOTAL
    json.dumps(to_plain(list(found)))


def test_a_folder_without_reports_says_what_was_wanted(tmp_path):
    with pytest.raises(ReportError, match=r"no report below .*; wanted one of: csynth.rpt of Vivado HLS or Vitis HLS;"):
        read_reports(tmp_path)
    with pytest.raises(ReportError, match="is neither a folder nor a file"):
        read_reports(tmp_path / "missing")


def test_a_missing_file_is_a_report_error(tmp_path):
    with pytest.raises(ReportError, match=r"cannot be read \(No such file or directory\)"):
        read_report(tmp_path / "missing.rpt")
