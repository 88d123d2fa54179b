"""`free_unread_carries`: removes the carry outputs that nothing reads; nextpnr would give each of them a slice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
