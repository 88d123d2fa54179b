"""The two ways to hardware price every layout of a design, and name settings that make that layout."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from msgspec import structs

from fpgaprune.errors import ConfigError, EstimateError
from fpgaprune.estimate import estimate, verilog_price
from fpgaprune.fabric import family_of, placed_on, price_family_of
from fpgaprune.fit import (
    HlsRoute,
    Knobs,
    Limits,
    VerilogRoute,
    find_route,
    powers_of_two,
    smallest_part,
    verilog_instead,
)
from fpgaprune.flow import parse_config
from fpgaprune.layout import at_interval, choose_layout
from fpgaprune.measure import RESOURCES, Figure, Resources, occupancy_of
from fpgaprune.target import Target, find_part, list_parts
from tests.benchmarks.verilog_networks import Network
from tests.quick import quick
from tests.unit.estimate.designs import cnn
from tests.unit.fit.made_up import made_point
from tests.unit.layout.test_choice import network
from tests.unit.rtl.networks import parallel_design
from tests.unit.vendor import texts

from ..programs import write_program

TARGET = Target.of("xc7z020clg400-1")
UNNAMED = {"name": "", "settings": {}, "fields": {}}
FLOW = parse_config({"target": {"part": "xc7z020clg400-1"}}, "test")


def test_hls4mls_layouts_are_those_of_the_estimate():
    route, design = HlsRoute(TARGET), cnn()
    found = {laid.name: laid for laid in route.layouts(design)}
    assert len(found) > 5
    assert len({laid.latency_cycles for laid in found.values()}) > 2
    own = route.own(design, FLOW)
    made = estimate(design, TARGET)
    assert own.latency_cycles == made.latency_cycles
    assert own.counts()["lut"] == made.total["synth"].lut.value
    assert own.share == max(
        figure.high / getattr(TARGET.part, name) for name in own.counts() if (figure := made.total["synth"][name])
    )
    for laid in found.values():
        parse_config({**laid.settings, "target": {"part": "xc7z020", **laid.settings.get("target", {})}}, laid.name)


def test_our_verilog_gets_slower_and_says_which_interval_it_needs():
    route, design = VerilogRoute(TARGET.part, "xc7"), parallel_design(3, 3)
    found = route.layouts(design)
    for laid in found:
        config = parse_config(laid.settings, laid.name)
        own = route.own(design, config)
        assert structs.replace(laid, **UNNAMED) == structs.replace(own, **UNNAMED)
    assert {laid.settings["measure"]["families"][0] for laid in found} == {"xc7"}
    assert found[0].counts()["lut"] == verilog_price(design, "xc7").resources.lut.value


def test_a_layout_by_one_rule_gives_way_to_a_smaller_one_with_its_interval():
    """A Dense layer behind positions is folded by the rule, with more multipliers than its adders are worth."""
    net = Network(3)
    net.bits, net.weight_bits, net.zeros, net.powers = 5, 6, 0.4, True
    net.input(6, 6, 12)
    net.relu()
    net.dense(9)
    route, design = VerilogRoute(TARGET.part, "xc7"), net.design("stream")
    by_rule, found = at_interval(design, TARGET.part), route.layouts(design)[0]
    assert by_rule.counts()["dsp"] > 100
    assert (found.name, found.interval_cycles, found.counts()["dsp"]) == ("0", by_rule.interval_cycles, 0)
    assert found.size < 0.5 * by_rule.size
    own = route.own(design, parse_config(found.settings, "0"))
    assert structs.replace(own, **UNNAMED) == structs.replace(found, **UNNAMED)
    # Where the adders have no room, the rule stands.
    narrow = VerilogRoute(replace(TARGET.part, lut=5_000, dsp=4_000), "xc7").layouts(design)[0]
    assert narrow.counts()["dsp"] > 100


@pytest.mark.parametrize("share", quick([0.8], [0.8, 0.55]))
def test_a_network_that_fits_at_no_interval_is_laid_out_for_the_part(share):
    """Layer by layer, so that the upper end of its price keeps the share; the settings make the same layout again."""
    small = replace(TARGET.part, lut=2800, ff=7000, dsp=40, bram18=14)
    route, design = VerilogRoute(small, "xc7", share), network()
    *others, last = route.layouts(design)
    assert all(laid.share > share for laid in others)
    assert last.name == "part"
    assert route.at(design, "part") == last
    assert last.share <= share
    assert last.settings["measure"]["part"] == small.name
    again = route.own(design, parse_config(last.settings, "part"))
    assert structs.replace(again, **UNNAMED) == structs.replace(last, **UNNAMED)
    # With room for all at once nothing is chosen for the part.
    assert not [laid for laid in VerilogRoute(TARGET.part, "xc7").layouts(design) if laid.name == "part"]


@pytest.mark.parametrize("way", quick(["hls", "verilog"], ["hls", "verilog", "verilog, small part"]))
def test_one_layout_is_the_same_as_among_all(way):
    small = replace(TARGET.part, lut=2800, ff=7000, dsp=40, bram18=14)
    route, design = {
        "hls": (HlsRoute(TARGET), cnn()),
        "verilog": (VerilogRoute(TARGET.part, "xc7"), parallel_design(3, 3)),
        "verilog, small part": (VerilogRoute(small, "xc7"), network()),
    }[way]
    found = route.layouts(design)
    assert len(found) >= 5
    assert [route.at(design, laid.name) for laid in found] == found
    assert route.at(design, f"{design.io_type} 7" if way == "hls" else "7") is None


def test_a_network_that_no_longer_fits_as_it_was_laid_out_says_how_far_it_is():
    tiny = replace(TARGET.part, lut=200, ff=500, dsp=4, bram18=2)
    route, design = VerilogRoute(tiny, "xc7"), network()
    config = parse_config({"measure": {"families": ["xc7"], "part": "xc7z020", "share": 0.8}}, "test")
    with pytest.raises(EstimateError, match="no layout"):
        choose_layout(design, tiny, "xc7")
    own = route.own(design, config)
    assert own.share == min(laid.share for laid in route.layouts(design))
    assert own.share > 0.8


@pytest.mark.parametrize(("part", "zeros"), [("gw5a-25", 0.5), ("gw1nr-9", 0.0), ("gw1nr-9", 0.5), ("lfe5u-25f", 0.3)])
def test_a_layout_that_fits_leaves_the_room_that_place_and_route_needs(part, zeros):
    part, design = find_part(part), network(zeros)
    fit = [layout for layout in VerilogRoute(part, price_family_of(part)).layouts(design) if layout.share <= 0.8]
    assert fit
    placed = [row for layout in fit for row in placed_on(part, layout.counts(), layout.memories)]
    # The serial port of a board takes LUTs and registers, and none of the small memories.
    assert all(row.fullness <= (0.93 if row.kind in RESOURCES else 1) for row in placed)
    if part.name == "gw5a-25":
        # Its own layout has LUTs to spare as synthesis counts, but not with those of its registers.
        own = at_interval(design, part)
        assert own.share < 0.7
        assert next(row for row in placed_on(part, own.counts(), own.memories) if row.kind == "lut").share > 0.8


@pytest.mark.parametrize(
    ("part", "route"), [("xc7z020", "hls"), ("gw1nr-9", "verilog"), ("lfe5u-25f", "verilog"), ("5ceba4", "hls")]
)
def test_a_part_whose_tools_compile_no_hls_gets_our_verilog(part, route):
    target = replace(TARGET, part=find_part(part))
    assert find_route(None, target).name == route
    if route == "hls":
        assert find_route("hls", target).name == "hls"
    else:
        with pytest.raises(ConfigError, match="builds an hls4ml project; take the route 'verilog'"):
            find_route("hls", target)


@pytest.fixture
def vitis(tmp_path, monkeypatch):
    """A folder that is all of PATH, in which a tool can be put."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    for tool in ("VITIS_RUN", "VITIS_HLS"):
        monkeypatch.delenv(f"FPGAPRUNE_{tool}", raising=False)
    (tmp_path / "bin").mkdir()

    def installed():
        write_program(tmp_path / "bin" / "vitis-run", "#!/bin/sh\n")

    return installed


def test_open_synthesis_takes_longer_for_more_luts_and_nobody_knows_what_a_vendors_tool_takes():
    small, large = (made_point(Knobs("weight"), used={"lut": lut}) for lut in (1_000, 10_000))
    ours = VerilogRoute(TARGET.part, "xc7")
    assert 0 < 5 * ours.counting_seconds(small) < ours.counting_seconds(large) < 300
    assert HlsRoute(TARGET).counting_seconds(large) == 0


def test_a_vendors_tool_counts_the_answer_where_it_is_found_unless_the_flow_says_otherwise(vitis):
    route, design = HlsRoute(TARGET), replace(cnn(), backend="Vitis")
    assert route.counting(design, {}) is None
    assert route.counting(design, {"hls": {"build": ["synth"]}}) == {}
    vitis()
    assert route.counting(design, {"hls": {"weight_bits": 6}}) == {"hls": {"build": ["synth", "vsynth"]}}
    assert route.counting(design, {"hls": {"build": []}}) is None
    assert route.counting(design, {"hls": {"build": ["synth"]}}) == {}
    assert route.counting(replace(design, backend="Catapult"), {}) is None
    assert VerilogRoute(TARGET.part, "xc7").counting(design, {}) == {}


@pytest.mark.parametrize("route", [HlsRoute(TARGET), VerilogRoute(TARGET.part, "xc7")])
def test_no_trial_is_built(route):
    assert route.searched["hls"]["build"] == []


def test_only_reports_after_logic_synthesis_count_and_only_where_the_flow_built(tmp_path):
    route, run = HlsRoute(TARGET), SimpleNamespace(file=lambda name: tmp_path / name)
    built = parse_config({"target": {"part": "xc7z020clg400-1"}, "hls": {"build": ["synth", "vsynth"]}}, "test")
    (tmp_path / "hls").mkdir()
    assert route.measured(run, built) is None
    (tmp_path / "hls" / "csynth.rpt").write_text(texts.csynth())
    assert route.measured(run, built) is None
    rows = [["CLB LUTs", "1234", "0", "0", "53200", "1.0"], ["CLB Registers", "2345", "0", "0", "106400", "1.0"]]
    header = ("Site Type", "Used", "Fixed", "Prohibited", "Available", "Util%")
    (tmp_path / "hls" / "vivado_synth.rpt").write_text(texts.utilization(rows, header=header))
    found = route.measured(run, built)
    assert (found.lut, found.ff) == (1234, 2345)
    rows[0][1] = "1111"
    (tmp_path / "hls" / "after.rpt").write_text(texts.utilization(rows, header=header, state="Routed"))
    assert route.measured(run, built).lut == 1111
    # These files may be another run's.
    assert route.measured(run, FLOW) is None


def test_a_route_that_is_not_there_is_refused():
    with pytest.raises(ConfigError, match=r"route is 'hdl'; wanted 'auto', 'hls' or 'verilog'"):
        find_route("hdl", TARGET)
    assert type(find_route("auto", TARGET)) is type(find_route(None, TARGET))
    other = next(part for part in list_parts() if family_of(part) is None)
    with pytest.raises(ConfigError, match="no family that open synthesis knows"):
        find_route("verilog", replace(TARGET, part=other))


def test_a_part_without_a_capacity_is_refused():
    with pytest.raises(EstimateError, match="capacity of mine is unknown"):
        occupancy_of(Resources(), replace(TARGET.part, name="mine")).require_nearest()
    unknown = replace(TARGET.part, name="mine", lut=None, ff=None, dsp=None, bram18=None, uram=None)
    with pytest.raises(EstimateError, match="capacity of mine is unknown"):
        occupancy_of(Resources(lut=Figure(5, 4, 6)), unknown).require_nearest()


def test_the_smallest_part_is_the_first_that_takes_the_design():
    route, design = HlsRoute(TARGET), cnn()
    found = smallest_part(route, design, FLOW, 0.8)
    assert found is not None
    assert found.lut <= find_part("xc7z020").lut
    assert route.on(found).own(design, FLOW).share <= 0.8
    assert smallest_part(route, design, FLOW, 1e-9) is None


def test_powers_of_two_keep_zeros_and_signs():
    before = cnn()
    after = powers_of_two(before)
    for one, other in zip(before.layers, after.layers, strict=True):
        if "weight" not in one.weights:
            assert one is other
            continue
        raw, held = one.weights["weight"], other.weights["weight"]
        assert (np.sign(raw) == np.sign(held)).all()
        size = np.abs(held[held != 0])
        assert (size & (size - 1) == 0).all()
        ratio = size / np.abs(raw[raw != 0])
        assert ratio.min() >= 2**-0.5 - 1e-9
        assert ratio.max() <= 2**0.5 + 1e-9
        assert all((one.weights[name] == other.weights[name]).all() for name in one.weights if name != "weight")


@pytest.mark.parametrize(
    ("limits", "fits"),
    [
        (Limits(share=0.8), True),
        (Limits(share=0.001), False),
        (Limits(share=0.8, latency_us=0.01), False),
    ],
)
def test_a_network_that_does_not_fit_may_fit_as_our_verilog(limits, fits):
    design = network()
    found = verilog_instead(HlsRoute(TARGET), design, TARGET, limits)
    assert (found is not None) == fits
    if found is not None:
        every = VerilogRoute(TARGET.part, "xc7", limits.share).layouts(design)
        assert found == next(laid for laid in every if laid.share <= limits.share)


def test_our_verilog_is_no_way_out_where_it_was_taken_or_has_no_price():
    other = Target.of("5csema5")
    assert family_of(other.part) is None
    assert verilog_instead(HlsRoute(other), network(), other, Limits()) is None
    assert verilog_instead(VerilogRoute(TARGET.part, "xc7"), network(), TARGET, Limits()) is None
