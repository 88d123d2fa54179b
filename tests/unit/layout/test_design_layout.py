"""`DesignLayout`: its share of a part, its nearest limit, whether it fits; and where its figures come from."""

from dataclasses import replace

import pytest
from msgspec import structs

import fpgaprune as fp
from fpgaprune.layout import Advice, DesignLayout, at_interval, choose_layout, slower_layouts
from fpgaprune.measure import ESTIMATED, Figure, Occupancy, Resources, occupancy_of, share_of
from tests.unit.estimate.designs import cnn
from tests.unit.layout.test_choice import network

ZYNQ = fp.Target.of("xc7z020clg400-1")


def layout(capacity, whole=True, **used):
    """A layout with a (low, middle, high) for each resource that it uses."""
    figures = {name: Figure(middle, low, high) for name, (low, middle, high) in used.items()}
    known = {**dict.fromkeys(ESTIMATED), **capacity}
    return DesignLayout("mine", known, Resources(**figures), 10, 5, whole=whole)


def test_the_nearest_limit_is_that_of_the_largest_upper_end():
    found = layout({"lut": 100, "ff": 1000}, lut=(4, 5, 50), ff=(90, 400, 410))
    assert (found.resource, found.share) == ("lut", 0.5)
    # By the middle it is another.
    assert found.occupancy.nearest_limit().resource == "ff"
    assert found.occupancy.nearest_limit("low").resource == "ff"
    assert found.size == 0.5 + 0.41


@pytest.mark.parametrize(
    ("lut", "ff", "fits"),
    [
        ((90, 99, 100), (0, 0, 0), (True, True)),
        ((90, 100, 101), (0, 0, 0), (True, False)),
        ((90, 101, 102), (0, 0, 0), (False, False)),
        ((1, 1, 1), (900, 1000, 1001), (True, False)),
        ((1, 1, 1), (900, 1001, 1001), (False, False)),
    ],
)
def test_it_fits_if_no_resource_is_beyond_its_capacity(lut, ff, fits):
    found = layout({"lut": 100, "ff": 1000}, lut=lut, ff=ff)
    assert (found.fits, found.fits_upper) == fits
    assert (found.share <= 1) == fits[1]


def test_what_the_part_lacks_is_beyond_it_and_the_less_the_nearer():
    one, three, none = (layout({"lut": 100, "dsp": 0}, lut=(40, 40, 40), dsp=(n, n, n)) for n in (1, 3, 0))
    assert [one.resource, three.resource, none.resource] == ["dsp", "dsp", "lut"]
    assert [one.share, three.share, none.share] == [2, 4, 0.4]
    assert [one.fits, three.fits, none.fits] == [False, False, True]
    assert [share_of(0, 0), share_of(2, 0), share_of(2, 8)] == [0, 3, 0.25]


def test_without_an_estimate_for_a_layer_nobody_can_say_that_it_fits():
    small, large = (layout({"lut": 100}, whole=False, lut=(n, n, n)) for n in (50, 500))
    assert (small.fits, small.fits_upper) == (None, None)
    assert (large.fits, large.fits_upper) == (False, False)


def test_without_a_capacity_nothing_is_known_and_who_needs_a_verdict_is_told():
    found = layout({}, lut=(1, 2, 3))
    assert (found.nearest_limit, found.share, found.fits, found.fits_upper) == (None, 0, None, None)
    with pytest.raises(fp.FpgaPruneError, match=r"^the capacity of mine is unknown; name a part that"):
        found.occupancy.require_nearest()


def test_a_count_is_its_own_range():
    found = occupancy_of(Resources(lut=40, ff=900), replace(ZYNQ.part, lut=100, ff=1000))
    assert {row.share(end) for row in found.taken for end in ("low", "used", "high")} == {0.4, 0.9}
    assert found.nearest_limit("high").words == "FF 900 of 1,000 (90.0 %)"
    assert (found.fits, found.fits_upper) == (True, True)


def test_a_project_is_judged_as_its_estimate_is():
    for scale in (1.0, 0.2, 0.05):
        part = replace(ZYNQ.part, lut=round(ZYNQ.part.lut * scale))
        made = fp.estimate(cnn(), replace(ZYNQ, part=part))
        found = DesignLayout.of_project(made)
        assert (found.fits, found.fits_upper) == (made.fits, made.fits_upper)
        nearest = found.occupancy.nearest_limit()
        assert (nearest.resource, nearest.used, nearest.capacity) == (
            made.binding.resource,
            made.binding.used,
            made.binding.capacity,
        )


def test_a_design_that_needs_what_the_part_lacks_does_not_fit_by_its_middle_either():
    made = fp.estimate(cnn(), ZYNQ)
    assert made.total["synth"].dsp.value or made.total["synth"].bram18.value
    lacking = fp.estimate(cnn(), replace(ZYNQ, part=replace(ZYNQ.part, dsp=0, bram18=0)))
    assert (made.fits, lacking.fits, lacking.fits_upper) == (True, False, False)


def test_slower_layouts_begin_with_the_usual_one_and_ask_for_what_they_are():
    usual, *slower = slower_layouts(network(), ZYNQ.part)
    assert (usual.name, usual.fields) == ("0", {})
    assert structs.replace(usual, name="") == at_interval(network(), ZYNQ.part)
    assert [one.fields["interval"] for one in slower] == [usual.interval_cycles * n for n in (4, 16, 64, 256)]
    for one in slower:
        assert fp.verilog_price(network(), "xc7", **one.fields).resources == one.used


def test_a_layout_that_is_choose_layout_a_part_is_that_of_the_integer_program():
    chosen = choose_layout(network(), ZYNQ.part, share=0.5)
    assert chosen == fp.choose_layout(network(), ZYNQ.part, "xc7", share=0.5)
    laid = DesignLayout.of_chosen(chosen, ZYNQ.part)
    assert laid.fields == chosen.settings
    assert {row.resource: row.share() for row in laid.occupancy.taken} == dict(chosen.used)
    assert laid.occupancy.nearest_limit().resource == chosen.binding


@pytest.mark.parametrize("whole", [True, False])
def test_advice_keeps_what_is_known_of_a_layout(whole):
    laid = layout({"lut": 100, "dsp": 0}, whole=whole, lut=(60, 70, 90))
    content = Advice("net", "mine", laid).to_json()
    assert content["now"] == {
        "part": "mine",
        "capacity": {"lut": 100, "ff": None, "dsp": 0, "bram18": None},
        "used": {"lut": {"value": 70, "low": 60, "high": 90}},
        "latency_cycles": 10,
        "interval_cycles": 5,
        "fits": whole or None,
        "fits_upper": whole or None,
        "stage": "synth",
        **({} if whole else {"whole": False}),
    }
    assert Advice.from_json(content).now == laid


def test_the_occupancy_of_nothing_known_is_empty():
    assert Occupancy.of(Resources(lut=3), "mine", Resources()).taken == ()
