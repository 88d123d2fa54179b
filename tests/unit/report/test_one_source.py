"""The report contradicts itself nowhere: its first line names the worse answer, and a number has one source."""

from dataclasses import replace

import numpy as np
import pytest
from msgspec import structs

from fpgaprune.measure import (
    Cells,
    Figure,
    Measured,
    ModuleSynthesis,
    Resources,
    Simulated,
    Synthesis,
    VerilogPrice,
)
from fpgaprune.report import (
    Check,
    LinkSummary,
    Metric,
    give_answers,
    headline,
    kernel_states,
    kernels_table,
    layer_reports,
    render_page,
)
from fpgaprune.report.figures import KEPT, kernels_text
from fpgaprune.report.run_tables import certificate_table, checks_tables
from fpgaprune.target import Target
from fpgaprune.values import MaskSet

from .samples import estimate, resources, run_report

LOST = {None: None, "good": 0.001, "bad": 0.3}
BIG = {"scale": 111720 / 2000}
ESTIMATES = {
    "good": estimate(),
    "open": estimate(total={"csynth": resources(4000), "synth": resources(53200)}),
    "bad": estimate(**BIG),
    "none": None,
}
UNSIMULATED = Simulated(left_out="not asked")
# Loss, estimate -> the beginning of the headline and its tone.
HEADLINES = {
    ("good", "good"): ("Passed: accuracy", "good"),
    ("good", "bad"): ("Does not fit xc7z020 (LUT 210.0\u00a0% of the part, estimated); accuracy", "bad"),
    ("good", "open"): ("May fit xc7z020", "open"),
    ("good", "none"): ("Not estimated for xc7z020; accuracy", "open"),
    ("bad", "good"): ("Failed: accuracy", "bad"),
    ("bad", "bad"): ("Failed: accuracy", "bad"),
    ("bad", "open"): ("Failed: accuracy", "bad"),
    (None, "good"): ("Not judged: accuracy", "open"),
    (None, "bad"): ("Does not fit xc7z020", "bad"),
}


def metric(lost, **changes):
    given = {"lost": lost, "lost_error": None, "max_loss": 0.02, **changes}
    return Metric("accuracy", 0.9, 0.6, 99, "x", **given)


@pytest.mark.parametrize(("loss", "fit"), HEADLINES)
def test_the_headline_names_the_worse_of_loss_and_fit_everywhere(loss, fit):
    report = run_report(metric=metric(LOST[loss]), after=ESTIMATES[fit])
    text, tone = headline(report)
    begins, wanted = HEADLINES[loss, fit]
    assert (text.startswith(begins), tone) == (True, wanted), text
    assert f'<p class="headline {tone}">{text.split(":")[0].split("(")[0]}' in render_page(report)
    # Both answers are in it, whichever is worse.
    assert "accuracy" in text
    assert "xc7z020" in text


def test_a_failed_loss_says_too_that_it_does_not_fit():
    text, _ = headline(run_report(metric=metric(LOST["bad"]), after=ESTIMATES["bad"]))
    assert "; does not fit xc7z020 (LUT 210.0\u00a0% of the part" in text


def shapes():
    """Layers with free, locked and removed kernels: two of the free ones leave with their channels."""
    before = {"a/kernel": np.ones((3, 3, 2, 4)), "a/bias": np.ones(4), "d/kernel": np.ones((4, 3))}
    after = {"a/kernel": np.ones((3, 3, 2, 3)), "a/bias": np.ones(3), "d/kernel": np.ones((3, 3))}
    mask = np.ones((3, 3, 2, 4), bool)
    mask[..., 0, 1] = False
    kept = {"a/kernel": [np.arange(n) for n in (3, 3, 2)] + [np.array([0, 1, 3])]}
    kept["d/kernel"] = [np.array([0, 1, 3]), np.arange(3)]
    return layer_reports(before, after, MaskSet({"a/kernel": mask}), kept)


def test_kernels_kept_are_as_many_in_the_table_as_in_the_picture():
    layer, dense = shapes()
    states = kernel_states(layer)
    assert (layer.kernels_kept, layer.kernels_locked, layer.kernels_removed) == (5, 1, 2)
    assert (dense.kernels_kept, dense.kernels_removed) == (9, 3)
    assert int((states == KEPT).sum()) == layer.kernels_kept
    report = run_report(layers=[layer, dense])
    assert kernels_table(report).rows[0][1:4] == ("5", "1", "2")
    assert kernels_text(layer) in render_page(report)
    assert "5 kept, 1 locked, 2 removed" in kernels_text(layer)


@pytest.mark.parametrize("checks", [0, 3])
def test_the_checks_that_hold_are_as_many_as_the_rows_below_them(checks):
    report = run_report(
        certificate=[LinkSummary(f"place {n}", 1, 9, 0) for n in range(5)],
        checks=[
            Check("loss", "accuracy lost", 0.0, 0.02, unit="points", about="metric"),
            *(Check(f"check {n}", "largest difference", 0.0, 1.0) for n in range(checks)),
        ],
    )
    bits = [table for table in checks_tables(report) if "zeros and bits" in table.caption]
    rows = len(certificate_table(report).rows) + sum(len(table.rows) for table in bits)
    assert give_answers(report)[3].verdict == f"All {rows} checks of zeros and bits hold"


def test_a_check_without_a_limit_is_not_among_those_that_hold():
    report = run_report(
        certificate=[LinkSummary("a", 1, 9, 0)],
        checks=[Check("b", "same class", 0.9), Check("c", "difference", 0.0, 1.0)],
    )
    verdict = give_answers(report)[3].verdict
    assert verdict == "2 checks of zeros and bits hold, 1 measured without a limit"


def test_places_with_fewer_locked_elements_are_not_counted_with_the_others():
    links = [*(LinkSummary(name, 2, 11997, 0) for name in "ab"), *(LinkSummary(name, 2, 10269, 0) for name in "cde")]
    lines = give_answers(run_report(certificate=links, checks=[]))[3].lines
    assert lines[0] == ("Locked elements compared bit for bit: 11,997 in 2 places, 10,269 in 3 places; 0 violations")


def test_the_limit_of_an_error_is_said_as_its_growth():
    error = Metric("mae", 0.048, 0.049, 99, "x", higher_is_better=False, is_fraction=False, lost=0.01, max_loss=0.02)
    report = run_report(metric=error)
    assert "It may grow by 2\u00a0%, and one standard error (verdict.max_loss)" in give_answers(report)[1].lines
    assert "it may grow by 2\u00a0%" in headline(report)[0]
    assert "0.02 is allowed" not in render_page(report)


def test_points_and_growth_stand_in_the_table_of_checks_as_in_the_headline():
    lost = Check("hardware", "accuracy lost", 0.0082, 0.0272, unit="points", about="metric")
    table = checks_tables(run_report(checks=[lost]))[0]
    assert table.rows[0][2:4] == ("0.82\u00a0points", "≤ 2.72\u00a0points")


def price(lut, ff):
    def figure(n):
        return Figure(n, n - 10, n + 10)

    return VerilogPrice("d", "gowin", Resources(lut=figure(lut), ff=figure(ff)), (), 100, 64)


GOWIN = Target.of("GW2A-18")


def counted(lut, ff, part="gowin"):
    module = ModuleSynthesis(None, "top", Cells(lut=lut, ff=ff))
    return Measured(
        part, (), {"gowin": Synthesis("gowin", "yosys", "all cells", (), module)}, None, Simulated(left_out="not asked")
    )


def test_where_no_tool_builds_the_project_our_verilog_is_judged_and_that_is_said():
    given = {"target": GOWIN, "before": None, "after": None, "advice": None}
    fits = run_report(**given, verilog=price(18000, 9000))
    answer = give_answers(fits)[0]
    assert answer.verdict == "Fits gw2a-18"
    assert any("No tool of Gowin builds an hls4ml project" in line for line in answer.lines)
    assert any("LUT 18,000 of 20,736 (86.8 %), FF 9,000 of 15,552" in line for line in answer.lines)
    too_big = run_report(**given, verilog=price(18000, 23700))
    assert headline(too_big)[1] == "bad"
    assert headline(too_big)[0].startswith("Does not fit gw2a-18 (FF 23,700 of 15,552 (152.4 %), estimated)")
    # A count stands in place of the estimate, in both directions.
    assert headline(replace(too_big, measured=counted(18000, 9000)))[1] == "good"
    assert headline(replace(fits, measured=counted(18000, 23700)))[1] == "bad"


def test_what_fits_only_as_our_verilog_is_said_to_fit_as_that():
    module = ModuleSynthesis(None, "top", Cells(lut=20000, ff=20000, dsp=0))
    measured = Measured(
        "xc7", (), {"xc7": Synthesis("xc7", "yosys", "all cells", (), module)}, None, Simulated(left_out="not asked")
    )
    report = run_report(after=ESTIMATES["bad"])
    answer = give_answers(replace(report, measured=measured))[0]
    assert (answer.verdict, answer.tone) == ("Fits xc7z020 as our Verilog", "good")
    assert any("210.0" in line for line in answer.lines)
    # The sum of layers leaves out the logic between them, so that it cannot say that a design fits.
    parts = (ModuleSynthesis("conv1", "m", Cells(lut=20000, ff=20000)),)
    summed = structs.replace(
        measured, synthesis={"xc7": Synthesis("xc7", "yosys", "", parts, ModuleSynthesis(None, "top", None))}
    )
    assert give_answers(replace(report, measured=summed))[0].tone == "bad"
