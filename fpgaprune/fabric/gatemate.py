"""`GATEMATE`: place and route by nextpnr-himbaechel-gatemate, and bitstreams by gmpack."""

from __future__ import annotations

from fpgaprune.fabric.boards import Board
from fpgaprune.fabric.open_tools import yowasp
from fpgaprune.fabric.router import Packing, Router

_PACKAGE = "yowasp-nextpnr-himbaechel-gatemate"
NEXTPNR_GATEMATE = yowasp("nextpnr-himbaechel-gatemate", "open place and route for GateMate", _PACKAGE, "gatemate")
GMPACK = yowasp("gmpack", "bitstreams for GateMate", _PACKAGE, "gatemate", version_flag="")
GMUNPACK = yowasp("gmunpack", "settings in bitstreams for GateMate", _PACKAGE, "gatemate", version_flag="")


def pins(board: Board) -> str:
    """Return the board's pins in the CCF format of Cologne Chip; the voltage of a bank is the board's."""
    sites = {**board.pins, **board.high}
    return "".join(f'Net "{port}" Loc = "{site}";\n' for port, site in sites.items())


GATEMATE = Router(
    "gatemate",
    NEXTPNR_GATEMATE,
    packing=Packing(
        GMPACK,
        pins,
        "board.ccf",
        routing=(
            *("--vopt", "ccf=board.ccf", "--vopt", "out=board.txt"),
            *("--write", "board.json", "--freq", "{clock_mhz:g}"),
        ),
        arguments=("board.txt", "board.bit"),
        product="board.bit",
        routed="board.json",
    ),
)
