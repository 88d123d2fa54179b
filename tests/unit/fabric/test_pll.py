"""Clocks from a PLL: settings within the limits of `hw/synth`, as the tools of each family find them too."""

import math

import pytest

from fpgaprune.fabric import board_pll, board_top, find_board_router, find_pll, list_serial_boards


def with_pll():
    return [name for name in list_serial_boards() if find_board_router(name)[1].devices.pll is not None]


@pytest.mark.parametrize("name", with_pll())
@pytest.mark.parametrize("most", [34.0, 61.7, 100.0, 180.0])
def test_the_settings_keep_every_limit_of_the_device(name, most):
    board, router, _ = find_board_router(name)
    kind, found = router.devices.pll, board_pll(name, most)
    assert kind.source
    if found is None:
        assert most < board.clock_mhz
        return
    compared = board.clock_mhz / found.divide
    oscillator = compared * found.multiply * (1 if kind.divided else found.output)
    assert kind.compared_mhz[0] <= compared <= kind.compared_mhz[1]
    assert kind.oscillator_mhz[0] <= oscillator <= kind.oscillator_mhz[1]
    assert math.isclose(found.clock_mhz, oscillator / found.output)
    # An ECP5 compares at 10 MHz or more, so its clocks on a board of 25 MHz stand 12.5 MHz apart.
    assert most - 12.5 < found.clock_mhz <= most
    cycles = found.clock_mhz * 1e6 / board.baud
    assert abs(cycles - round(cycles)) <= 0.01 * cycles


@pytest.mark.parametrize(
    ("name", "most", "settings"),
    [
        # gowin_pll -i 27 -o 90; ecppll -i 25 -o 100; icepll -i 12 -o 39.
        ("tang-nano-9k", 90.0, (3, 10, 8)),
        ("colorlight-i5", 100.0, (1, 4, 6)),
        ("icebreaker", 39.0, (1, 52, 16)),
    ],
)
def test_the_settings_are_those_of_the_tools(name, most, settings):
    found = board_pll(name, most)
    assert found.clock_mhz == most
    assert (found.divide, found.multiply, found.output) == settings


def test_no_clock_is_found_where_the_limits_leave_none():
    board, router, _ = find_board_router("tang-nano-9k")
    kind = router.devices.pll
    assert find_pll(kind, board.clock_mhz, 3.0, board.baud) is None  # slower than the port needs
    assert find_pll(kind, 2.0, 100.0, board.baud) is None  # the reference is too slow for the detector
    assert board_pll("tang-primer-25k", 100.0) is None  # no PLL is listed


@pytest.mark.parametrize("name", with_pll())
def test_the_design_waits_for_a_steady_clock(name, tiny):
    board, _, _ = find_board_router(name)
    found = board_pll(name, 2 * board.clock_mhz)
    text = board_top(tiny, board, "", found)
    assert f"{found.cell} #(" in text
    assert ".clk(clock), .hold(!steady[1])" in text
    assert f".DIVIDER({round(found.clock_mhz * 1e6 / board.baud)})" in text
    assert ".clk(clk), .hold(1'b0)" in board_top(tiny, board, "")
