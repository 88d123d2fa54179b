"""Carry chains of a Nexus begin without a carry from outside, which nextpnr cannot lead in."""

import pytest

from fpgaprune.errors import RtlError
from fpgaprune.fabric import free_first_carries


def chain(first="0x00AA"):
    """A module with a chain of two cells, the first of which has a constant for its carry."""

    def cell(init, carry, out):
        wires = {"CIN": carry, "COUT": [out], "A0": ["1"]}
        directions = {"CIN": "input", "COUT": "output", "A0": "input"}
        return {
            "type": "CCU2",
            "parameters": {"INIT0": "0xFFFF", "INIT1": init},
            "port_directions": directions,
            "connections": wires,
        }

    return {"cells": {"first": cell(first, ["0"], 5), "second": cell("0x96AA", [5], 6)}}


def test_the_first_cell_of_a_chain_loses_its_constant_carry():
    module = chain()
    assert free_first_carries(module) == 1
    first, second = (module["cells"][name] for name in ("first", "second"))
    assert "CIN" not in {**first["connections"], **first["port_directions"]}
    assert second["connections"]["CIN"] == [5]
    assert free_first_carries(module) == 0


def test_a_chain_that_reads_a_carry_from_outside_is_refused():
    with pytest.raises(RtlError, match="the carry chain of first begins with a carry from outside"):
        free_first_carries(chain("0x96AA"))
