"""The report contradicts itself nowhere: its two first lines are the two answers, and a number has one source."""

from dataclasses import replace

import numpy as np
import pytest
from msgspec import structs

from fpgaprune.measure import (
    Cells,
    Figure,
    Measured,
    ModuleSynthesis,
    Occupancy,
    Resources,
    Simulated,
    Synthesis,
    VerilogPrice,
)
from fpgaprune.report import (
    KEPT,
    MINUS,
    NO_BREAK,
    Check,
    LinkSummary,
    Metric,
    certificate_table,
    checks_tables,
    give_answers,
    kernel_states,
    kernels_table,
    kernels_text,
    layer_reports,
    measured_verdict,
    metric_label,
    render_page,
    verdicts,
)
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
# Loss, estimate -> the beginning of each answer and its tone. Neither is good where the other is bad.
IS_KEPT, NOT_KEPT, UNKNOWN = "Accuracy kept (", "Accuracy not kept (", "Accuracy not compared ("
VERDICTS = {
    ("good", "good"): (IS_KEPT, "good", "Fits xc7z020: yes (", "good"),
    ("good", "bad"): (IS_KEPT, "open", "Fits xc7z020: no (LUT 111,719–111,721 of 53,200, estimate for", "bad"),
    ("good", "open"): (IS_KEPT, "good", "Fits xc7z020: probably (LUT 53,199–53,201 of 53,200, estimate for", "open"),
    ("good", "none"): (IS_KEPT, "good", "Fits xc7z020: not known (no estimate)", "open"),
    ("bad", "good"): (NOT_KEPT, "bad", "Fits xc7z020: yes (", "open"),
    ("bad", "bad"): (NOT_KEPT, "bad", "Fits xc7z020: no (", "bad"),
    ("bad", "open"): (NOT_KEPT, "bad", "Fits xc7z020: probably (", "open"),
    (None, "good"): (UNKNOWN, "open", "Fits xc7z020: yes (", "good"),
    (None, "bad"): (UNKNOWN, "open", "Fits xc7z020: no (", "bad"),
}


def metric(lost, **changes):
    given = {"lost": lost, "lost_error": None, "max_loss": 0.02, **changes}
    return Metric("accuracy", 0.9, 0.6, 99, "x", **given)


@pytest.mark.parametrize(("loss", "fit"), VERDICTS)
def test_two_answers_begin_the_page_and_the_boxes_have_their_tones(loss, fit):
    report = run_report(metric=metric(LOST[loss]), after=ESTIMATES[fit])
    kept, fits = verdicts(report)
    begins, tone, fit_begins, fit_tone = VERDICTS[loss, fit]
    assert (kept.text.startswith(begins), kept.tone) == (True, tone), kept.text
    assert (fits.text.startswith(fit_begins), fits.tone) == (True, fit_tone), fits.text
    page = render_page(report)
    for one in (kept, fits):
        assert f'<p class="headline {one.tone}">{one.text}</p>' in page
    assert [answer.tone for answer in give_answers(report)[:2]] == [tone, fit_tone]


@pytest.mark.parametrize(
    ("lost", "error", "reply", "begins"),
    [(0.002, 0.003, "yes", "Accuracy kept ("), (0.3, 0.003, "unknown", "Accuracy lost 30.00 ± 0.30\u00a0points (")],
)
def test_without_a_limit_a_loss_is_stated_and_not_judged(lost, error, reply, begins):
    kept, _ = verdicts(run_report(metric=metric(lost, lost_error=error, max_loss=None)))
    assert (kept.reply, kept.text.startswith(begins)) == (reply, True), kept.text
    assert "no limit was named" in kept.text


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
    said = 'It may grow by 2\u00a0%, and one standard error more (verdict.max_loss = "2 %")'
    assert said in give_answers(report)[0].lines
    assert "it may grow by 2\u00a0%" in verdicts(report)[0].text
    assert verdicts(report)[0].text.startswith("MAE ")
    assert "0.02 is allowed" not in render_page(report)


def test_points_and_growth_stand_in_the_table_of_checks_as_in_the_verdict():
    lost = Check("hardware", "accuracy lost", 0.0082, 0.02, unit="points", about="metric")
    table = checks_tables(run_report(checks=[lost]))[0]
    assert table.rows[0][2:4] == ("0.82\u00a0points", "≤ 2\u00a0points")


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
    fits = run_report(**given, verilog=price(11000, 5000))
    answer = give_answers(fits)[1]
    assert (answer.question, answer.verdict) == ("Does it fit gw2a-18?", "Yes")
    assert any("No tool of Gowin builds an hls4ml project" in line for line in answer.lines)
    assert any("LUT 11,000 of 20,736 (53.0 %), FF 5,000 of 15,552" in line for line in answer.lines)
    too_big = run_report(**given, verilog=price(18000, 23700))
    assert verdicts(too_big)[1].tone == "bad"
    # An AMD part's tools do build one: the flow asked for our Verilog.
    asked = run_report(**{**given, "target": Target.of("xc7z020clg400-1")}, verilog=price(11000, 5000))
    assert not any("builds an hls4ml project" in line for line in give_answers(asked)[1].lines)
    assert verdicts(too_big)[1].text == "Fits gw2a-18: no (FF 23,690–23,710 of 15,552, estimate for open synthesis)"
    # A count stands in place of the estimate, in both directions.
    said = verdicts(replace(too_big, measured=counted(11000, 5000)))[1]
    assert said.text == "Fits gw2a-18: yes (LUT 11,000 of 20,736, counted by open synthesis, not placed)"
    assert verdicts(replace(fits, measured=counted(11000, 23700)))[1].reply == "no"


def test_a_network_that_place_and_route_would_hardly_take_only_probably_fits():
    """On Gowin a register leads through a LUT: 9,000 of them beside 18,000 LUT are more than the part has."""
    given = {"target": GOWIN, "before": None, "after": None, "advice": None}
    crowded = run_report(**given, verilog=price(11000, 12360))
    said = f"LUT about 95{NO_BREAK}% of the part once placed; place and route copes with 75{NO_BREAK}%"
    assert verdicts(crowded)[1].text == f"Fits gw2a-18: probably ({said})"
    assert verdicts(crowded)[1].tone == "open"
    assert give_answers(crowded)[1].lines[0].startswith(f"{said}; export for a board and fit choose a layout")
    full = run_report(**given, verilog=price(18000, 9000))
    said = f"LUT about 117{NO_BREAK}% of the part once placed; place and route copes with 75{NO_BREAK}%"
    assert verdicts(full)[1].text == f"Fits gw2a-18: no ({said})"
    # A count stands in place of the estimate, and what was placed in place of both.
    assert verdicts(replace(full, measured=counted(11000, 5000)))[1].reply == "yes"
    assert verdicts(replace(crowded, measured=counted(18000, 9000)))[1].reply == "no"
    placed = structs.replace(counted(11000, 12360), bitstream={"device": "GW2A-18"})
    assert verdicts(replace(crowded, measured=placed))[1].reply == "yes"


def test_what_our_verilog_saved_is_said_where_the_trained_network_has_an_estimate_too():
    given = {"target": GOWIN, "before": None, "after": None, "advice": None, "verilog": price(9000, 9000)}
    report = run_report(**given, verilog_before=price(18000, 23700))
    saved = give_answers(report)[2]
    assert saved.verdict == f"LUT {MINUS}50{NO_BREAK}%"
    assert saved.lines[0] == f"FF {MINUS}62{NO_BREAK}% (estimates of our Verilog, at the same interval)"
    assert "Before it did not fit: FF 23,690–23,710 of 15,552" in give_answers(report)[1].lines
    assert "kernels locked" in give_answers(run_report(**given))[2].verdict


def test_what_fits_only_as_our_verilog_is_said_to_fit_as_that():
    module = ModuleSynthesis(None, "top", Cells(lut=20000, ff=20000, dsp=0))
    measured = Measured(
        "xc7", (), {"xc7": Synthesis("xc7", "yosys", "all cells", (), module)}, None, Simulated(left_out="not asked")
    )
    report = run_report(after=ESTIMATES["bad"])
    answer = give_answers(replace(report, measured=measured))[1]
    assert (answer.verdict, answer.tone) == ("Yes, as our Verilog", "good")
    assert any("As an hls4ml project: no (LUT 111,719–111,721" in line for line in answer.lines)
    # A count that does not fit is said beside an hls4ml project that fits by its estimate.
    big = structs.replace(module, cells=Cells(lut=60000, ff=1))
    big = structs.replace(measured, synthesis={"xc7": Synthesis("xc7", "yosys", "all cells", (), big)})
    beside = verdicts(replace(run_report(), measured=big))[1]
    assert (beside.reply, "; as our Verilog: no (LUT 60,000 of 53,200, counted" in beside.text) == ("yes", True)
    # After a layout for another part, our Verilog is judged on that part alone.
    there = Occupancy.of(Cells(lut=200000, ff=20000), "xc7z045", Resources(lut=218600, ff=437200))
    elsewhere = replace(report, measured=measured, counted_elsewhere=there)
    said = measured_verdict(elsewhere)
    assert said.text == (
        "Fits xc7z045: yes, as our Verilog (LUT 200,000 of 218,600, counted by open synthesis, not placed)"
    )
    assert verdicts(elsewhere)[1].reply == "no"
    assert said.text in give_answers(elsewhere)[1].lines
    too_big = replace(elsewhere, counted_elsewhere=Occupancy.of(Cells(lut=9), "tiny", Resources(lut=8)))
    assert measured_verdict(too_big).reply == "no"
    # The sum of layers leaves out the logic between them, so that it cannot say that a design fits.
    parts = (ModuleSynthesis("conv1", "m", Cells(lut=20000, ff=20000)),)
    summed = structs.replace(
        measured, synthesis={"xc7": Synthesis("xc7", "yosys", "", parts, ModuleSynthesis(None, "top", None))}
    )
    assert give_answers(replace(report, measured=summed))[1].tone == "bad"
    said = measured_verdict(replace(report, measured=summed))
    assert said.text == (
        "Fits xc7z020: not known, as our Verilog (counted for xc7, and not as a whole design for this part)"
    )
    placed = structs.replace(summed, bitstream={"device": "lfe5u-85f"})
    assert measured_verdict(replace(report, measured=placed)).text.startswith("Fits lfe5u-85f: yes, as our Verilog (")
    assert measured_verdict(report) is None


@pytest.mark.parametrize(("project", "ours"), [("bad", "yes"), ("good", "no")])
def test_what_was_measured_is_judged_by_its_count_and_not_by_the_project(project, ours):
    lut = {"yes": 20000, "no": 60000}[ours]
    module = ModuleSynthesis(None, "top", Cells(lut=lut, ff=1))
    measured = Measured("xc7", (), {"xc7": Synthesis("xc7", "y", "", (), module)}, None, Simulated(left_out="no"))
    said = measured_verdict(replace(run_report(after=ESTIMATES[project]), measured=measured))
    assert (said.reply, said.tone) == (ours, {"yes": "good", "no": "bad"}[ours])


def test_a_sentence_begins_with_the_words_of_its_metric():
    assert [metric_label(name) for name in ("accuracy", "AUC", "mae", "binary_accuracy")] == [
        *("Accuracy", "AUC", "MAE", "Binary accuracy")
    ]
