"""Reports of logic synthesis, place and route: Vivado, Quartus, Libero; and of the other HLS compilers."""

import pytest

from fpgaprune.errors import ReportError
from fpgaprune.vendor import Cycles, Usage, parse_reports
from fpgaprune.vendor.layer_rows import match_layers

from .texts import (
    FIT_VALUES,
    catapult,
    fit_rpt,
    fit_summary,
    hierarchy,
    libero,
    quartus_data,
    report_data,
    timing,
    utilization,
)


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
        Usage(lut=4000, ff=5000, dsp=7, bram18=5, uram=None),
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
        Usage(lut=4000, ff=5000, dsp=7, bram18=4, uram=3),
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
        Usage(lut=4000, ff=5000, dsp=7, bram18=7, uram=0),
    ),
    "Versal with slices": (
        used(("Registers", "5000"), ("CLB LUTs", "4000"), ("DSP Slices", "7"), ("  DSP58", "5"), ("  DSPCPLX", "1")),
        Usage(lut=4000, ff=5000, dsp=7, bram18=None, uram=None),
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
    assert report.total == Usage(lut=4000, ff=5000, bram18=1)


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
    assert report.total == Usage(lut=1000, ff=900, dsp=12, bram18=5, uram=0)
    (row,) = report.rows
    assert (row.name, row.module) == ("dense_U0", "dense_latency_config2")
    assert row.usage == Usage(lut=800, ff=800, dsp=12, bram18=5, uram=0)
    assert report.other == {"lut_logic": 990, "lut_shift_register": 10}


def test_timing_gives_slack_clock_and_reached_period():
    report = one(timing())
    assert (report.stage, report.clock_ns, report.slack_ns, report.est_clock_ns) == ("route", 5.0, -0.463, 5.463)
    assert report.total == Usage()


def test_timing_without_constraints_states_no_slack():
    report = one(timing(wns="NA"))
    assert (report.slack_ns, report.est_clock_ns) == (None, None)


@pytest.mark.parametrize(("net", "stage"), [("routed", "route"), ("unplaced", "synth")])
def test_older_timing_reports_tell_the_stage_by_their_nets(net, stage):
    assert one(timing(state=None, net=net)).stage == stage


@pytest.mark.parametrize(("state", "net"), [("Fully Placed", "estimated"), (None, "estimated"), (None, "strange")])
def test_timing_of_a_placed_design_belongs_to_no_stage(state, net):
    with pytest.raises(ReportError, match="neither those of a route nor those after synthesis"):
        one(timing(state=state, net=net))


def test_one_estimated_net_is_enough_to_refuse():
    text = timing(state=None) + "                         net (fo=2, estimated)        0.827     3.754    y\n"
    with pytest.raises(ReportError, match="neither those of a route nor those after synthesis"):
        one(text)


def test_a_fit_report_counts_aluts_and_keeps_alms_and_blocks_apart():
    report = one(fit_rpt())
    assert (report.tool, report.tool_version, report.stage) == ("Quartus Prime", "22.1.0", "route")
    assert (report.design, report.part) == ("myproject", "10AX115S2F45I1SG")
    assert report.total == Usage(lut=4100, ff=3821, dsp=4)
    assert report.other == {"alm": 2825, "ram_block": 87, "memory_bit": 575968}
    (row,) = report.rows
    assert (row.name, row.module) == ("dense_1:dense_1_inst", "dense_1")
    assert row.usage == Usage(lut=4085, ff=3800, dsp=4)


def test_a_fit_summary_states_no_aluts():
    report = one(fit_summary())
    assert report.total == Usage(lut=None, ff=3821, dsp=4)
    assert report.rows == ()


def test_a_family_without_alms_counts_functions_and_nine_bit_multipliers():
    values = {
        "Fitter Status": "Successful - today",
        "Quartus Prime Version": "18.1.0 Build 625",
        "Device": "EP4CE22F17C6",
        "Total logic elements": "2,345 / 22,320 ( 11 % )",
        "Total combinational functions": "2,100 / 22,320 ( 9 % )",
        "Total registers": "900",
        "Embedded Multiplier 9-bit elements": "8 / 132 ( 6 % )",
    }
    report = one("\n".join(f"{name} : {value}" for name, value in values.items()))
    assert report.total == Usage(lut=2100, ff=900, dsp=None)
    assert report.other == {"logic_element": 2345, "multiplier_9bit": 8}


def test_a_failed_fit_is_refused():
    with pytest.raises(ReportError, match="fitter status 'Failed - today'; wanted 'Successful'"):
        one(fit_rpt({**FIT_VALUES, "Fitter Status": "Failed - today"}))


def test_the_intel_hls_estimate_is_read_by_the_names_of_its_columns():
    report = one(report_data())
    assert (report.tool, report.tool_version, report.stage) == ("Intel HLS Compiler", "22.1.0 Build 174", "csynth")
    assert (report.design, report.part) == ("myproject", "10AX115S2F45I1SG")
    assert report.total == Usage(lut=1000, ff=2000, dsp=12)
    assert report.other == {"ram_block": 30, "mlab": 4}
    assert report.rows[0].usage == Usage(lut=800, ff=1500, dsp=12)


def test_an_estimate_without_column_names_is_refused():
    text = report_data().replace('"columns":["","FFs","ALUTs","DSPs","RAMs","MLABs","Details"],', "")
    with pytest.raises(ReportError, match="areaJSON has no list 'columns'; without it no figure can be named"):
        one(text)


@pytest.mark.parametrize("bare", [False, True])
def test_the_fit_of_an_intel_hls_project(bare):
    text = quartus_data()
    report = one(text[text.index("{") : text.rindex("}") + 1] if bare else text)
    assert (report.stage, report.est_clock_ns) == ("route", 4.0)
    assert report.total == Usage(lut=None, ff=3821, dsp=12)
    assert report.other == {"alm": 2824, "ram_block": 30, "mlab": 0}
    assert report.rows[0].usage == Usage(ff=100, dsp=4)


def test_a_fit_that_was_not_run_is_refused():
    with pytest.raises(ReportError, match="no fit has been run: its clock is 'TBD'"):
        one(quartus_data("TBD"))


def test_catapult_gives_cycles_and_no_lut():
    report = one(catapult())
    assert (report.tool, report.tool_version, report.stage) == ("Catapult", "2024.1_1", "csynth")
    assert (report.design, report.clock_ns) == ("myproject", 5.0)
    assert report.cycles == Cycles(25, 25, 3, 3)
    assert report.total == Usage()
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
    assert "586221.4" in report.notes[1]


def test_a_loop_without_a_bound_has_no_latency_in_catapult():
    assert one(catapult(latency="-1")).cycles == Cycles(None, None, 3, 3)


def test_smarthls_gives_resources_after_libero_and_the_simulation():
    resources, simulation = parse_reports(libero(), "report")
    assert (resources.stage, resources.tool) == ("route", "Libero")
    assert (resources.clock_ns, resources.est_clock_ns, resources.slack_ns) == (10.0, 4.225, 5.775)
    assert resources.total == Usage(lut=560, ff=469, dsp=3)
    assert resources.other == {"lsram": 2, "usram": 0}
    assert (simulation.stage, simulation.design, simulation.passed) == ("cosim", "myproject_top", True)
    assert simulation.cycles == Cycles(3, 4, 1, 2)


def test_smarthls_without_place_and_route_is_of_stage_synth():
    report = one(libero(routed=False, simulated=False))
    assert report.stage == "synth"
    assert report.clock_ns is None
    assert report.total.lut == 560
