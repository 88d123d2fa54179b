"""A carry that logic reads too stays in its chain, and what the cells compute stays the same."""

import copy
from itertools import product

from fpgaprune.fabric import keep_carries_in_chains

ADD = {"ALU_MODE": f"{2:032b}"}


def alu(i0, i1, i3, cin, cout, total):
    wires = {"I0": i0, "I1": i1, "I3": i3, "CIN": cin, "COUT": cout, "SUM": total}
    return {"type": "ALU", "parameters": ADD, "connections": {port: [bit] for port, bit in wires.items()}}


def lut(i0, f):
    return {"type": "LUT1", "parameters": {"INIT": "10"}, "connections": {"I0": [i0], "F": [f]}}


def chain(*, read):
    """Two bits of a subtraction whose carry makes the sign, and is read by logic if `read`."""
    cells = {
        "zero": {"type": "GND", "parameters": {}, "connections": {"G": [2]}},
        "one": {"type": "VCC", "parameters": {}, "connections": {"V": [3]}},
        "low": alu(4, 5, 2, 3, 10, 11),
        "high": alu(6, 7, 2, 10, 12, 13),
        "sign": alu(2, 2, 3, 12, 14, 15),
    }
    if read:
        cells["reader"] = lut(12, 16)
    ports = {"y": {"direction": "output", "bits": [11, 13, 15, *([16] if read else [])]}}
    return {"cells": cells, "ports": ports, "netnames": {}}


def computed(module, inputs):
    """The nets of the outputs, by the cells' own rules."""
    value = dict(inputs)
    cells = list(module["cells"].values())
    while cells:
        for cell in list(cells):
            at = {port: bits[0] for port, bits in cell["connections"].items()}
            if any(port in at and at[port] not in value for port in ("I0", "I1", "I3", "CIN")):
                continue
            if cell["type"] in ("GND", "VCC"):
                value[at.get("G", at.get("V"))] = int(cell["type"] == "VCC")
            elif cell["type"] == "LUT1":
                value[at["F"]] = int(cell["parameters"]["INIT"][1 - value[at["I0"]]])
            else:
                same = value[at["I0"]] ^ value[at["I1"]] ^ (1 - value[at["I3"]])
                value[at["SUM"]] = same ^ value[at["CIN"]]
                value[at["COUT"]] = value[at["CIN"]] if same else value[at["I0"]]
            cells.remove(cell)
    return [value[bit] for bit in module["ports"]["y"]["bits"]]


def readers(module, bit):
    return sorted(name for name, cell in module["cells"].items() if [bit] in cell["connections"].values())


def test_a_carry_that_logic_reads_too_stays_in_its_chain():
    before = chain(read=True)
    after = copy.deepcopy(before)
    assert keep_carries_in_chains(after) == 1
    # The carry goes to one cell, that of the next bit.
    assert readers(after, 12) == ["carry_12_sum", "high"]
    for bits in product((0, 1), repeat=4):
        given = dict(zip((4, 5, 6, 7), bits, strict=True))
        assert computed(after, given) == computed(before, given)
    assert keep_carries_in_chains(after) == 0, "a second time there is nothing to do"


def test_a_chain_that_no_logic_reads_is_left_alone():
    before = chain(read=False)
    after = copy.deepcopy(before)
    assert keep_carries_in_chains(after) == 0
    assert after == before


def test_a_module_without_constants_gets_them():
    module = chain(read=True)
    for name in ("zero", "one"):
        del module["cells"][name]
    assert keep_carries_in_chains(module) == 1
    assert {cell["type"] for cell in module["cells"].values()} >= {"GND", "VCC"}
