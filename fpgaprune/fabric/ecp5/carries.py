"""Carry outputs that nothing reads, taken off a netlist: nextpnr would give each a slice to come out through."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fpgaprune.documents import read_json
from fpgaprune.errors import FpgaPruneError, RtlError, shown
from fpgaprune.files import write_bytes

_CARRY, _OUT = "CCU2C", "COUT"


def free_unread_carries(netlist: Path, freed: Path) -> int:
    """`freed` holds the netlist of the JSON file `netlist` without the carry outputs that nothing reads; how many.

    yosys leaves a wire at the last carry of every chain. nextpnr takes any wire there for one that is read, and adds a
    CCU2C, two LUTs, that lets the carry out into the fabric: a sixth of what the chains themselves took, where counted.

    Raises:
        RtlError: `netlist` holds none.
    """
    try:
        document = read_json(netlist, RtlError, "a netlist of yosys", "synthesise again", strict=False)
        found = sum(_free(module) for module in document["modules"].values())
    except FpgaPruneError:
        raise
    except (AttributeError, LookupError, OverflowError, TypeError, ValueError) as error:
        raise RtlError(f"{netlist} is no netlist of yosys: {shown(error)}") from error
    write_bytes(freed, json.dumps(document, separators=(",", ":")).encode())
    return found


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
        # The port stays, with nothing at it: nextpnr looks it up.
        cell["connections"][_OUT] = ["x"]
    return len(unread)
