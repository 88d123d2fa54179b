"""One spelling of a stage, and one order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fpgaprune.errors import ReportError
from fpgaprune.measure import STAGES, Stage


def test_a_stage_is_its_text():
    assert Stage("route(ecp5)") == "route(ecp5)"
    assert (Stage("route(ecp5)").step, Stage("route(ecp5)").family, Stage("route(ecp5)").analytic) == (
        "route",
        "ecp5",
        False,
    )
    assert (Stage("analytic_synth").step, Stage("analytic_synth").words) == ("synth", "logic synthesis")


@pytest.mark.parametrize("text", ["", "guess", "analytic_", "route(", "route()", "route(ecp5", "Synth", "synth ", None])
def test_other_texts_are_refused(text):
    with pytest.raises(ReportError, match=r"stage .* is unknown; wanted csynth, synth, route, cosim"):
        Stage(text)


@given(st.permutations(STAGES))
def test_one_order(shuffled):
    assert sorted(shuffled, key=lambda stage: stage.order) == list(STAGES)
    assert (
        sorted([Stage("route(ecp5)"), Stage("synth(open)"), Stage("cosim")], key=lambda stage: stage.order)[0]
        == "cosim"
    )
