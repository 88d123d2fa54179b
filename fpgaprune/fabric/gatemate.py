"""`GATEMATE`: place and route by nextpnr-himbaechel-gatemate, and bitstreams by gmpack."""

from __future__ import annotations

from typing import Any

from fpgaprune.fabric.boards import Board
from fpgaprune.fabric.open_tools import yowasp
from fpgaprune.fabric.router import Packing, Router
from fpgaprune.target import Part

_PACKAGE = "yowasp-nextpnr-himbaechel-gatemate"
NEXTPNR_GATEMATE = yowasp("nextpnr-himbaechel-gatemate", "open place and route for GateMate", _PACKAGE, "gatemate")
GMPACK = yowasp("gmpack", "bitstreams for GateMate", _PACKAGE, "gatemate", version_flag="")
# Of each kind of cell the tables of two inputs, and the inputs, the lower bit of a place in the table first.
_TABLES: dict[str, dict[str, tuple[str, ...]]] = {
    "CC_LUT1": {"INIT": ("I0",)},
    "CC_LUT2": {"INIT": ("I0", "I1")},
    "CC_L2T4": {"INIT_L00": ("I0", "I1"), "INIT_L01": ("I2", "I3")},
    "CC_L2T5": {"INIT_L02": ("I0", "I1"), "INIT_L03": ("I2", "I3"), "INIT_L20": ("I4",)},
}
# A multiplexer as a tree: where its wires go, and the tables.
_CHOICE = {"I0": "D1", "I1": "S0", "I2": "S0", "I3": "D0", "O": "Y"}
_CHOOSES = {"INIT_L00": "1000", "INIT_L01": "0100", "INIT_L10": "1110"}


def fold_constants(module: dict[str, Any]) -> int:
    """Put constants into the tables that read them; return how many such inputs there were.

    nextpnr 0.11.1 leaves the input of a table unconnected if it is the only one to read a constant, and the table as
    if it were read: it then takes what happens to be on a wire nearby.
    """
    found = 0
    for cell in module["cells"].values():
        wires = cell["connections"]
        if cell["type"] == "CC_MX2" and any(_constant(wires.get(port)) is not None for port in ("D0", "D1", "S0")):
            cell["type"], cell["parameters"] = "CC_L2T4", dict(_CHOOSES)
            wires = cell["connections"] = {port: wires[other] for port, other in _CHOICE.items()}
            cell["port_directions"] = {port: "output" if port == "O" else "input" for port in wires}
        for table, ports in _TABLES.get(cell["type"], {}).items():
            for at, port in enumerate(ports):
                value = _constant(wires.get(port))
                if value is not None:
                    cell["parameters"][table] = _without(cell["parameters"][table], at, value)
                    wires[port] = []
                    found += 1
    return found


def _constant(bits: list[int | str] | None) -> int | None:
    """Return the value of a wire that is a constant; None of one that is none."""
    return int(bits[0]) if bits and bits[0] in ("0", "1") else None


def _without(table: str, at: int, value: int) -> str:
    """Return a table, its highest bit first, in which an input makes no difference: it is as if that were `value`."""
    last = len(table) - 1
    return "".join(table[last - (place & ~(1 << at) | value << at)] for place in range(last, -1, -1))


# Part of the name of a prepared netlist: raise it whenever the same netlist is prepared in another way.
VERSION = "1"


def prepare(netlist: dict[str, Any], top: str, part: Part, timeout_s: float) -> None:  # noqa: ARG001
    """Put constants into the tables that read them."""
    fold_constants(netlist["modules"][top])


def pins(board: Board) -> str:
    """Return the board's pins in the CCF format of Cologne Chip; the voltage of a bank is the board's."""
    sites = {**board.pins, **board.high}
    return "".join(f'Net "{port}" Loc = "{site}";\n' for port, site in sites.items())


GATEMATE = Router(
    "gatemate",
    NEXTPNR_GATEMATE,
    prepare,
    lambda: (VERSION,),
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
