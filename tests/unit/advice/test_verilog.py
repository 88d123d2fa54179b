"""Our own Verilog as a suggestion: the sections that ask for it, and the estimate of the layout that they make."""

import pytest

import fpgaprune as fp
from fpgaprune.advice import OwnFlow, own_verilog
from fpgaprune.layout import DesignLayout
from fpgaprune.target import Part
from tests.unit.rtl.networks import random_design

ZYNQ = fp.Target.of("pynq-z2")


@pytest.fixture(scope="module")
def design():
    return random_design(1, 1)


def test_the_estimate_is_that_of_the_layout_which_the_sections_ask_for(design):
    edit, made = own_verilog(design, ZYNQ, OwnFlow())
    assert edit.settings == {"measure": {"families": ["xc7"], "part": "xc7z020clg400-1"}}
    chosen = fp.choose_layout(design, ZYNQ.part, "xc7")
    assert made == DesignLayout.of_chosen(chosen, ZYNQ.part)
    assert (made.fits, made.fits_upper, made.stage) == (True, True, "synth(open)")
    assert made.measured.stage == "analytic_synth(open)"
    assert edit.keeps_function


def test_what_the_flow_measures_besides_stays(design):
    measured = {"families": ["ecp5"], "interval": 900, "share": 0.5, "part": None}
    flow = OwnFlow({"target": {"part": "pynq-z2"}, "measure": measured})
    edit, made = own_verilog(design, ZYNQ, flow)
    assert flow.keys(edit) == {"measure": {"families": ["ecp5", "xc7"], "part": "pynq-z2", "interval": 0}}
    chosen = fp.choose_layout(design, ZYNQ.part, "xc7", share=0.5)
    assert made == DesignLayout.of_chosen(chosen, ZYNQ.part)


def test_nothing_is_suggested_that_is_there_already_or_that_no_tool_can_make(design):
    assert own_verilog(design, ZYNQ, OwnFlow({"measure": {"part": "pynq-z2"}})) is None
    assert own_verilog(design, fp.Target.of("agfb014"), OwnFlow()) is None


def test_an_estimate_beyond_the_part_does_not_fit(design):
    price = fp.choose_layout(design, ZYNQ.part, "xc7").price
    lut, part = price.resources.lut, ZYNQ.part
    for there, fits in ((lut.high, (True, True)), (lut.value, (True, lut.high <= lut.value)), (1, (False, False))):
        made = DesignLayout.of_verilog(price, Part(**{**part.__dict__, "lut": there}))
        assert (made.fits, made.fits_upper) == fits
