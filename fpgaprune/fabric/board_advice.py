"""`advise_board`: which board would take a design that is too large for the one that was asked for."""

from __future__ import annotations

from pathlib import Path

from fpgaprune.errors import ToolTimeoutError
from fpgaprune.fabric.boards import find_board, list_serial_boards
from fpgaprune.fabric.cells import family_of, find_family
from fpgaprune.fabric.devices import devices_of
from fpgaprune.fabric.open_tools import YOSYS, find_open_tool
from fpgaprune.fabric.synthesis import read_sources
from fpgaprune.fabric.yosys import make_netlist
from fpgaprune.measure import Cells, occupancy_of
from fpgaprune.rtl import VerilogProject
from fpgaprune.target import find_part


def advise_board(project: VerilogProject, family: str, counted: Cells, cache: Path, timeout_s: float) -> str:
    """Return the board of `hw/boards` with the smallest FPGA that holds `project`, and what it takes of it.

    Args:
        project: the design.
        family: the family that it was synthesised for.
        counted: its cells there; each other family's are counted by synthesis, whose results `cache` keeps.
        cache: as for `make_netlist`.
        timeout_s: most seconds for each synthesis; a family where it takes longer is passed over.
    """
    known: dict[str, Cells | None] = {family: counted}
    boards = {name: find_part(find_board(name).device) for name in list_serial_boards()}
    for name, part in sorted(boards.items(), key=lambda item: item[1].lut or 0):
        kind = family_of(part)
        # All these families count LUTs of four inputs, so a device with half as many is not worth a synthesis.
        if kind is None or (part.lut or 0) < (counted.lut or 0) / 2:
            continue
        if kind not in known:
            known[kind] = _count(project, kind, cache, timeout_s)
        cells = known[kind]
        if cells is not None and devices_of(kind).holds(cells, part):
            return f"{find_board(name).name} ({name}) would take it: {occupancy_of(cells, part).rows}"
    return "no board that fpgaprune knows would take it"


def _count(project: VerilogProject, family: str, cache: Path, timeout_s: float) -> Cells | None:
    sources, kind = read_sources(project, project.files), find_family(family)
    try:
        return kind.count(make_netlist(sources, project.top, kind, cache, find_open_tool(YOSYS), timeout_s).types)
    except ToolTimeoutError:
        return None
