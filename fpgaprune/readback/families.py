"""`find_decoder`: the families whose bitstreams become netlists again, and how each does."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fpgaprune.errors import ReadbackError
from fpgaprune.fabric import find_board_router
from fpgaprune.readback.cells_file import SynthesisedCells
from fpgaprune.readback.comparison import CellComparison
from fpgaprune.readback.ecp5 import reading as ecp5
from fpgaprune.readback.fpga import Fpga
from fpgaprune.readback.gatemate import reading as gatemate
from fpgaprune.readback.gowin import reading as gowin
from fpgaprune.readback.ice40 import reading as ice40
from fpgaprune.readback.netlist import Netlist
from fpgaprune.target import find_part


@dataclass(frozen=True)
class Decoder:
    """How the bitstreams of a family are read; the configured FPGA is the family's own.

    Attributes:
        read: returns the FPGA that a file configures.
        netlist: decodes what its serial output depends on.
        compare: compares the cells of synthesis with a netlist, cell by cell.
    """

    read: Callable[[str | os.PathLike[str], Fpga], Any]
    netlist: Callable[[Any, Fpga], Netlist]
    compare: Callable[[SynthesisedCells, Netlist], CellComparison]


_GOWIN = Decoder(gowin.read, gowin.netlist, gowin.compare)
_ICE40 = Decoder(ice40.read, ice40.netlist, ice40.compare)
_ECP5 = Decoder(ecp5.read, ecp5.netlist, ecp5.compare)
_GATEMATE = Decoder(gatemate.read, gatemate.netlist, gatemate.compare)
_DECODERS = {"gowin": _GOWIN, "ice40": _ICE40, "ice40up": _ICE40, "ecp5": _ECP5, "gatemate": _GATEMATE}


def find_decoder(board: str | os.PathLike[str]) -> tuple[Fpga, Decoder]:
    """Return the FPGA on a board, and what reads its bitstreams.

    Raises:
        TargetError: the board is unknown.
        ReadbackError: fpgaprune reads no bitstreams of its family.
    """
    place, router, _ = find_board_router(board)
    if router.family not in _DECODERS:
        raise ReadbackError(
            f"fpgaprune reads no bitstreams of {router.devices.name}; wanted a board with a GW1N or GW2A of Gowin, an "
            "iCE40, an ECP5, or a GateMate"
        )
    device = router.devices.devices[find_part(place.device).name]
    return Fpga(place, device), _DECODERS[router.family]
