"""`Macros`: groups of cells that nextpnr places as one on an ECP5, such as a carry chain, and the nets between them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from fpgaprune.fabric.cells import Family

REGISTER = "TRELLIS_FF"
_CARRY = "CCU2C"
# nextpnr packs a register into the slice of the cell that drives it, if that is one of these.
_LOGIC = frozenset({_CARRY, "LUT4", "PFUMX", "L6MUX21", "TRELLIS_DPR16X4"})
_CONTROLS = ("CLK", "CE", "LSR")
_SETTINGS = ("CLKMUX", "CEMUX", "LSRMUX", "SRMODE", "GSR")
# A net with more pins reaches half the design: every cut cuts it, so it tells nothing about the cuts.
_MOST_PINS = 500
# A register is near a block if a path of at most `_NEAR` nets, each with at most `_NEAR_PINS` ends, joins them.
_NEAR, _NEAR_PINS = 4, 40


@dataclass(frozen=True, slots=True)
class FreeRegister:
    """A register that is packed without logic and is not near a block, such as a multiplier.

    Attributes:
        name: name of the cell.
        macro: its macro, which holds nothing else.
        control: clock, enable, reset and settings; all registers of a tile share them.
    """

    name: str
    macro: int
    control: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Macros:
    """A netlist as macros 0, 1, ... and nets between them.

    Attributes:
        slots: (macros,) number of slots of each macro; a slot is a LUT with a register.
        nets: macros in order -> number of wires that join exactly these.
        fewest: slots that would hold the netlist if any LUT could share a slot with any register.
        free: registers that are macros by themselves.
        blocks: macro -> type of its cell, which takes no slot.
    """

    slots: tuple[int, ...]
    nets: Mapping[tuple[int, ...], int]
    fewest: int
    free: tuple[FreeRegister, ...]
    blocks: Mapping[int, str]


def macros_of(module: Mapping[str, Any], family: Family) -> Macros:
    """Return the macros of a flat module of yosys's JSON, mapped to ECP5."""
    cells = {name: cell for name, cell in module["cells"].items() if not cell["type"].startswith("$")}
    drivers, readers = _ends(cells)
    leader = {name: name for name in cells}

    def lead(name: str) -> str:
        while leader[name] != name:
            leader[name] = leader[leader[name]]
            name = leader[name]
        return name

    alone = []
    for name, cell in cells.items():
        if cell["type"] == _CARRY:
            before = drivers.get(_bit(cell, "CIN"))
            if before is not None and cells[before]["type"] == _CARRY:
                leader[lead(name)] = lead(before)
        elif cell["type"] == REGISTER:
            before = drivers.get(_bit(cell, "DI"))
            if before is not None and cells[before]["type"] in _LOGIC:
                leader[lead(name)] = lead(before)
            else:
                alone.append(name)
    number = {name: place for place, name in enumerate(dict.fromkeys(map(lead, cells)))}
    place = {name: number[lead(name)] for name in cells}
    luts, registers = Counter[int](), Counter[int]()
    for name, cell in cells.items():
        luts[place[name]] += family.takes["lut"].get(cell["type"], 0)
        registers[place[name]] += family.takes["ff"].get(cell["type"], 0)
    nets = Counter[tuple[int, ...]]()
    for bit, driver in drivers.items():
        ends = tuple(sorted({place[driver], *(place[reader] for reader in readers[bit])}))
        if 1 < len(ends) <= _MOST_PINS:
            nets[ends] += 1
    slots = tuple(max(luts[macro], registers[macro]) for macro in range(len(number)))
    blocks = {place[name]: cell["type"] for name, cell in cells.items() if not slots[place[name]]}
    beside = _beside(set(blocks), nets)
    free = tuple(FreeRegister(name, place[name], _control(cells[name])) for name in alone if place[name] not in beside)
    fewest = max(luts.total(), registers.total())
    return Macros(slots, nets, fewest, free, blocks)


def _beside(blocks: set[int], nets: Iterable[tuple[int, ...]]) -> set[int]:
    """Return `blocks` and the macros a few nets away from them."""
    near = [ends for ends in nets if len(ends) <= _NEAR_PINS]
    found = blocks
    for _ in range(_NEAR):
        found = found.union(*(ends for ends in near if not found.isdisjoint(ends)))
    return found


def _ends(cells: Mapping[str, Any]) -> tuple[dict[int, str], dict[int, list[str]]]:
    drivers: dict[int, str] = {}
    readers: dict[int, list[str]] = defaultdict(list)
    for name, cell in cells.items():
        for port, bits in cell["connections"].items():
            written = cell["port_directions"].get(port) == "output"
            for bit in bits:
                # A constant is text.
                if isinstance(bit, int):
                    if written:
                        drivers[bit] = name
                    else:
                        readers[bit].append(name)
    return drivers, readers


def _bit(cell: Mapping[str, Any], port: str) -> Any:
    return next(iter(cell["connections"].get(port, ())), None)


def _control(cell: Mapping[str, Any]) -> tuple[str, ...]:
    wires = (str(_bit(cell, port)) for port in _CONTROLS)
    return (*wires, *(str(cell["parameters"].get(name)) for name in _SETTINGS))
