"""Reports of logic synthesis, place and route: Vivado and Quartus."""

import pytest

from fpgaprune.errors import ReportError
from fpgaprune.measure import Cycles, Resources
from fpgaprune.vendor import PLATFORM, parse_reports

from .texts import accelerator, hierarchy, timing, utilization
from .texts_quartus import FIT_VALUES, MAX10_VALUES, STANDARD_VALUES, fit_rpt, fit_summary


def one(text):
    (report,) = parse_reports(text, "report")
    return report


def used(*pairs):
    return [[name, count, "0", "1000", "0.1"] for name, count in pairs]


FAMILIES = {
    "7-series": (
        used(
            ("Slice LUTs*", "4000"),
            ("  LUT as Logic", "3900"),
            ("  LUT as Memory", "100"),
            ("Slice Registers", "5000"),
            ("Block RAM Tile", "2.5"),
            ("  RAMB36/FIFO*", "2"),
            ("  RAMB18", "1"),
            ("DSPs", "7"),
            ("  DSP48E1 only", "7"),
        ),
        Resources(lut=4000, ff=5000, dsp=7, bram18=5, uram=None),
    ),
    "UltraScale+": (
        used(
            ("CLB LUTs*", "4000"),
            ("CLB Registers", "5000"),
            ("CARRY8", "30"),
            ("Block RAM Tile", "2"),
            ("  RAMB36/FIFO*", "2"),
            ("  RAMB18", "0"),
            ("URAM", "3"),
            ("DSPs", "7"),
            ("  DSP48E2 only", "7"),
        ),
        Resources(lut=4000, ff=5000, dsp=7, bram18=4, uram=3),
    ),
    "Versal": (
        used(
            ("Registers", "5000"),
            ("CLB LUTs", "4000"),
            ("LOOKAHEAD8", "30"),
            ("RAMB36E5", "2"),
            ("RAMB18E5", "3"),
            ("URAM", "0"),
            ("DSP58", "7"),
        ),
        Resources(lut=4000, ff=5000, dsp=7, bram18=7, uram=0),
    ),
    "Versal with slices": (
        used(("Registers", "5000"), ("CLB LUTs", "4000"), ("DSP Slices", "7"), ("  DSP58", "5"), ("  DSPCPLX", "1")),
        Resources(lut=4000, ff=5000, dsp=7, bram18=None, uram=None),
    ),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_utilization_of_every_family(family):
    rows, total = FAMILIES[family]
    report = one(utilization(rows))
    assert report.total == total
    assert (report.tool, report.tool_version, report.stage) == ("Vivado", "2023.1", "synth")
    assert (report.design, report.part, report.state) == ("myproject", "xcvu9pflgb2104-2", "Synthesized")
    assert report.cycles == Cycles()


def test_columns_of_a_utilization_are_found_by_name():
    rows, total = FAMILIES["UltraScale+"]
    header = ["Util%", "Prohibited", "Available", "Site Type", "Used"]
    moved = [["99.9", "8", "1000", name, count] for name, count, *_ in rows]
    assert one(utilization(moved, header=header)).total == total


def test_a_row_that_is_part_of_another_does_not_count_for_it():
    rows = used(("CLB LUTs", "4000"), ("CLB Registers", "5000"), ("Block RAM Tile", "0.5"), ("  RAMB18", "1"))
    report = one(utilization([*rows, *used(("CLB LUTs", "1"))]))
    assert report.total == Resources(lut=4000, ff=5000, bram18=1)


def test_other_counts_keep_their_names():
    assert one(utilization(FAMILIES["7-series"][0])).other == {"lut_logic": 3900, "lut_memory": 100}
    assert one(utilization(FAMILIES["UltraScale+"][0])).other == {"carry8": 30}


@pytest.mark.parametrize(
    ("state", "stage", "noted"),
    [
        ("Synthesized", "synth", False),
        ("Optimized", "synth", True),
        ("Fully Placed", "route", True),
        ("Routed", "route", False),
        ("Physopt postRoute", "route", True),
    ],
)
def test_the_design_state_decides_the_stage(state, stage, noted):
    report = one(utilization(FAMILIES["7-series"][0], state=state))
    assert report.stage == stage
    assert bool(report.notes) is noted


@pytest.mark.parametrize("state", [None, "Elaborated"])
def test_a_utilization_of_no_known_stage_is_refused(state):
    with pytest.raises(ReportError, match="figures of different stages must not be mixed"):
        one(utilization(FAMILIES["7-series"][0], state=state))


def test_a_utilization_without_registers_is_refused():
    with pytest.raises(ReportError, match="has no row Slice LUTs or CLB LUTs, or none of Slice Registers"):
        one(utilization(used(("CLB LUTs", "1"))))


def test_a_third_of_a_tile_is_refused():
    rows = used(("CLB LUTs", "1"), ("CLB Registers", "1"), ("Block RAM Tile", "0.3"))
    with pytest.raises(ReportError, match=r"'Block RAM Tile' counts 0\.6; wanted a whole number"):
        one(utilization(rows))


def test_the_hierarchy_gives_a_row_for_each_instance():
    report = one(hierarchy())
    assert report.stage == "route"
    assert report.total == Resources(lut=1000, ff=900, dsp=12, bram18=5, uram=0)
    (row,) = report.rows
    assert (row.name, row.module) == ("dense_U0", "dense_latency_config2")
    assert row.usage == Resources(lut=800, ff=800, dsp=12, bram18=5, uram=0)
    assert report.other == {"lut_logic": 990, "lut_shift_register": 10}


def test_percentages_may_have_a_decimal_comma():
    assert one(hierarchy(",")).total == one(hierarchy()).total
    assert "900(0,1%)" in hierarchy(",")


def test_the_kernels_of_a_platform_are_the_total_and_the_platform_is_not():
    report = one(accelerator())
    assert (report.tool, report.tool_version, report.stage, report.state) == ("Vivado", "2022.2", "route", "Routed")
    assert report.total == Resources(lut=30500, ff=41000, dsp=96, bram18=83, uram=3)
    assert report.breakdown == {PLATFORM: Resources(lut=110200, ff=150100, dsp=4, bram18=380, uram=0)}
    assert [row.name for row in report.rows] == ["myproject", "myproject_1"]
    assert report.rows[1].usage == report.total
    assert report.other == {"lut_memory": 1200}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (accelerator(state=None), "design state None; wanted a report of Vivado's report_accelerator_utilization"),
        (accelerator(tiles="41.3 [  2.10%]"), r"'BRAM' counts 41\.3 tiles; wanted whole or half ones"),
        (accelerator().replace("Used Resources", "Used Resourcez"), "no row 'Platform' or 'Used Resources'"),
        (accelerator().replace("LUT ", "L   "), "has no table with the columns Name, LUT, REG, BRAM, DSP"),
    ],
)
def test_a_platform_report_of_another_form_is_refused(text, message):
    with pytest.raises(ReportError, match=message):
        one(text)


def test_timing_gives_slack_clock_and_reached_period():
    report = one(timing())
    assert (report.stage, report.clock_ns, report.slack_ns, report.est_clock_ns) == ("route", 5.0, -0.463, 5.463)
    assert report.total == Resources()


@pytest.mark.parametrize("text", [timing(wns="NA"), timing(constrained=False)], ids=["NA", "no clock"])
def test_timing_without_constraints_states_no_slack(text):
    report = one(text)
    assert (report.stage, report.slack_ns, report.est_clock_ns) == ("route", None, None)


def test_timing_without_constraints_says_so_and_has_no_clock():
    report = one(timing(constrained=False))
    assert report.clock_ns is None
    assert report.notes == ("the design has no timing constraint, so the report states no slack and no period",)


def test_a_timing_report_that_lost_its_clocks_is_refused():
    text = timing().replace("Clock             Waveform(ns)", "").replace("-----             ------------", "")
    text = text.replace("         Period(ns)      Frequency(MHz)", "").replace(
        "         ----------      --------------", ""
    )
    with pytest.raises(ReportError, match="has no whole table"):
        one(text)


@pytest.mark.parametrize(("net", "stage"), [("routed", "route"), ("unplaced", "synth")])
def test_older_timing_reports_tell_the_stage_by_their_nets(net, stage):
    assert one(timing(state=None, net=net)).stage == stage


@pytest.mark.parametrize(("state", "net"), [("Fully Placed", "estimated"), (None, "estimated"), (None, "strange")])
def test_timing_of_a_placed_design_belongs_to_no_stage(state, net):
    with pytest.raises(ReportError, match="neither those after routing nor those after synthesis"):
        one(timing(state=state, net=net))


def test_one_estimated_net_is_enough_to_refuse():
    text = timing(state=None) + "                         net (fo=2, estimated)        0.827     3.754    y\n"
    with pytest.raises(ReportError, match="neither those after routing nor those after synthesis"):
        one(text)


def test_a_fit_report_counts_aluts_and_keeps_alms_and_blocks_apart():
    report = one(fit_rpt())
    assert (report.tool, report.tool_version, report.stage) == ("Quartus Prime", "22.1.0", "route")
    assert (report.design, report.part) == ("myproject", "10AX115S2F45I1SG")
    assert report.total == Resources(lut=4100, ff=3821, dsp=4)
    assert report.other == {"alm": 2825, "ram_block": 87, "memory_bit": 575968}
    (row,) = report.rows
    assert (row.name, row.module) == ("dense_1:dense_1_inst", "dense_1")
    assert row.usage == Resources(lut=4085, ff=3800, dsp=4)


@pytest.mark.parametrize("values", [FIT_VALUES, STANDARD_VALUES], ids=["Pro", "Standard"])
def test_a_fit_summary_states_no_aluts(values):
    report = one(fit_summary(values))
    assert report.total == Resources(lut=None, ff=3821, dsp=4)
    assert report.other == {"alm": 2825, "ram_block": 87, "memory_bit": 575968}
    assert report.rows == ()


def test_a_family_without_alms_counts_functions_and_nine_bit_multipliers():
    report = one(fit_summary(MAX10_VALUES))
    assert report.total == Resources(lut=2100, ff=912, dsp=None)
    assert report.other == {"logic_element": 2345, "memory_bit": 4096, "multiplier_9bit": 8}


def test_a_fit_summary_that_is_cut_off_inside_a_number_is_refused():
    text = fit_summary()
    with pytest.raises(ReportError, match="has no line 'Total PLLs' or 'UFM blocks'; the report is cut off"):
        one(text[: text.index("3821") + 2])


def test_a_failed_fit_is_refused():
    with pytest.raises(ReportError, match="fitter status 'Failed - today'; wanted 'Successful'"):
        one(fit_rpt({**FIT_VALUES, "Fitter Status": "Failed - today"}))
