"""Registers around a multiplier, on netlists in which one thing keeps each of them outside."""

from copy import deepcopy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fpgaprune.fabric import register_multipliers

CLOCK, OTHER_CLOCK, CONTROL = 2, 3, 4
# What a register of a multiplier cannot do, as changes of its wires and its settings.
UNLIKE = {
    "enable": ({"CE": [CONTROL]}, {"CEMUX": "CE"}),
    "reset": ({"LSR": [CONTROL]}, {}),
    "set after power-up": ({}, {"REGSET": "SET"}),
    "falling edge": ({}, {"CLKMUX": "INV"}),
    "another clock": ({"CLK": [OTHER_CLOCK]}, {}),
}
BITS = 3


def register(data, out):
    return {
        "type": "TRELLIS_FF",
        "port_directions": {"CLK": "input", "DI": "input", "LSR": "input", "Q": "output"},
        "parameters": {"CEMUX": "1 ", "CLKMUX": "CLK", "LSRMUX": "LSR", "REGSET": "RESET"},
        "connections": {"CLK": [CLOCK], "DI": [data], "LSR": ["0"], "Q": [out]},
    }


def product(bit=10):
    """A module: a multiplier of 3 by 3 bits, the highest of each factor as its sign, with registers all around."""
    wires = {"SIGNEDA": ["1"], "SIGNEDB": ["1"]}
    cells = {}
    for pin in "AB":
        for number in range(BITS):
            cells[f"{pin}{number}"] = register(bit, bit + 1)
            wires[f"{pin}{number}"] = [bit + 1]
            bit += 2
        wires[f"{pin}{BITS}"] = [bit - 1]
        wires[f"{pin}{BITS + 1}"] = ["0"]
    for number in range(2 * BITS):
        cells[f"P{number}"] = register(bit, bit + 1)
        wires[f"P{number}"] = [bit]
        bit += 2
    wires[f"P{2 * BITS}"] = [bit]  # read by nothing
    directions = {pin: "output" if pin[0] == "P" else "input" for pin in wires}
    cells["product"] = {"type": "MULT18X18D", "port_directions": directions, "parameters": {}, "connections": wires}
    outs = [cells[f"P{number}"]["connections"]["Q"][0] for number in range(2 * BITS)]
    return {"ports": {"clk": {"bits": [CLOCK]}, "out": {"bits": outs}}, "cells": cells}


def held(module):
    """Which registers the multiplier has."""
    return {name.split("_")[1] for name in module["cells"]["product"]["parameters"] if name.endswith("_CLK")}


def test_all_registers_go_into_the_multiplier():
    before = product()
    after = deepcopy(before)
    assert register_multipliers(after) == 1
    assert set(after["cells"]) == {"product"}
    cell = after["cells"]["product"]
    for pin in ("A0", "A1", "A2", "B0", "B1", "B2"):
        assert cell["connections"][pin] == before["cells"][pin]["connections"]["DI"]
    assert cell["connections"]["A3"] == before["cells"]["A2"]["connections"]["DI"], "the sign"
    assert cell["connections"]["A4"] == ["0"]
    for number in range(2 * BITS):
        assert cell["connections"][f"P{number}"] == before["cells"][f"P{number}"]["connections"]["Q"]
    assert {port: cell["connections"][port] for port in ("CLK0", "CE0", "RST0")} == {
        "CLK0": [CLOCK],
        "CE0": ["1"],
        "RST0": ["0"],
    }
    assert cell["parameters"] == {
        f"REG_{name}_{kind}": f"{kind}0" for name in ("INPUTA", "INPUTB", "OUTPUT") for kind in ("CLK", "CE", "RST")
    }


@pytest.mark.parametrize("unlike", UNLIKE)
@pytest.mark.parametrize(("pin", "left"), [("A0", {"OUTPUT"}), ("B2", {"OUTPUT"}), ("P1", {"INPUTA", "INPUTB"})])
def test_a_register_that_a_multiplier_has_not_stays_outside_with_its_neighbours(unlike, pin, left):
    module = product()
    wires, parameters = UNLIKE[unlike]
    module["cells"][pin]["connections"].update(wires)
    module["cells"][pin]["parameters"].update(parameters)
    if "CE" in wires:
        module["cells"][pin]["port_directions"]["CE"] = "input"
    register_multipliers(module)
    assert held(module) == left
    outside = {name for name in module["cells"] if name != "product"}
    assert outside == {name for name in product()["cells"] if name[0] in (pin[0] if pin[0] == "P" else "AB")} - {
        "product"
    }


@pytest.mark.parametrize(("pin", "left"), [("A1", {"OUTPUT"}), ("P1", {"INPUTA", "INPUTB"})])
def test_a_factor_that_is_no_register_and_a_product_that_is_read_elsewhere_stay_as_they_are(pin, left):
    module = product()
    bit = module["cells"]["product"]["connections"][pin][0]
    logic = {"type": "LUT4", "port_directions": {"A": "input", "Z": "output"}, "parameters": {}}
    if pin[0] == "A":
        module["cells"][pin] = {**logic, "connections": {"A": [CONTROL], "Z": [bit]}}
    else:
        module["cells"]["logic"] = {**logic, "connections": {"A": [bit], "Z": [900]}}
    register_multipliers(module)
    assert held(module) == left


def test_registers_on_two_clocks_stay_where_they_are():
    module = product()
    for name, cell in module["cells"].items():
        if name[0] == "P" and cell["type"] == "TRELLIS_FF":
            cell["connections"]["CLK"] = [OTHER_CLOCK]
    before = deepcopy(module)
    assert register_multipliers(module) == 0
    assert module == before


@settings(deadline=None)
@given(st.sets(st.sampled_from([f"{pin}{number}" for pin in "AB" for number in range(BITS)])))
def test_a_register_stays_for_those_who_read_it_too(read):
    """The multiplier takes its own copy; the other reader still has the register."""
    module = product()
    for pin in read:
        out = module["cells"][pin]["connections"]["Q"][0]
        module["ports"][f"see_{pin}"] = {"bits": [out]}
    assert register_multipliers(module) == 1
    assert held(module) == {"INPUTA", "INPUTB", "OUTPUT"}
    assert set(module["cells"]) == {"product", *read}
