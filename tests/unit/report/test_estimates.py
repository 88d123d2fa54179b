"""Two estimates side by side."""

import pytest

from fpgaprune.errors import ReportError
from fpgaprune.measure import ANALYTIC_SYNTH
from fpgaprune.report import estimate_notes, layer_resources_table, pair_layers, speed_table, totals_table

from .samples import estimate, layer, run_report


def test_layers_are_matched_by_name_and_new_ones_follow_their_predecessor():
    before, after = (estimate(layers=tuple(map(layer, names))) for names in ("abcd", "axcyd"))
    pairs = pair_layers(before, after)
    assert "".join(pair.name for pair in pairs) == "abxcyd" or "".join(pair.name for pair in pairs) == "axbcyd"
    assert [pair.name for pair in pairs if pair.before is None] == ["x", "y"]
    assert [pair.name for pair in pairs if pair.after is None] == ["b"]


def test_twin_layers_are_refused():
    with pytest.raises(ReportError, match="two layers named 'a'"):
        pair_layers(estimate(layers=(layer("a"), layer("a"))), None)


def test_a_layer_that_left_says_so_and_an_unknown_figure_is_a_dash():
    after = estimate(0.4, layers=(layer("conv2", 0.4),))
    rows = layer_resources_table(run_report(after=after), ANALYTIC_SYNTH).rows
    assert rows[0] == ("conv1", "1,000", "gone", "500", "gone", "7", "gone", "–", "gone")
    assert rows[1] == ("conv2", "1,000", "400", "500", "200", "7", "7", "–", "–")


def test_totals_against_the_part():
    table = totals_table(run_report(), ANALYTIC_SYNTH)
    assert table.rows[0][:6] == ("LUT", "2,000", "800", "\u221260\u00a0%", "53,200", "1.5\u00a0%")
    assert table.rows[3] == ("BRAM 18 Kb", "–", "–", "–", "280", "–", "–", "–")


def test_rates_follow_from_interval_and_clock():
    rows = speed_table(run_report()).rows
    assert rows[3][1] == "3.12\u00a0M/s"


def test_a_note_tells_which_estimate_it_is_of():
    report = run_report(before=estimate(notes=("a", "b")), after=estimate(notes=("c", "b")))
    assert estimate_notes(report) == ("b", "After: c", "Before: a")
    assert estimate_notes(run_report(before=None, after=estimate(notes=("c",)))) == ("c",)
