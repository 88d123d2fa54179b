"""The layout of each layer for a part: no smaller interval fits, and the choice says why."""

from __future__ import annotations

import itertools
from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest

import fpgaprune as fp
from fpgaprune.design import Convolution, Dense, VerilogLayout
from fpgaprune.errors import EstimateError
from fpgaprune.estimate import find_fabric, verilog_price
from fpgaprune.layout import Candidates
from fpgaprune.measure import AT_ONCE, BIT_BY_BIT, FOLDED, SCHEDULED, ChosenLayout
from fpgaprune.rtl import cycles_of, to_verilog
from fpgaprune.target import find_part
from tests.benchmarks.verilog_networks import Network
from tests.quick import quick
from tests.unit.rtl.networks import Net

NAMES = ("lut", "ff", "dsp", "bram18")


def network(zeros=0.0, channels=(4, 8, 12)):
    net = Network(3)
    net.bits, net.weight_bits, net.zeros, net.powers, net.kernels = 8, 8, zeros, False, True
    net.input(10, 10, channels[0])
    for filters in channels[1:]:
        net.conv(filters)
        net.relu()
    net.pool(False, whole=True)
    net.dense(5)
    return net.design("network")


def part(lut=2400, ff=6000, dsp=40, bram18=12):
    whole = find_part("xc7z020clg400-1")
    return replace(whole, name="small", lut=lut, ff=ff, dsp=dsp, bram18=bram18)


@pytest.fixture(scope="module")
def asked():
    """The intervals that the choice of `chosen` asked for."""
    return []


@pytest.fixture(scope="module")
def chosen(asked):
    at = Candidates.ways_at

    def heard(self, interval, every=False):
        asked.append(interval)
        return at(self, interval, every)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Candidates, "ways_at", heard)
        return fp.choose_layout(network(), part(), "xc7", faster=True)


def fits(design, interval, room):
    """Whether any of all choices keeps `interval` within `room`, by trying them all."""
    ways, rest = Candidates(design, find_fabric("xc7"), VerilogLayout()).at(interval)
    return any(
        all(rest[name] + sum(way.takes[name] for way in choice) <= room[name] for name in NAMES)
        for choice in itertools.product(*ways.values())
    )


def test_what_is_chosen_fits_and_is_within_a_hundredth_of_the_fewest_cycles(chosen):
    room = {"lut": 0.8 * 2400, "ff": 0.8 * 6000, "dsp": 32, "bram18": 9.6}
    assert all(chosen.price.resources[name].value <= 1.02 * room[name] for name in NAMES)
    assert {row.way for row in chosen.layers} >= {SCHEDULED}
    assert fits(network(), chosen.interval, room)
    for smaller in (0.98, 0.7):
        assert not fits(network(), int(chosen.interval * smaller), room), smaller


WIDE = {"lut": 5000, "ff": 9000, "dsp": 90}
ROOMS = [{}, {"lut": 1500}, {"ff": 3000}, {"dsp": 6}, WIDE]
EACH = [({}, 0.0), ({"lut": 1500}, 0.7), ({"ff": 3000}, 0.7), ({"dsp": 6}, 0.0), (WIDE, 0.7)]


@pytest.mark.parametrize(("room", "zeros"), quick(EACH, itertools.product(ROOMS, [0.0, 0.7])))
def test_no_much_shorter_interval_fits_though_not_all_are_tried(zeros, room):
    """More cycles do not always take less, so that halving alone would miss some."""
    small = part(**room)
    ways = Candidates(network(zeros), find_fabric("xc7"), VerilogLayout())
    found = fp.choose_layout(network(zeros), small, "xc7").interval
    # Layers beside each other take up to some hundredths more than each by itself.
    allowed = {name: 0.96 * 0.8 * getattr(small, name) for name in NAMES}
    tried = [ways.slowest() + 1]
    while tried[-1] > ways.least():
        tried.append(max(int(tried[-1] / 1.5), ways.least()))
    assert not [interval for interval in tried if interval < found and fits(network(zeros), interval, allowed)]


def test_nothing_is_taken_of_a_resource_that_the_part_lacks():
    net = Network(3)
    net.bits, net.weight_bits, net.zeros, net.powers, net.kernels = 8, 8, 0.0, False, True
    net.input(1, 1, 24)
    net.dense(24)
    design = net.design("network")

    def dsps(**room):
        return fp.choose_layout(design, part(**room), "xc7").price.resources["dsp"]

    assert dsps(lut=2000).value
    assert dsps(lut=40000, ff=40000, dsp=0).high == 0
    with pytest.raises(EstimateError, match="no layout of 'network'"):
        dsps(lut=300, dsp=0)


@pytest.mark.slow
def test_the_upper_end_of_the_price_may_count_too():
    design, beyond = network(0.7), 0

    def highest(found):
        return max(found.price.resources[name].high / getattr(part(), name) for name in NAMES)

    for share in (0.55, 0.6, 0.65, 0.7, 0.8):
        middle = fp.choose_layout(design, part(), "xc7", share=share)
        upper = fp.choose_layout(design, part(), "xc7", share=share, upper=True)
        if highest(middle) <= share:
            assert upper == middle
            continue
        beyond += 1
        assert highest(upper) <= share
        assert upper.share < share
        assert upper.interval > middle.interval
        # The share that it says gives the same layout again.
        assert fp.choose_layout(design, part(), "xc7", share=upper.share).layers == upper.layers
    assert beyond


def test_each_interval_is_asked_for_once_and_none_that_no_layout_keeps(chosen, asked):
    """Each is a price of the whole design, and a short one has adders for every weight."""
    design = network()
    least = fp.verilog_price(design, "xc7").interval_cycles
    assert Candidates(design, find_fabric("xc7"), VerilogLayout()).least() == least
    assert len(set(asked)) == len(asked) <= 22
    assert min(asked) >= least


@pytest.mark.parametrize(
    ("channels", "on", "share", "most"),
    [
        # Between the first intervals that are tried, which lie 1.5 apart, is one with fewer LUTs.
        ((8, 8, 8), part(), 0.8, 900),
        # The part has places for 270 small memories: a layout that takes 192 has no more LUTs.
        ((4, 8, 12), find_part("gw1nr-9"), 0.7, 2200),
    ],
)
def test_a_quick_layout_is_found_between_others_that_do_not_fit(channels, on, share, most):
    found = fp.choose_layout(network(0.5, channels), on, share=share, upper=on.name == "gw1nr-9")
    assert found.interval <= most
    assert found.price.memories <= 0.6 * 270 or on.name != "gw1nr-9"


def test_with_room_for_everything_the_interval_is_the_fewest_cycles_of_any_layout():
    design = network()
    wide = fp.choose_layout(design, part(lut=10**7, ff=10**7, dsp=10**5, bram18=10**5), "xc7")
    assert wide.interval == fp.verilog_price(design, "xc7").interval_cycles


def test_every_scheduled_layer_keeps_the_interval_with_the_fewest_multipliers(chosen):
    design = network()
    for row in chosen.layers:
        if row.way == SCHEDULED:
            paired = {row.layer} if row.paired else ()
            layout = VerilogLayout(multipliers={row.layer: row.multipliers}, paired=paired)
            assert cycles_of(design, design[row.layer], layout) == row.cycles <= chosen.interval
        else:
            assert (row.multipliers, row.cycles) == (0, None)
    made = VerilogLayout(**chosen.settings)
    assert fp.verilog_price(design, "xc7", layout=made) == chosen.price


def test_a_layer_of_many_weights_is_scheduled_where_a_schedule_keeps_the_interval(monkeypatch):
    """Adders for so many weights take minutes to compile, and most of the LUTs."""
    design = network(channels=(8, 16, 8))
    ways = Candidates(design, find_fabric("xc7"), VerilogLayout())
    names = [layer.name for layer in ways.layers]
    many = {name for name in names if np.count_nonzero(design[name].weights["weight"]) > 1024}
    assert 0 < len(many) < len(names)
    for interval, every, wanted in (
        (4000, False, set(names) - many),
        (4000, True, set(names)),
        (130, False, set(names)),
    ):
        found, _ = ways.at(interval, every)
        assert {name for name, rows in found.items() if any(not way.multipliers for way in rows)} == wanted
    # Where schedules do not fit, it comes as it is after all.
    monkeypatch.setattr(import_module("fpgaprune.layout.candidates"), "may_be_in_luts", lambda *_: False)
    few = part(lut=53200, ff=106400, dsp=12, bram18=280)
    chosen = fp.choose_layout(design, few, "xc7", interval=4000)
    assert {row.layer for row in chosen.layers if row.way != SCHEDULED} >= many


def test_a_larger_part_is_faster_and_zeros_are_too(chosen):
    larger = fp.choose_layout(network(), part(lut=9000, ff=18000, dsp=120, bram18=60), "xc7")
    assert larger.price.interval_cycles < 0.6 * chosen.price.interval_cycles
    pruned = fp.choose_layout(network(0.7), part(), "xc7")
    assert pruned.price.interval_cycles < 0.6 * chosen.price.interval_cycles


def test_with_an_interval_the_shares_are_the_smallest(chosen):
    slow = fp.choose_layout(network(), part(), "xc7", interval=4 * chosen.interval)
    assert slow.price.interval_cycles <= 1.05 * 4 * chosen.interval
    assert sum(slow.used.values()) < 0.8 * sum(chosen.used.values())


def test_the_choice_says_what_binds_what_is_slowest_and_what_more_would_bring(chosen):
    first, second, *more = chosen.lines()
    assert first.startswith("small: LUT ")
    assert first.endswith(" binds, at most 80% may be used")
    assert (
        f"a sample every {chosen.price.interval_cycles:,} cycles; {chosen.slowest.layer} is the slowest with" in second
    )
    assert chosen.used[chosen.binding] == max(chosen.used.values())
    assert chosen.slowest.cycles == max(row.cycles or 0 for row in chosen.layers)
    assert more == [
        f"{chosen.faster} multipliers more for {chosen.slowest.layer}: a sample every {chosen.then_cycles:,} cycles"
    ]
    assert chosen.then_cycles < chosen.price.interval_cycles


def test_a_choice_is_the_same_after_json(chosen):
    data = chosen.to_json()
    assert (data["binding"], data["slowest"]) == (chosen.binding, chosen.slowest.layer)
    assert ChosenLayout.from_json(data) == chosen


def test_no_pairs_where_a_multiplier_is_too_narrow():
    found = fp.choose_layout(network(), part(lut=6000, ff=9000, bram18=40), "ecp5", interval=20000)
    assert any(row.way == SCHEDULED for row in found.layers)
    assert not any(row.paired for row in found.layers)


def test_multipliers_of_luts_make_a_part_with_few_dsp_blocks_faster():
    few = part(lut=9000, ff=18000, dsp=10, bram18=40)
    found = fp.choose_layout(network(), few, "xc7")
    assert any(row.in_luts for row in found.layers)
    assert found.settings["in_luts"] == tuple(row.layer for row in found.layers if row.in_luts)
    assert f"{found.slowest.multipliers} of LUTs" in str(found)
    assert all(used <= 0.8 for used in found.used.values())
    assert fp.verilog_price(network(), "xc7", layout=VerilogLayout(**found.settings)) == found.price
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(import_module("fpgaprune.layout.candidates"), "may_be_in_luts", lambda *_: False)
        assert fp.choose_layout(network(), few, "xc7").interval > 1.4 * found.interval


def test_where_the_average_takes_the_only_dsp_block_schedules_have_multipliers_of_luts():
    found = fp.choose_layout(network(), part(lut=9000, ff=18000, dsp=2, bram18=40), "ecp5")
    assert all(row.in_luts for row in found.layers if row.way == SCHEDULED)
    assert any(row.in_luts for row in found.layers)
    assert found.price.resources["dsp"].value == 1


def test_a_layer_whose_additions_have_an_order_is_as_it_comes():
    design = network()
    layers = [
        replace(la, types={**la.types, "accum": replace(la.types["accum"], overflow="SAT")})
        if la.name == "conv1"
        else la
        for la in design.layers
    ]
    found = fp.choose_layout(replace(design, layers=tuple(layers)), part(lut=60000, ff=90000), "xc7")
    assert {row.layer: row.way for row in found.layers}["conv1"] in (AT_ONCE, BIT_BY_BIT)


def test_each_layer_says_how_it_is_made(chosen, tmp_path):
    """In the order of the data: as the notes of the Verilog say it."""
    design = network()
    names = [layer.name for layer in design.layers if isinstance(layer.operation, Dense | Convolution)]
    for made in (chosen, fp.choose_layout(design, part(lut=90000, ff=90000, dsp=600, bram18=200), "xc7", interval=150)):
        assert [row.layer for row in made.layers] == names
        for row in made.layers:
            layer = VerilogLayout(**made.settings)
            note = {one.layer: one.note for one in to_verilog(design, tmp_path, layout=layer).layers}[row.layer]
            assert row.way == (note.split(":")[0] if ":" in note else AT_ONCE), (row, note)


@pytest.mark.parametrize("interval", [None, 100])
def test_a_part_that_is_too_small_is_refused(interval):
    with pytest.raises(EstimateError, match=r"no layout of 'network' with .* fits 80% of small; choose a larger part"):
        fp.choose_layout(network(), part(lut=300), "xc7", interval=interval)


def test_a_part_without_known_capacity_is_refused():
    with pytest.raises(EstimateError, match="the capacity of small is unknown"):
        fp.choose_layout(network(), part(None, None, None, None), "xc7")


def test_locked_kernels_take_no_cycle():
    """A quarter of the kernels takes a quarter of the cycles in each way of one multiplier."""
    whole, pruned = (Candidates(network(zeros), find_fabric("xc7"), VerilogLayout()) for zeros in (0.0, 0.7))
    layer = network(0.7)["conv3"]
    kept = np.mean(layer.weights["weight"].any(axis=(0, 1)))
    assert pruned.cycles("conv3", 9, False) == pytest.approx(kept * whole.cycles("conv3", 9, False), rel=0.1)


def test_layers_without_weights_cost_what_the_layer_before_them_makes_of_them():
    """A product behind a layer at once needs a multiplier for each channel, one behind a schedule needs few."""
    net = Net(np.random.default_rng(5))
    image = net.input(8, 8, 3)
    first = net.conv(image, 12)
    design = net.design(net.merge(first, net.activation(first, "relu"), "multiply"))
    ways, rest = Candidates(design, find_fabric("gowin"), VerilogLayout()).at(4000)
    scheduled, _, at_once = next(iter(ways.values()))
    assert rest["dsp"] + at_once.takes["dsp"] == verilog_price(design, "gowin").resources["dsp"].value == 12
    assert rest["dsp"] + scheduled.takes["dsp"] <= 4
    few = replace(find_part("gw2a-55"), name="few multipliers", dsp=4)
    assert fp.choose_layout(design, few, share=1.0).layers[0].multipliers


@pytest.mark.parametrize(("dsp", "lut", "way"), [(9, 20_000, {AT_ONCE, BIT_BY_BIT}), (400, 3_000, {FOLDED})])
def test_a_dense_layer_behind_a_stream_is_at_once_where_that_takes_smaller_shares(dsp, lut, way):
    """As it comes it would be folded, with a multiplier for nearly every product of a position."""
    net = Network(3)
    net.bits, net.weight_bits, net.zeros, net.powers = 5, 6, 0.4, True
    net.input(6, 6, 12)
    net.relu()
    net.dense(9)
    design = net.design("stream")
    small = part(lut=lut, ff=20_000, dsp=dsp, bram18=90)
    found = fp.choose_layout(design, small, "xc7", interval=36, share=1.0)
    assert found.layers[-1].way in way
    assert found.settings.get("fold", {}) == ({} if way == {FOLDED} else {found.layers[-1].layer: 1})
    assert verilog_price(design, "xc7", layout=VerilogLayout(**found.settings)) == found.price


@pytest.mark.parametrize(("dsp", "fold"), [(2, {"batchnormalization1"}), (40, set())])
def test_an_input_is_scaled_in_turn_where_that_takes_smaller_shares(dsp, fold):
    """Never at the price of cycles: its multiplier may be one that another layer wants."""
    net = Network(3)
    net.bits, net.weight_bits, net.zeros, net.powers = 8, 12, 0.0, False
    net.input(8, 8, 8)
    net.normalise()
    net.layers[-1].weights["bias"][:] = 5
    net.pool(False, whole=True)
    net.dense(5)
    design = net.design("scaled")
    small = part(lut=20000, ff=40000, dsp=dsp, bram18=90)
    found = fp.choose_layout(design, small, "xc7", interval=3000)
    assert found.settings.get("fold", {}).keys() - {"dense3"} == fold
    assert verilog_price(design, "xc7", layout=VerilogLayout(**found.settings)) == found.price
    at_once = fp.choose_layout(design, small, "xc7", layout=VerilogLayout(fold={"batchnormalization1": 1}))
    assert at_once.settings["fold"].keys() - {"dense3"} == {"batchnormalization1"}
    assert fp.choose_layout(design, small, "xc7").interval <= at_once.interval


def test_the_ways_of_a_design_are_found_once_for_all_shares(monkeypatch):
    """A search asks for several shares of one design; another design has ways of its own, even if it is equal."""
    module, made = import_module("fpgaprune.layout.choice"), []

    class Counted(Candidates):
        def __init__(self, *given):
            made.append(given)
            super().__init__(*given)

    monkeypatch.setattr(module, "Candidates", Counted)
    design, part = network(), find_part("xc7z020")
    chosen = [fp.choose_layout(design, part, share=share) for share in (0.8, 0.1, 0.8)]
    assert len(made) == 1
    assert chosen[0] == chosen[2]
    assert chosen[1].price.resources.lut.value <= 0.1 * part.lut
    assert fp.choose_layout(replace(design), part, share=0.1) == chosen[1]
    assert fp.choose_layout(design, part, "xcup", share=0.1) != chosen[1]
    assert fp.choose_layout(design, part, share=0.1, layout=VerilogLayout()) == chosen[1]
    assert len(made) == 4
