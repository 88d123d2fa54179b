"""Constants that tables of a GateMate read are put into the tables: the functions stay, and no constant is read."""

from copy import deepcopy
from itertools import product

import pytest

from fpgaprune.fabric import fold_constants

TREES = {
    "CC_LUT1": ("I0",),
    "CC_LUT2": ("I0", "I1"),
    "CC_L2T4": ("I0", "I1", "I2", "I3"),
    "CC_L2T5": ("I0", "I1", "I2", "I3", "I4"),
    "CC_MX2": ("D0", "D1", "S0"),
}


def looked_up(table, *bits):
    """The bit of a table, whose highest bit stands first, at a place; the first bit is the lowest."""
    return int(table[len(table) - 1 - sum(bit << at for at, bit in enumerate(bits))])


def value(cell, wires):
    """What a cell shows; a wire that is connected to nothing gives what `wires` has for it."""
    given = {port: wires[bits[0]] if bits else wires["nothing"] for port, bits in cell["connections"].items()}
    tables, kind = cell["parameters"], cell["type"]
    if kind == "CC_MX2":
        return given["D1"] if given["S0"] else given["D0"]
    if kind in ("CC_LUT1", "CC_LUT2"):
        return looked_up(tables["INIT"], *(given[port] for port in TREES[kind]))
    first, second, top = ("L00", "L01", "L10") if kind == "CC_L2T4" else ("L02", "L03", "L11")
    low = looked_up(tables[f"INIT_{first}"], given["I0"], given["I1"])
    high = looked_up(tables[f"INIT_{second}"], given["I2"], given["I3"])
    lower = looked_up(tables[f"INIT_{top}"], low, high)
    return lower if kind == "CC_L2T4" else looked_up(tables["INIT_L20"], given["I4"], lower)


def cell_of(kind, constants):
    """A cell whose inputs are wires, but for some constants."""
    ports = TREES[kind]
    names = {"CC_LUT1": ["INIT"], "CC_LUT2": ["INIT"], "CC_MX2": []}.get(kind)
    if names is None:
        names = [
            f"INIT_{one}" for one in (("L00", "L01", "L10") if kind == "CC_L2T4" else ("L02", "L03", "L11", "L20"))
        ]
    tables = ("0110", "1011", "0111", "1101")
    wires = {port: [constants.get(port, at)] for at, port in enumerate(ports, 10)}
    output = "Y" if kind == "CC_MX2" else "O"
    return {
        "type": kind,
        "parameters": {name: "01" if kind == "CC_LUT1" else table for name, table in zip(names, tables, strict=False)},
        "port_directions": {**dict.fromkeys(wires, "input"), output: "output"},
        "connections": {**wires, output: [99]},
    }


@pytest.mark.parametrize("kind", TREES)
def test_every_constant_goes_and_the_function_stays(kind):
    for given in product("01w", repeat=len(TREES[kind])):
        constants = {port: one for port, one in zip(TREES[kind], given, strict=True) if one != "w"}
        cell = cell_of(kind, constants)
        module = {"cells": {"one": deepcopy(cell), "other": {"type": "CC_DFF", "connections": {"D": ["1"]}}}}
        # As a tree, a multiplexer takes its choice twice.
        assert fold_constants(module) == len(constants) + (kind == "CC_MX2" and "S0" in constants)
        assert module["cells"]["other"]["connections"] == {"D": ["1"]}
        folded = module["cells"]["one"]
        assert not any(bit in ("0", "1") for bits in folded["connections"].values() for bit in bits)
        free = [at for at, port in enumerate(TREES[kind], 10) if port not in constants]
        for bits in product((0, 1), repeat=len(free) + 1):
            wires = {"0": 0, "1": 1, 99: 0, "nothing": bits[-1], **dict(zip(free, bits, strict=False))}
            assert value(folded, wires) == value(cell, wires), (cell, folded, wires)
