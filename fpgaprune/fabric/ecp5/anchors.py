"""Registers tied to tiles of an ECP5, from which nextpnr's placer finds the floorplan of a netlist.

The placer starts from the cells whose place is fixed, usually the pins. A design with a stream or in a harness has a
handful of pins: its first placement is a point, and spreading the point separates cells that belong together. So a few
hundred registers are fixed at their places in a floorplan. They are registers of pipelines, because those need no
logic beside them, and they fill whole tiles, because the carry chains around them take whole tiles too.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpgaprune.errors import RtlError
from fpgaprune.fabric.cells import find_family
from fpgaprune.fabric.ecp5.floorplan import floorplan
from fpgaprune.fabric.ecp5.macros import FreeRegister, Macros, macros_of
from fpgaprune.target import Part

# Registers in a tile; side of the square of tiles in which one tile is tied; the fewest squares worth a floorplan.
_IN_TILE = 8
_SQUARE = 6
_FEWEST = 4
# nextpnr spreads cells until they fill this share of the tiles; registers tied further out would stand alone.
_FILLED = 0.75


@dataclass(frozen=True, slots=True)
class Grid:
    """The tiles of a device.

    Attributes:
        first: first column with logic.
        last: last column with logic.
        rows: rows with logic.
        blocks: cell type -> the rows, without logic, that hold such cells.
    """

    first: int
    last: int
    rows: tuple[int, ...]
    blocks: Mapping[str, tuple[int, ...]]

    @property
    def columns(self) -> int:
        """The number of columns with logic."""
        return self.last - self.first + 1


def _grid(last_column: int, last_row: int, multipliers: tuple[int, ...], memories: tuple[int, ...]) -> Grid:
    rows = tuple(row for row in range(2, last_row + 1) if row not in multipliers + memories)
    blocks = {"MULT18X18D": multipliers, "DP16KD": memories, "PDPW16KD": memories}
    return Grid(2, last_column, rows, blocks)


# Source: nextpnr 0.11.1, ctx.getBels() of its Python.
_GRIDS = {
    "25": _grid(70, 48, (13,), (25, 37)),
    "45": _grid(88, 69, (22, 46), (10, 34, 58)),
    "85": _grid(124, 93, (10, 34, 58), (22, 46, 70, 82)),
}


def grid_of(part: Part) -> Grid:
    """Return the tiles of an ECP5."""
    found = re.search(r"-(\d+)f$", part.name)
    if found is None or found[1] not in _GRIDS:
        raise RtlError(f"the tiles of {part.name} are not known; wanted an ECP5 of size {', '.join(_GRIDS)}")
    return _GRIDS[found[1]]


def anchor_registers(module: Mapping[str, Any], part: Part, timeout_s: float) -> int:
    """Tie registers of a flat module of yosys's JSON to tiles of `part`; return the number of registers.

    A small netlist gets none, and neither does one that fills the device, because it needs every tile.

    Raises:
        ToolError: as for `floorplan`.
    """
    places = anchors(macros_of(module, find_family("ecp5")), grid_of(part), timeout_s)
    for name, place in places.items():
        module["cells"][name].setdefault("attributes", {})["BEL"] = place
    return len(places)


def anchors(macros: Macros, grid: Grid, timeout_s: float) -> dict[str, str]:
    """Register -> the place on the device that it is tied to, as nextpnr writes it: `X12/Y30/SLICEA.FF0`."""
    wanted = macros.fewest / _IN_TILE / _FILLED
    there = grid.columns * len(grid.rows)
    if wanted < _FEWEST * _SQUARE**2 or wanted * _FILLED > there:
        return {}
    scale = math.sqrt(min(1.0, wanted / there))
    size = np.array([grid.columns * scale, len(grid.rows) * scale])
    at = floorplan(macros.slots, macros.nets, float(size[0]), float(size[1]), timeout_s)
    at = _beside_blocks(at + (np.array([grid.columns, len(grid.rows)]) - size) / 2, macros, grid)
    places: dict[str, str] = {}
    for square, registers in _by_square(macros.free, at):
        column, row = (place * _SQUARE + _SQUARE // 2 for place in square)
        tile = f"X{grid.first + min(column, grid.columns - 1)}/Y{grid.rows[min(row, len(grid.rows) - 1)]}"
        for number, register in enumerate(_alike(registers)[:_IN_TILE]):
            places[register.name] = f"{tile}/SLICE{'ABCD'[number // 2]}.FF{number % 2}"
    return places


def _beside_blocks(at: NDArray[np.float64], macros: Macros, grid: Grid) -> NDArray[np.float64]:
    """Turn `at` upside down if that brings multipliers and memories nearer to the rows that hold them."""
    turned = at * [1, -1] + [0, len(grid.rows)]

    def away(places: NDArray[np.float64]) -> float:
        return sum(
            min(abs(int(np.searchsorted(grid.rows, row)) - float(places[macro, 1])) for row in grid.blocks[kind])
            for macro, kind in macros.blocks.items()
            if kind in grid.blocks
        )

    return min(at, turned, key=away)


def _by_square(
    registers: tuple[FreeRegister, ...], at: NDArray[np.float64]
) -> list[tuple[tuple[int, int], list[FreeRegister]]]:
    found: dict[tuple[int, int], list[FreeRegister]] = defaultdict(list)
    for register in registers:
        x, y = at[register.macro] // _SQUARE
        found[int(x), int(y)].append(register)
    return sorted(found.items())


def _alike(registers: list[FreeRegister]) -> list[FreeRegister]:
    """Return the largest group of registers that one tile can hold."""
    groups: dict[Any, list[FreeRegister]] = defaultdict(list)
    for register in registers:
        groups[register.control].append(register)
    return max(groups.values(), key=len)
