"""The face of the ECP5 to the other families: from a file to the configured FPGA, from that to its netlist."""

from __future__ import annotations

import os

from fpgaprune.readback.cells_file import SynthesisedCells
from fpgaprune.readback.comparison import CellComparison
from fpgaprune.readback.ecp5.chip import Ecp5
from fpgaprune.readback.ecp5.decode import read_netlist
from fpgaprune.readback.ecp5.synthesised import Ecp5Cells
from fpgaprune.readback.fpga import Fpga
from fpgaprune.readback.netlist import Netlist
from fpgaprune.target import find_part


def read(path: str | os.PathLike[str], fpga: Fpga) -> Ecp5:
    """Return the FPGA as the bitstream at `path` configures it; errors are those of `Ecp5.from_file`."""
    return Ecp5.from_file(path, find_part(fpga.board.device).name.upper())


def netlist(chip: Ecp5, fpga: Fpga) -> Netlist:
    """Return what the board's serial output depends on; errors are those of `read_netlist`."""
    pins = fpga.board.pins
    inputs = pins["clk"], pins["serial_in"]
    return read_netlist(chip, fpga.board.package, inputs, pins["serial_out"], fpga.board.clock_mhz)


def compare(cells: SynthesisedCells, found: Netlist) -> CellComparison:
    """Compare each cell with that of synthesis; errors are those of `SynthesisReader` and of `compare_netlists`."""
    return Ecp5Cells(cells).read().compared(found)
