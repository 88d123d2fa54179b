"""Reports of SmartHLS with Libero."""

import pytest

from fpgaprune.errors import ReportError
from fpgaprune.measure import Cycles, Resources
from fpgaprune.vendor import parse_reports

from .texts_smarthls import NOT_RUN, OLD_CALLS, summary_results


@pytest.mark.parametrize("indent", ["", "  "])
def test_resources_after_libero_and_the_simulation(indent):
    resources, simulation = parse_reports(summary_results(indent=indent), "report")
    assert (resources.stage, resources.tool, resources.design) == ("route", "Libero", "myproject_top")
    assert resources.part == "MPF100T-FCG484I"
    assert (resources.clock_ns, resources.est_clock_ns, resources.slack_ns) == (10.0, 5.775, 4.225)
    assert resources.total == Resources(lut=584, ff=469, dsp=2)
    assert resources.other == {"lsram": 1, "usram": 3}
    assert (simulation.stage, simulation.design, simulation.passed) == ("cosim", "myproject_top", True)
    assert simulation.cycles == Cycles(23, 42, 5, 20)


@pytest.mark.parametrize("top", [None, "myproject_top"])
def test_the_manual_s_older_form_states_no_sum_and_no_latency_of_a_call(top):
    resources, simulation = parse_reports(summary_results(simulation=OLD_CALLS, lut="512 + 72", top=top), "report")
    assert resources.total == Resources(lut=584, ff=469, dsp=2)
    assert (simulation.cycles, simulation.passed, simulation.design) == (Cycles(), True, top)
    assert simulation.other == {"calls": 1201, "simulated_cycles": 1309}
    assert "whole simulation" in simulation.notes[0]


def test_a_failed_simulation_says_so():
    _, simulation = parse_reports(summary_results(simulation=OLD_CALLS.replace("PASS", "FAIL")), "report")
    assert simulation.passed is False


@pytest.mark.parametrize("simulation", [None, NOT_RUN])
def test_without_simulation_the_resources_remain(simulation):
    (report,) = parse_reports(summary_results(simulation=simulation), "report")
    assert report.stage == "route"


def test_without_place_and_route_the_stage_is_synth():
    (report,) = parse_reports(summary_results(routed=False, simulation=NOT_RUN), "report")
    assert report.stage == "synth"
    assert (report.clock_ns, report.est_clock_ns) == (None, None)
    assert report.total.lut == 584


def test_a_sum_that_does_not_add_up_is_refused():
    with pytest.raises(ReportError, match=r"'512 \+ 72 = 590', which does not add up"):
        parse_reports(summary_results(lut="512 + 72 = 590"), "report")


def test_a_message_names_the_line_of_the_file():
    text = summary_results(lut="many + 72 = 584")
    line = next(at for at, line in enumerate(text.splitlines(), 1) if "Resource Type" in line) - 1
    with pytest.raises(ReportError, match=rf"report, line {line}: 'Fabric \+ Interface 4LUT' holds 'many'"):
        parse_reports(text, "report")


def test_a_report_that_ends_before_its_resources_is_refused():
    with pytest.raises(ReportError, match="has no section 'Resource Usage'; the report is cut off"):
        parse_reports(summary_results().split("====== 3.")[0], "report")
