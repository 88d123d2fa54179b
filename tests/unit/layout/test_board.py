"""`layouts_for_board`: the quickest layout for which a board has room, from prices alone."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from fpgaprune.emulate import emulate
from fpgaprune.errors import TargetError
from fpgaprune.estimate import verilog_price
from fpgaprune.fabric import find_board_router, luts_within, priced_as
from fpgaprune.layout import bitstream_seconds_on, board_design, design_layout, larger_board, layouts_for_board
from fpgaprune.layout import board as board_layouts
from fpgaprune.measure import ESTIMATED
from fpgaprune.rtl import to_verilog
from fpgaprune.target import find_part
from fpgaprune.values import FixedType
from tests.unit.estimate.designs import mlp
from tests.unit.rtl.networks import Net


class Narrow(Net):
    """Values of 6 bits and sums of 16."""

    def kind(self, *_, **__):
        return FixedType(6, 2)

    def accum(self):
        return FixedType(16, 8)


def layout_for_board(*arguments):
    return next(layouts_for_board(*arguments))


def two_convolutions(filters):
    net = Narrow(np.random.default_rng(5))
    x = net.conv(net.conv(net.input(6, 6, 2), filters), filters)
    return net.design(net.dense(net.flatten(x), 6))


def placed(design, board, fields):
    """What place and route takes of the board's FPGA."""
    place, router, _ = find_board_router(board)
    price = verilog_price(design, priced_as(router.family), **fields)
    counts = {name: price.resources[name].value for name in ESTIMATED if price.resources[name] is not None}
    part = find_part(place.device)
    return router.devices.placed(
        counts, part, dict.fromkeys(router.devices.devices[part.name].memories, price.memories)
    )


def fullness(design, board, fields):
    return max(row.fullness for row in placed(design, board, fields))


def has_room(design, board, fields):
    return fullness(design, board, fields) <= 1


@pytest.mark.parametrize("board", ["tang-nano-9k", "icebreaker", "ulx3s", "tang-primer-25k"])
def test_a_small_network_stays_parallel(board):
    found, why = layout_for_board(two_convolutions(3), board)
    assert found.fields == {}
    assert why.startswith("parallel, a sample every 36 cycles, takes about ")


def test_behind_a_layout_without_a_place_all_are_smaller():
    design, board = two_convolutions(5), "tang-nano-9k"
    (parallel, _), *_ = layouts_for_board(design, board)
    smaller = [laid for laid, _ in layouts_for_board(design, board, before=parallel)]
    full = [fullness(design, board, laid.fields) for laid in (parallel, *smaller)]
    assert len(full) >= 3
    assert all(less <= 0.85 * more for more, less in pairwise(full))
    assert not list(layouts_for_board(design, board, before=smaller[-1]))


@pytest.mark.parametrize(("board", "filters"), [("tang-nano-9k", 6), ("tang-nano-20k", 17), ("icebreaker", 6)])
def test_a_network_that_nearly_fills_the_board_is_made_as_slow_as_it_must_be(board, filters):
    design = two_convolutions(filters)
    found, why = layout_for_board(design, board)
    interval = found.fields["interval"]
    assert not has_room(design, board, {"interval": 0})
    assert has_room(design, board, found.fields)
    # The next quicker one of the intervals that are tried has no room.
    assert not has_room(design, board, {"interval": interval // 4})
    assert why.startswith("parallel takes about ")
    assert f"; a sample every {verilog_price(design, 'ecp5', **found.fields).interval_cycles:,} cycles" in why


def test_on_gowin_a_register_takes_a_lut_for_its_way_in():
    """A network of 5,229 registers and 4,440 LUT nearly fills 8,640 LUT: nextpnr leads most registers through one."""
    taken = {row.kind: row.share for row in placed(two_convolutions(6), "tang-nano-9k", {"interval": 0})}
    assert taken["lut"] > 0.9
    assert "takes about 7,8" in layout_for_board(two_convolutions(6), "tang-nano-9k")[1]


@pytest.mark.parametrize("interval", [0, 500])
def test_an_interval_that_is_asked_for_is_taken_even_if_it_is_too_large_a_design(interval):
    found, why = layout_for_board(two_convolutions(16), "tang-nano-9k", interval)
    assert found.fields == {"interval": interval}
    assert why.startswith("a sample every ")
    assert ", as asked, takes about " in why


def test_a_design_whose_place_and_route_takes_long_is_made_smaller_unless_there_is_time():
    design = two_convolutions(12)
    found, why = layout_for_board(design, "ulx3s")
    assert has_room(design, "ulx3s", {"interval": 0}), "the FPGA has room"
    assert found.fields["interval"] > 0
    assert " (place and route: more than 5 minutes); a sample every " in why
    assert layout_for_board(design, "ulx3s", None, 60.0)[0].fields == {}


@pytest.mark.parametrize(("board", "filters", "least"), [("tang-nano-20k", 12, 9_000), ("ulx3s", 9, 7_000)])
def test_as_many_luts_are_borne_as_end_in_seven_tenths_of_the_minutes(board, filters, least):
    found, why = layout_for_board(two_convolutions(filters), board)
    _, router, _ = find_board_router(board)
    placed = router.devices.placed_luts({name: n or 0 for name, n in found.counts().items()})
    assert least < placed < luts_within(router.family, 0.7 * 300), why
    assert bitstream_seconds_on(found, board)[0] < 0.7 * 300


def test_where_no_interval_is_enough_each_layer_gets_its_own_layout(monkeypatch):
    monkeypatch.setattr(design_layout, "SLOWER", ())
    found, _ = layout_for_board(two_convolutions(6), "icebreaker")
    assert (
        {"multipliers", "paired", "interval"} <= set(found.fields) <= {"multipliers", "paired", "interval", "in_luts"}
    )
    assert has_room(two_convolutions(6), "icebreaker", found.fields)


def test_a_layout_of_each_layer_comes_first_where_it_is_clearly_quicker_than_one_rule_for_all(monkeypatch):
    net, board = Narrow(np.random.default_rng(5)), "tang-nano-9k"
    x = net.conv(net.conv(net.input(8, 8, 2), 6), 6)
    design = net.design(net.dense(net.flatten(x), 6))
    each, _ = layout_for_board(design, board)
    monkeypatch.setattr(board_layouts, "SHARES", ())
    alike, _ = layout_for_board(design, board)
    assert fullness(design, board, each.fields) <= 1
    assert each.interval_cycles < 0.5 * alike.interval_cycles
    assert fullness(design, board, alike.fields) < fullness(design, board, each.fields)


def test_of_two_layouts_that_are_about_as_quick_the_smaller_one_comes_first(monkeypatch):
    design, board = two_convolutions(4), "icebreaker"
    quickest, _ = layout_for_board(design, board)
    monkeypatch.setattr(board_layouts, "AS_QUICK", 2.0)
    smaller, _ = layout_for_board(design, board)
    assert quickest.interval_cycles < smaller.interval_cycles <= 2 * quickest.interval_cycles
    assert fullness(design, board, smaller.fields) < fullness(design, board, quickest.fields)


def test_a_larger_board_that_takes_the_design_only_with_a_layout_of_each_layer_is_named(monkeypatch):
    monkeypatch.setattr(design_layout, "SLOWER", ())
    design = two_convolutions(14)
    assert larger_board(design, "icebreaker") != "no board that fpgaprune knows would take it"
    monkeypatch.setattr(board_layouts, "SHARES", ())
    assert larger_board(design, "icebreaker") == "no board that fpgaprune knows would take it"


def test_a_layout_is_chosen_for_the_room_of_each_resource(monkeypatch):
    """Of 6,480 registers place and route bears 70 %: a layout for 60 % of all alike would be slower, or none."""
    monkeypatch.setattr(design_layout, "SLOWER", ())
    design = two_convolutions(10)
    found, _ = layout_for_board(design, "tang-nano-9k")
    assert 0.85 < fullness(design, "tang-nano-9k", found.fields) <= 1


@pytest.mark.parametrize("filters", [9, 10, 12])
def test_a_layout_has_no_more_small_memories_than_place_and_route_bears(filters):
    """A Tang Nano 9K has places for 270, of which it bears 60 %; there is a layout with more in the same LUTs."""
    design = two_convolutions(filters)
    most = 0.6 * 270
    assert 0 < verilog_price(design, "gowin", **layout_for_board(design, "tang-nano-9k")[0].fields).memories <= most
    crowded = {"multipliers": {"conv2d2": 8, "dense4": 1}, "interval": 300}
    assert verilog_price(design, "gowin", **crowded).memories > most


@pytest.fixture
def without_schedules(monkeypatch):
    """Choosing for each layer takes seconds."""
    monkeypatch.setattr(board_layouts, "SHARES", ())


def test_a_design_for_no_interval_names_the_board_that_would_take_it(without_schedules):
    with pytest.raises(TargetError) as caught:
        layout_for_board(two_convolutions(24), "icebreaker")
    said = str(caught.value)
    assert said.startswith("net fits iCEBreaker at no interval: a sample every 256 cycles still takes about 21,6")
    # A Tang Nano 20K has room too, and place and route would not end there.
    assert "prune more or use fewer bits; Colorlight i5 (colorlight-i5) would take it: a sample every " in said
    assert "\n" not in said


def test_a_design_for_no_board_says_so(without_schedules, monkeypatch):
    monkeypatch.setattr(board_layouts, "list_serial_boards", lambda: ["icebreaker"])
    with pytest.raises(TargetError, match=r"no board that fpgaprune knows would take it$"):
        layout_for_board(two_convolutions(24), "icebreaker")


def test_a_design_that_might_fit_is_tried_and_said_to_take_long(without_schedules):
    """8 filters at 256 clocks take more than the room of an iCEBreaker, and less than all of it."""
    _, why = layout_for_board(two_convolutions(8), "icebreaker")
    assert "the smallest layout, a sample every 256 cycles, takes about " in why
    assert why.endswith(": place and route may take long")


def test_a_parallel_design_without_a_slower_layout_is_tried_as_it_is(without_schedules):
    design = replace(mlp(), outputs=("relu",), layers=mlp().layers[:3])
    found, why = layout_for_board(design, "tang-nano-9k")
    assert found.fields == {}
    assert why.endswith(", and no other layout takes less: place and route may take long")


def test_a_vector_comes_value_by_value_over_a_serial_line(tmp_path):
    """The port takes one value a beat, under the model's own shape, and no bit of the results is another."""
    design = replace(mlp(), layers=mlp().layers[:3], outputs=("relu",))
    fed = board_design(design)
    x = np.random.default_rng(4).uniform(-1, 1, (50, 16))
    np.testing.assert_array_equal(emulate(fed, x.reshape(50, 16, 1)), emulate(design, x))
    (wide,), (port,) = (
        to_verilog(each, tmp_path / name, interval=0).inputs for each, name in ((design, "wide"), (fed, "fed"))
    )
    assert (wide.beats, wide.lanes) == (1, 16)
    assert (port.beats, port.lanes, port.shape) == (16, 1, (16,))


def test_an_image_comes_as_it_is():
    design = two_convolutions(3)
    assert board_design(design).layers is design.layers
