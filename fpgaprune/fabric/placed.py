"""`write_placed`: the cells of synthesis with the places of place and route, for whoever reads the bitstream back."""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any

from fpgaprune.errors import RtlError
from fpgaprune.fabric.fan_out import COPY
from fpgaprune.files import read_json, write_bytes

# Behind the name of a bitstream.
ENDING = ".cells.xz"
_PLACE = "NEXTPNR_BEL"
# How an ECP5's multiplier calls the settings of its registers.
_REGISTERS = "REG_"
# What nextpnr-ice40 writes behind the name of a table, and of a net that leaves the FPGA.
_LOGIC_CELL, _TO_A_PIN = "_LC", "$SB_IO_OUT"


def cells_file(bitstream: Path) -> Path:
    """Return the file of the cells of a bitstream, which lies beside it."""
    return bitstream.with_name(bitstream.name + ENDING)


def write_placed(joined: Path, routed: Path, top: str, bitstream: Path) -> Path:
    """Write the netlist that yosys made, each cell with its place and those of its copies, beside the bitstream.

    Args:
        joined: the netlist as yosys wrote it, with module `top`.
        routed: the netlist as nextpnr wrote it.
        top: the top module.
        bitstream: the file.

    Raises:
        RtlError: one of the files is no netlist.
    """
    try:
        made, whole = _module(joined, top), _module(routed, top)
        places: dict[str, str] = {}
        copies: dict[str, list[str]] = {}
        for name, cell in whole["cells"].items():
            original, _, copied = name.partition(COPY)
            place = cell["attributes"].get(_PLACE, "")
            if copied:
                copies.setdefault(original, []).append(place)
            else:
                places[name] = place
        driving = _driving(made, whole)
        cells = {
            name: {
                "type": cell["type"],
                "connections": cell["connections"],
                "parameters": {**cell["parameters"], **_held(whole["cells"].get(name, {}))},
                "bel": places.get(name) or places.get(name + _LOGIC_CELL) or driving.get(name, ""),
                **({"copies": copies[name]} if name in copies else {}),
            }
            for name, cell in made["cells"].items()
            if not cell["type"].startswith("$")
        }
        ports = {name: port["bits"] for name, port in made["ports"].items()}
    except (KeyError, TypeError, AttributeError) as error:
        raise RtlError(f"{joined} or {routed} is no netlist of {top}: {error}; delete {routed.parent}") from None
    plain = json.dumps({"ports": ports, "cells": cells}, sort_keys=True, separators=(",", ":"))
    return write_bytes(cells_file(bitstream), lzma.compress(plain.encode(), preset=1))


def _held(cell: dict[str, Any]) -> dict[str, str]:
    """Return the parameters that say which registers a multiplier took in before place and route."""
    return {name: value for name, value in cell.get("parameters", {}).items() if name.startswith(_REGISTERS)}


def _driving(made: dict[str, Any], routed: dict[str, Any]) -> dict[str, str]:
    """Map each cell of synthesis to the place of the cell that drives one of its nets after place and route.

    nextpnr-ice40 gives the cells that it packs other names; the nets keep theirs.
    """
    at = {bit: cell["attributes"].get(_PLACE, "") for cell in routed["cells"].values() for bit in _driven(cell)}
    nets = {
        name.removesuffix(_TO_A_PIN): at[bit]
        for name, net in routed.get("netnames", {}).items()
        for bit in net["bits"]
        if bit in at
    }
    found: dict[int, str] = {}
    for name, net in made.get("netnames", {}).items():
        for index, bit in enumerate(net["bits"], net.get("offset", 0)):
            place = nets.get(name if len(net["bits"]) == 1 else f"{name}[{index}]")
            if place is not None:
                found[bit] = place
    driven = ((name, bit) for name, cell in made["cells"].items() for bit in _driven(cell))
    return {name: found[bit] for name, bit in driven if bit in found}


def _driven(cell: dict[str, Any]) -> list[int]:
    ways = cell["port_directions"]
    return [bit for port, bits in cell["connections"].items() if ways[port] == "output" for bit in bits]


def _module(path: Path, top: str) -> dict[str, Any]:
    document = read_json(path, RtlError, "a netlist", "export the run again", strict=False)
    modules: dict[str, Any] = document["modules"]
    # nextpnr calls its only module by a name of its own.
    found: dict[str, Any] = modules[top] if top in modules else next(iter(modules.values()))
    return found
