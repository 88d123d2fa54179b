"""The face of the GateMate to the other families: from a file to the configured FPGA, from that to its netlist."""

from __future__ import annotations

import os

from fpgaprune.readback.cells_file import SynthesisedCells
from fpgaprune.readback.comparison import CellComparison
from fpgaprune.readback.fpga import Fpga
from fpgaprune.readback.gatemate.chip import GateMate
from fpgaprune.readback.gatemate.database import database
from fpgaprune.readback.gatemate.decode import read_netlist
from fpgaprune.readback.gatemate.synthesised import GateMateCells
from fpgaprune.readback.netlist import Netlist
from fpgaprune.target import find_part

# The one with one die; the places of its cells are those of one with more.
_DEVICE = "CCGM1A1"


def read(path: str | os.PathLike[str], fpga: Fpga) -> GateMate:
    """Return the FPGA as the bitstream at `path` configures it; errors are those of `GateMate.from_file`."""
    return GateMate.from_file(path, find_part(fpga.board.device).name.upper())


def netlist(chip: GateMate, fpga: Fpga) -> Netlist:
    """Return what the board's serial output depends on; errors are those of `read_netlist`."""
    pins = fpga.board.pins
    return read_netlist(chip, fpga.board.package, (pins["clk"], pins["serial_in"]), pins["serial_out"])


def compare(cells: SynthesisedCells, found: Netlist) -> CellComparison:
    """Compare each cell with that of synthesis; errors are those of `SynthesisReader` and of `compare_netlists`."""
    return GateMateCells(cells, database(_DEVICE)).read().compared(found)
