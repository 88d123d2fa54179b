"""Carry outputs that nothing reads, on netlists with and without readers."""

from copy import deepcopy

from hypothesis import given, settings
from hypothesis import strategies as st

from fpgaprune.fabric import free_unread_carries

READERS = ("nothing", "carry", "fabric", "port", "unknown direction")
DIRECTIONS = {"A0": "input", "CIN": "input", "COUT": "output", "S0": "output"}


def chain(ends):
    """A module with one chain of carries for each reader of its last carry output in `ends`, and that output."""
    cells, ports, outputs = {}, {"clk": {"direction": "input", "bits": [2]}}, []
    for number, reader in enumerate(ends):
        bit = 10 * (number + 1)
        cells[f"first{number}"] = cell("CCU2C", DIRECTIONS, A0=[3], CIN=["0"], COUT=[bit], S0=[bit + 1])
        cells[f"last{number}"] = cell("CCU2C", DIRECTIONS, A0=[3], CIN=[bit], COUT=[bit + 2], S0=[bit + 3])
        outputs.append(f"last{number}")
        if reader == "carry":
            cells[f"more{number}"] = cell("CCU2C", DIRECTIONS, A0=[3], CIN=[bit + 2], COUT=[bit + 4], S0=[bit + 5])
            outputs[-1] = f"more{number}"
        elif reader == "fabric":
            cells[f"reader{number}"] = cell("LUT4", {"A": "input", "Z": "output"}, A=[bit + 2], Z=[bit + 4])
        elif reader == "unknown direction":
            cells[f"reader{number}"] = cell("LUT4", {}, A=[bit + 2])
        elif reader == "port":
            ports[f"out{number}"] = {"direction": "output", "bits": [bit + 2]}
    return {"ports": ports, "cells": cells}, outputs


def cell(kind, directions, **connections):
    return {"type": kind, "port_directions": directions, "connections": connections}


@settings(deadline=None)
@given(st.lists(st.sampled_from(READERS), max_size=6))
def test_exactly_the_carries_without_a_reader_are_freed(ends):
    module, outputs = chain(ends)
    after = deepcopy(module)
    wanted = {name for name, reader in zip(outputs, ends, strict=True) if reader in ("nothing", "carry")}
    assert free_unread_carries({"top": after}) == len(wanted)
    for name in wanted:
        # nextpnr looks the port up, so that it stays.
        assert after["cells"][name]["connections"].pop("COUT") == ["x"]
        module["cells"][name]["connections"].pop("COUT")
    assert after == module
