"""Estimates beside reports."""

import importlib.util
import json
from dataclasses import replace
from pathlib import Path

import pytest

from fpgaprune.errors import ReportError
from fpgaprune.measure import (
    ESTIMATED,
    OPEN_SYNTH,
    ROUTE_ECP5,
    STAGES,
    Estimate,
    Figure,
    LayerEstimate,
    Resources,
    Stage,
)
from fpgaprune.target import Target
from fpgaprune.vendor import ModuleRow, VendorReport, compare, match_layers, parse_reports

from .texts import TOTAL, accelerator, cosim, csynth, csynth_xml, hierarchy, summary, timing, utilization

ROWS = [
    ["CLB LUTs*", "2000", "0", "9000", "1"],
    ["CLB Registers", "1500", "0", "9000", "1"],
    ["DSPs", "0", "0", "90", "1"],
]


def used(*counts):
    return Resources(**{name: Figure(n, n, n) for name, n in zip(ESTIMATED, counts, strict=True)})


def estimate(*more):
    rows = [
        ("input_1", "Input", (0, 0, 0, 0), (0, 0, 0, 0), 0, 1),
        ("fc1", "Dense", (6000, 750, 5, 6), (3000, 700, 5, 6), 20, 2),
        ("fc1_relu", "Activation", (25, 20, 0, 0), (20, 20, 0, 0), 1, 1),
        ("fc2", "Dense", (1350, 480, 2, 0), (700, 400, 2, 0), 5, 2),
        *more,
    ]
    layers = tuple(LayerEstimate(name, kind, None, used(*a), used(*b), c, d) for name, kind, a, b, c, d in rows)
    total = {"csynth": used(9134, 1060, 9, 12), "synth": used(1000, 3000, 7, 6)}
    return Estimate("myproject", Target.of("xc7z020"), total, layers, 2293, 4554, ())


FC3 = ("fc3", "Dense", (6000, 750, 5, 6), (3000, 700, 5, 6), 20, 2)


def reports(*texts):
    return [report for at, text in enumerate(texts) for report in parse_reports(text, f"report{at}")]


def find(table, figure, layer=None, design="a"):
    (row,) = [row for row in table.rows if (row.design, row.layer, row.figure) == (design, layer, figure)]
    return row


def test_open_tools_have_columns_of_their_own_and_no_ratio():
    rows = (ModuleRow("fc1", "fc1", Resources(lut=555)), ModuleRow("fc2", "fc2", Resources(lut=444)))
    opened = VendorReport("Yosys", None, OPEN_SYNTH, design="net", total=Resources(lut=1111, ff=9), rows=rows)
    routed = VendorReport("nextpnr", None, ROUTE_ECP5, design="net", total=Resources(lut=2222), est_clock_ns=9.5)
    table = compare({"a": [*reports(csynth()), opened, routed]}, {"a": estimate()})
    whole = find(table, "lut")
    assert (whole.values["csynth"], whole.values["synth(open)"], whole.values["route(ecp5)"]) == (4567, 1111, 2222)
    assert set(whole.ratios) == {"csynth", "synth"}
    assert whole.values["synth"] is None
    assert find(table, "lut", "fc1").values["synth(open)"] == 555
    assert find(table, "est_clock_ns").values["route(ecp5)"] == 9.5


def test_every_stage_has_a_column_of_its_own():
    table = compare({"a": reports(csynth(), utilization(ROWS), hierarchy(), timing(), cosim())}, {"a": estimate()})
    assert table.columns == STAGES
    assert find(table, "lut").values == {
        "analytic_csynth": 9134,
        "csynth": 4567,
        "analytic_synth": 1000,
        "synth": 2000,
        "route": 1000,
        "cosim": None,
        "analytic_synth(open)": None,
        "synth(open)": None,
        "route(ecp5)": None,
    }
    assert find(table, "lut").ratios == {"csynth": 2.0, "synth": 0.5}
    latency = find(table, "latency_max_cycles")
    assert latency.values == {
        "analytic_csynth": 2293,
        "csynth": 2293,
        "analytic_synth": None,
        "synth": None,
        "route": None,
        "cosim": 23290,
        "analytic_synth(open)": None,
        "synth(open)": None,
        "route(ecp5)": None,
    }
    assert latency.ratios == {"csynth": 1.0, "synth": None}
    assert find(table, "interval_max_cycles").ratios["csynth"] == 2.0
    assert find(table, "est_clock_ns").values["route"] == 5.463
    assert find(table, "est_clock_ns").values["csynth"] == 3.77


def test_a_ratio_to_nothing_or_to_the_unknown_is_none():
    table = compare({"a": reports(csynth(), utilization(ROWS))}, {"a": estimate()})
    assert find(table, "dsp").values["synth"] == 0
    assert find(table, "dsp").ratios == {"csynth": 1.0, "synth": None}
    assert find(table, "bram18").values["synth"] is None
    assert find(table, "bram18").ratios == {"csynth": 2.0, "synth": None}


def test_layers_are_compared_with_their_own_rows():
    table = compare({"a": reports(csynth())}, {"a": estimate()})
    first = find(table, "lut", "fc1")
    assert (first.kind, first.module) == ("Dense", "dense_latency_ap_fixed_config2_s")
    assert (first.values["analytic_csynth"], first.values["csynth"], first.ratios["csynth"]) == (6000, 3000, 2.0)
    assert find(table, "lut", "fc2").module == "dense_latency_ap_fixed_config5_s"
    assert find(table, "lut", "fc1_relu").ratios["csynth"] == 0.5
    assert find(table, "latency_max_cycles", "fc1").ratios["csynth"] == 2.0
    assert table.notes == ()


def test_a_layer_whose_row_is_not_certain_has_none_and_is_named():
    table = compare({"a": reports(csynth())}, {"a": estimate(FC3)})
    assert find(table, "lut", "fc1").values["csynth"] is None
    assert find(table, "lut", "fc1").module is None
    assert find(table, "lut", "fc1_relu").values["csynth"] == 50
    assert table.notes == ("a: no row of a report is certainly that of fc1, fc2, fc3",)


def test_a_caller_may_name_the_rows():
    named = {"fc3": "dense_latency_ap_fixed_config2_s", "fc2": "dense_latency_config5_U0"}
    table = compare({"a": reports(csynth())}, {"a": estimate(FC3)}, {"a": named})
    assert find(table, "lut", "fc3").values["csynth"] == 3000
    assert find(table, "lut", "fc2").values["csynth"] == 1350
    assert find(table, "lut", "fc1").values["csynth"] is None


def test_reports_of_modules_take_no_part_in_the_totals():
    inner = csynth(design="dense_latency_ap_fixed_config2_s", instances={}, total={**TOTAL, "LUT": "3000"})
    table = compare({"a": reports(inner, csynth())}, {})
    assert find(table, "lut").values["csynth"] == 4567


def test_a_summary_beside_its_report_takes_no_part():
    rounded = summary().replace("| 2277 ", "| 2280 ")
    assert rounded != summary()
    table = compare({"a": reports(rounded, csynth())}, {})
    assert find(table, "uram").values["csynth"] == 0
    assert find(table, "interval_max_cycles").values["csynth"] == 2277
    assert find(compare({"a": reports(summary())}, {}), "lut").values["csynth"] == 4567


def test_the_kernels_alone_are_the_design_and_the_whole_image_gives_its_clock():
    table = compare({"a": reports(accelerator(), hierarchy(), timing())}, {})
    assert find(table, "lut").values["route"] == 30500
    assert find(table, "est_clock_ns").values["route"] == 5.463


def test_text_and_xml_of_one_run_agree():
    table = compare({"a": reports(csynth_xml(), csynth(instances={}))}, {})
    assert find(table, "latency_max_cycles").values["csynth"] == 2293


def test_two_runs_under_one_label_are_refused():
    other = csynth(total={**TOTAL, "LUT": "4568"})
    with pytest.raises(
        ReportError,
        match="design 'a', stage csynth: lut is 4567 in report0 and 4568 in report1; pass the reports of one run only",
    ):
        compare({"a": reports(csynth(), other)}, {})


def test_two_designs_under_one_label_are_refused():
    with pytest.raises(
        ReportError, match="design 'a' has csynth reports on myproject, other, none of which is inside another"
    ):
        compare({"a": reports(csynth(), csynth(design="other"))}, {})


def test_a_failed_simulation_is_left_out_and_named():
    table = compare({"a": reports(csynth(), cosim(verilog="Fail"))}, {})
    assert find(table, "latency_max_cycles").values["cosim"] is None
    assert table.notes == ("a: report1: the simulation failed; its cycles are left out",)


def test_designs_stand_side_by_side_with_what_each_has():
    table = compare({"a": reports(csynth()), "b": reports(utilization(ROWS))}, {"c": estimate()})
    assert list(dict.fromkeys(row.design for row in table.rows)) == ["a", "b", "c"]
    assert find(table, "lut", design="b").values["csynth"] is None
    assert find(table, "lut", design="c").values["analytic_csynth"] == 9134
    json.dumps(table.to_json())
    assert {"ratio_csynth", "route", "layer"} <= set(table.to_json()["rows"][0])


def test_another_family_of_open_tools_has_a_column_behind_the_others():
    routed = VendorReport("nextpnr", None, Stage("route(nexus)"), total=Resources(lut=3))
    table = compare({"a": [routed]}, {})
    assert table.columns == (*STAGES, "route(nexus)")
    assert table.to_json()["rows"][0]["route(nexus)"] == 3


def test_an_estimate_of_ours_is_compared():
    path = Path(__file__).parents[1] / "estimate" / "designs.py"
    spec = importlib.util.spec_from_file_location("estimate_designs", path)
    designs = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(designs)
    from fpgaprune.estimate import estimate as price

    priced = price(designs.mlp(), Target.of("xc7z020clg400-1"))
    table = compare({}, {"a": priced})
    assert find(table, "lut").values["analytic_csynth"] == priced.total["csynth"].lut.value


def test_rows_are_matched_by_the_layer_s_name_first():
    rows = [ModuleRow("u_fc1", "fc1"), ModuleRow("dense_inst", "fc2", Resources(lut=1))]
    found = match_layers([("fc1", "Dense"), ("fc2", "Dense"), ("fc3", "Dense")], rows)
    assert {name: row.module for name, row in found.items()} == {"fc1": "fc1", "fc2": "fc2"}


def test_a_name_that_two_rows_bear_matches_none():
    row = ModuleRow("grp_fc1_fu_10", "relu")
    assert match_layers([("fc1", "Dense")], [row, replace(row, name="grp_fc1_fu_20")]) == {}


@pytest.mark.parametrize(
    ("numbers", "matched"),
    [((2, 5), True), ((11, 9), True), ((2, 2), False), ((2, None), False)],
    ids=str,
)
def test_functions_of_one_sort_match_in_the_order_of_their_numbers(numbers, matched):
    modules = [f"dense_ap_fixed_{'s' if number is None else f'config{number}_s'}" for number in numbers]
    found = match_layers([("a", "Dense"), ("b", "Dense")], [ModuleRow(f"{m}_U0", m) for m in modules])
    wanted = sorted(modules, key=lambda m: int(m.split("config")[1].split("_")[0])) if matched else []
    assert [found[name].module for name in found] == wanted


@pytest.mark.parametrize("layers", [1, 3])
def test_functions_match_only_where_there_are_as_many_layers(layers):
    rows = [ModuleRow(f"dense_config{number}_U0", f"dense_config{number}_s") for number in (2, 5)]
    assert match_layers([(f"layer{at}", "Dense") for at in range(layers)], rows) == {}


def test_scales_that_hls4ml_made_are_not_put_in_order_with_others():
    """It numbers the scale of a quantised layer after all layers of the network, wherever it stands."""
    rows = [ModuleRow("x", "normalize_config9_s"), ModuleRow("y", "normalize_config5_s")]
    assert match_layers([("fc1_alpha", "BatchNorm"), ("bn1", "BatchNorm")], rows) == {}
    made = match_layers([("fc1_alpha", "BatchNorm"), ("fc2_alpha", "BatchNorm")], rows)
    assert {name: row.name for name, row in made.items()} == {"fc1_alpha": "y", "fc2_alpha": "x"}


def test_pointwise_convolutions_are_not_put_in_order_with_others():
    """hls4ml numbers them anew, so the pointwise one may come last in number and first in the network."""
    layers = [("c1", "Conv2D"), ("c2", "Conv2D")]
    rows = [ModuleRow("x", "conv_2d_cl_config4_s"), ModuleRow("y", "pointwise_conv_2d_cl_config9_s")]
    assert match_layers(layers, rows) == {}
    turned = [ModuleRow("x", "pointwise_conv_2d_cl_config8_s"), rows[1]]
    assert [row.name for row in match_layers(layers, turned).values()] == ["x", "y"]
