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


def cells_file(bitstream: Path) -> Path:
    """The file of the cells of a bitstream, which lies beside it."""
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
        made = _module(joined, top)
        places: dict[str, str] = {}
        copies: dict[str, list[str]] = {}
        for name, cell in _module(routed, top)["cells"].items():
            original, _, copied = name.partition(COPY)
            place = cell["attributes"].get("NEXTPNR_BEL", "")
            if copied:
                copies.setdefault(original, []).append(place)
            else:
                places[name] = place
        cells = {
            name: {
                "type": cell["type"],
                "connections": cell["connections"],
                "parameters": cell["parameters"],
                "bel": places.get(name, ""),
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


def _module(path: Path, top: str) -> dict[str, Any]:
    document = read_json(path, RtlError, "a netlist", "export the run again", strict=False)
    modules: dict[str, Any] = document["modules"]
    # nextpnr calls its only module by a name of its own.
    found: dict[str, Any] = modules[top] if top in modules else next(iter(modules.values()))
    return found
