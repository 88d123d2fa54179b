"""`copy_widely_read`: no register or LUT with so many readers that nextpnr routes its net apart."""

from __future__ import annotations

import re
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

# nextpnr 0.11 leads a net of 8 to 50 pins over a Gowin FPGA's long wires, before all others and pin by pin, if more
# than ten of them are further than four cells away: more than half of its time for some networks.
_MOST, _MANY = 10, 50
# A small memory reads in four LUTs, each with a pin for the address.
_PINS = {("RAM16SDP4", "RAD"): 4}
_COPIED = re.compile(r"DFF[A-Z]*|LUT[1-4]")
# Three or four were enough for all networks that were tried.
_ROUNDS = 8
# Between the name of a cell and the number of its copy.
COPY = "$copy"

Reader = tuple[str, str, int]


def copy_widely_read(module: dict[str, Any], new: Iterator[int]) -> int:
    """Give each register and LUT whose net nextpnr would route apart copies that share its readers; return how many.

    A copy reads what the cell reads, and begins at the same value, so each reader sees the same bits. Its inputs get a
    reader more by it, so this is done some times over. Nets with more pins are routed as others are.

    Args:
        module: of a netlist of yosys for Gowin.
        new: numbers of nets that the module does not have.
    """
    cells, made = module["cells"], 0
    for _ in range(_ROUNDS):
        for name, readers in _widely_read(cells).items():
            for group in _groups(cells, readers)[1:]:
                made += 1
                copied, bit = deepcopy(cells[name]), next(new)
                copied["connections"][_output(copied)] = [bit]
                cells[f"{name}{COPY}{made}"] = copied
                for reader, port, at in group:
                    cells[reader]["connections"][port][at] = bit
    return made


def _widely_read(cells: dict[str, Any]) -> dict[str, list[Reader]]:
    """Return the cells to copy, with what reads each of them, in the netlist's order: neighbours are of one layer."""
    readers: dict[int, list[Reader]] = {}
    for name, cell in cells.items():
        for port, bits in cell["connections"].items():
            if cell["port_directions"][port] == "input":
                for at, bit in enumerate(bits):
                    readers.setdefault(bit, []).append((name, port, at))
    found = {
        name: readers.get(cell["connections"][_output(cell)][0], [])
        for name, cell in cells.items()
        if _COPIED.fullmatch(cell["type"])
    }
    return {name: each for name, each in found.items() if _MOST < sum(_pins(cells, one) for one in each) <= _MANY}


def _groups(cells: dict[str, Any], readers: list[Reader]) -> list[list[Reader]]:
    """Return the readers in their order, in groups of alike numbers of pins, at most `_MOST`.

    No group is full because another one holds the rest: a copy made for one reader would itself be a reader elsewhere,
    which takes another copy there, and so on without end.
    """
    pins = [_pins(cells, reader) for reader in readers]
    most = -(-sum(pins) // -(-sum(pins) // _MOST))
    groups: list[list[Reader]] = [[]]
    taken = 0
    for reader, more in zip(readers, pins, strict=True):
        taken += more
        if taken > most and groups[-1]:
            groups.append([])
            taken = more
        groups[-1].append(reader)
    return groups


def _pins(cells: dict[str, Any], reader: Reader) -> int:
    name, port, _ = reader
    return _PINS.get((cells[name]["type"], port), 1)


def _output(cell: dict[str, Any]) -> str:
    return "F" if cell["type"].startswith("LUT") else "Q"
