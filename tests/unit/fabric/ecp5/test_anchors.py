"""Macros of a netlist, and registers tied to tiles, on netlists made up of chains, registers and logic."""

import re
from collections import Counter, defaultdict
from copy import deepcopy
from itertools import count

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fpgaprune.fabric import anchor_registers, anchors, find_family, grid_of, macros_of
from fpgaprune.fabric.ecp5 import anchors as anchors_module
from fpgaprune.target import find_part

ECP5 = find_family("ecp5")
LUTS = {"CCU2C": 2, "LUT4": 1, "TRELLIS_DPR16X4": 6}
DIRECTIONS = {
    "CCU2C": {"A0": "input", "CIN": "input", "COUT": "output", "S0": "output", "S1": "output"},
    "LUT4": {"A": "input", "Z": "output"},
    "TRELLIS_DPR16X4": {"DI": "input", "DO": "output"},
    "TRELLIS_FF": {"CLK": "input", "CE": "input", "DI": "input", "Q": "output"},
    "MULT18X18D": {"A0": "input", "P0": "output"},
    "$scopeinfo": {},
}


class Netlist:
    """A module of cells, wire 2 its clock."""

    def __init__(self):
        self.cells = {}
        self.wires = count(10)

    def add(self, kind, **connections):
        name = f"{kind}{len(self.cells)}"
        settings_ = {"CLKMUX": "CLK"} if kind == "TRELLIS_FF" else {}
        self.cells[name] = {
            "type": kind,
            "parameters": settings_,
            "attributes": {"src": "a.v"},
            "port_directions": DIRECTIONS[kind],
            "connections": {port: [bit] for port, bit in connections.items()},
        }
        return name

    def register(self, data, enable="1"):
        wire = next(self.wires)
        return self.add("TRELLIS_FF", CLK=2, CE=enable, DI=data, Q=wire), wire

    def chain(self, length, data):
        """Sums and the names of a chain of carries."""
        names, sums, carry = [], [], "0"
        for _ in range(length):
            out, low, high = (next(self.wires) for _ in range(3))
            names.append(self.add("CCU2C", A0=data, CIN=carry, COUT=out, S0=low, S1=high))
            sums += [low, high]
            carry = out
        return names, sums

    @property
    def module(self):
        return {"cells": self.cells}


@st.composite
def netlists(draw):
    """A netlist, what belongs together in it, registers that belong to nothing, and multipliers."""
    netlist, groups, free, blocks = Netlist(), [], [], set()
    wires = [3]
    kinds = st.sampled_from(["chain", "LUT4", "TRELLIS_DPR16X4", "register", "pipeline", "multiplier"])
    for kind in draw(st.lists(kinds, min_size=1, max_size=12)):
        data = draw(st.sampled_from(wires))
        if kind == "chain":
            names, sums = netlist.chain(draw(st.integers(1, 5)), data)
            held = [netlist.register(wire) for wire in sums if draw(st.booleans())]
            groups.append({*names, *(name for name, _ in held)})
            wires += [wire for _, wire in held]
        elif kind in ("LUT4", "TRELLIS_DPR16X4"):
            out = next(netlist.wires)
            name = netlist.add(kind, **dict(zip(DIRECTIONS[kind], (data, out), strict=True)))
            register, wire = netlist.register(out)
            groups.append({name, register})
            wires.append(wire)
        elif kind == "multiplier":
            out = next(netlist.wires)
            blocks.add(netlist.add("MULT18X18D", A0=data, P0=out))
            groups.append({*blocks} - set().union(*groups))
            wires.append(out)
        else:
            for _ in range(1 if kind == "register" else 3):
                name, data = netlist.register(data)
                groups.append({name})
                free.append(name)
                wires.append(data)
    netlist.add("$scopeinfo")
    return netlist, groups, free, blocks


@settings(deadline=None)
@given(netlists())
def test_chains_and_the_registers_behind_logic_are_one_and_the_rest_is_free(made):
    netlist, groups, alone, blocks = made
    found = macros_of(netlist.module, ECP5)
    group_of = {name: number for number, group in enumerate(groups) for name in group}
    nets, joined = 0, []
    for name, cell in netlist.cells.items():
        for port, (wire,) in cell["connections"].items():
            if isinstance(wire, int) and cell["port_directions"][port] == "output":
                ends = {name, *(other for other, reader in netlist.cells.items() if [wire] in reads(reader))}
                nets += len({group_of[end] for end in ends}) > 1
                joined.append(ends)
    assert sum(found.nets.values()) == nets
    near = set(blocks)
    for _ in range(4):
        ends = [ends for ends in joined if ends & near]
        near |= {name for group in groups if any(group & found for found in ends) for name in group}
    assert [register.name for register in found.free] == [name for name in alone if name not in near]
    assert len({register.macro for register in found.free}) == len(found.free)
    slots = []
    for group in groups:
        luts = sum(LUTS.get(netlist.cells[name]["type"], 0) for name in group)
        registers = sum(netlist.cells[name]["type"] == "TRELLIS_FF" for name in group)
        slots.append(max(luts, registers))
    assert sorted(found.slots) == sorted(slots)
    kinds = Counter(cell["type"] for cell in netlist.cells.values())
    assert found.fewest == max(sum(LUTS[kind] * kinds[kind] for kind in LUTS), kinds["TRELLIS_FF"])


def reads(cell):
    return [bits for port, bits in cell["connections"].items() if cell["port_directions"][port] == "input"]


def pipelines(lanes, depth, enables=3):
    """A netlist of `lanes` pipelines of registers; every third lane has its own enable, twice."""
    netlist = Netlist()
    for lane in range(lanes):
        data = 3
        for _ in range(depth):
            _, data = netlist.register(data, enable=4 + lane % enables)
    return netlist


@pytest.mark.parametrize("device", ["lfe5u-25f", "lfe5um-45f", "lfe5u-85f"])
def test_tiles_exist_and_hold_registers_of_one_kind(device, monkeypatch):
    part = find_part(device)
    netlist = pipelines(40, 100)
    macros = macros_of(netlist.module, ECP5)
    random, asked = np.random.default_rng(0), []

    def anywhere(weights, nets, width, height, timeout_s):
        asked.append(random.uniform([0, 0], [width, height], (len(weights), 2)))
        asked.append((width, height))
        return asked[0]

    monkeypatch.setattr(anchors_module, "floorplan", anywhere)
    grid = grid_of(part)
    found = anchors(macros, grid, 60)
    at, (width, height) = asked
    assert width * height == pytest.approx(4000 / 8 / 0.75)
    assert len(found) > 100
    assert len(set(found.values())) == len(found)
    tiles = defaultdict(list)
    for name, place in found.items():
        column, row = re.fullmatch(r"X(\d+)/Y(\d+)/SLICE[A-D]\.FF[01]", place).groups()
        tiles[int(column), int(row)].append(name)
        assert grid.first <= int(column) <= grid.last
        assert int(row) in grid.rows
        # Not further from where it belongs than its square is wide.
        x, y = at[macros.free[int(name[10:])].macro]
        assert abs(x + (grid.columns - width) / 2 - (int(column) - grid.first)) <= 6
        assert abs(y + (len(grid.rows) - height) / 2 - grid.rows.index(int(row))) <= 6
    for names in tiles.values():
        assert len({tuple(netlist.cells[name]["connections"]["CE"]) for name in names}) == 1
        assert len(names) <= 8


@pytest.mark.parametrize("low", [True, False])
def test_what_needs_a_multiplier_lies_on_their_side_of_the_device(low, monkeypatch):
    """An LFE5U-25F has multipliers in row 13 of 48 only; a floorplan means as much when it is turned."""
    netlist = pipelines(40, 100)
    out = next(netlist.wires)
    netlist.add("MULT18X18D", A0=next(iter(netlist.cells.values()))["connections"]["Q"][0], P0=out)
    macros = macros_of(netlist.module, ECP5)
    (block,) = macros.blocks
    beside, away = (5.0, 15.0) if low else (15.0, 5.0)
    monkeypatch.setattr(
        anchors_module,
        "floorplan",
        lambda weights, nets, width, height, timeout_s: np.array(
            [[width / 2, beside if macro == block else away] for macro in range(len(weights))]
        ),
    )
    rows = {int(place.split("/")[1][1:]) for place in anchors(macros, grid_of(find_part("lfe5u-25f")), 60).values()}
    # The pipelines lie beyond the middle, away from row 13.
    assert min(rows) > 24


@pytest.mark.parametrize(
    ("device", "luts", "without"),
    [("25f", 24288, [13, 25, 37]), ("45f", 43848, [*range(10, 60, 12)]), ("85f", 83640, [*range(10, 83, 12)])],
)
def test_a_grid_has_the_devices_luts_and_none_where_it_has_none(device, luts, without):
    part = find_part(f"lfe5u-{device}")
    grid = grid_of(part)
    assert grid.columns * len(grid.rows) * 8 == luts == part.lut
    assert sorted({*range(2, max(grid.rows) + 1)}.difference(grid.rows)) == without
    assert sorted({row for rows in grid.blocks.values() for row in rows}) == without


@pytest.mark.parametrize("registers", [10, 800, 24288 + 8])
def test_small_and_full_netlists_have_none(registers, monkeypatch):
    monkeypatch.setattr(anchors_module, "floorplan", None)
    assert anchors(macros_of(pipelines(1, registers).module, ECP5), grid_of(find_part("lfe5u-25f")), 60) == {}


def test_a_tied_netlist_is_the_same_but_for_where():
    netlist = pipelines(16, 70)
    before = deepcopy(netlist.module)
    number = anchor_registers(netlist.module, find_part("lfe5u-25f"), 300)
    tied = {
        name: cell["attributes"].pop("BEL")
        for name, cell in netlist.module["cells"].items()
        if "BEL" in cell["attributes"]
    }
    assert netlist.module == before
    assert len(tied) == number > 16
    # Neighbours in a pipeline are neighbours on the device.
    at = {int(name[10:]): np.array([*map(int, re.findall(r"\d+", place)[:2])]) for name, place in tied.items()}
    steps = [abs(at[a] - at[a + 1]).sum() for a in at if a + 1 in at and (a + 1) % 70]
    assert np.mean(steps) < 3
