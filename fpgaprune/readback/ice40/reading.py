"""The face of the iCE40 to the other families: from a file to the configured FPGA, from that to its netlist."""

from __future__ import annotations

import os

from fpgaprune.readback.cells_file import SynthesisedCells
from fpgaprune.readback.comparison import CellComparison
from fpgaprune.readback.fpga import Fpga
from fpgaprune.readback.ice40.chip import Ice40
from fpgaprune.readback.ice40.decode import read_netlist
from fpgaprune.readback.ice40.synthesised import Ice40Cells
from fpgaprune.readback.netlist import Netlist

# nextpnr's option for a device -> the name of its database, and what stands behind the names of its packages there.
_DATABASES = {
    "--up3k": ("5k", ""),
    "--up5k": ("5k", ""),
    "--hx1k": ("1k", ""),
    "--lp1k": ("1k", ""),
    "--hx4k": ("8k", ":4k"),
    "--lp4k": ("8k", ":4k"),
    "--hx8k": ("8k", ""),
    "--lp8k": ("8k", ""),
}


def read(path: str | os.PathLike[str], fpga: Fpga) -> Ice40:
    """Return the FPGA as the bitstream at `path` configures it; errors are those of `Ice40.from_file`."""
    return Ice40.from_file(path, _DATABASES[fpga.device.options[0]][0])


def netlist(chip: Ice40, fpga: Fpga) -> Netlist:
    """Return what the board's serial output depends on; errors are those of `read_netlist`."""
    pins = fpga.board.pins
    inputs = pins["clk"], pins["serial_in"]
    package = fpga.board.package + _DATABASES[fpga.device.options[0]][1]
    return read_netlist(chip, package, inputs, pins["serial_out"], fpga.board.clock_mhz)


def compare(cells: SynthesisedCells, found: Netlist) -> CellComparison:
    """Compare each cell with that of synthesis; errors are those of `SynthesisReader` and of `compare_netlists`."""
    return Ice40Cells(cells).read().compared(found)
