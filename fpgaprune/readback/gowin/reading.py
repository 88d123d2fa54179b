"""Gowin's face to the other families: from a file to the configured FPGA, from that to its netlist."""

from __future__ import annotations

import os

from fpgaprune.readback.cells_file import SynthesisedCells
from fpgaprune.readback.comparison import CellComparison
from fpgaprune.readback.fpga import Fpga
from fpgaprune.readback.gowin.chip import Chip
from fpgaprune.readback.gowin.decode import read_netlist
from fpgaprune.readback.gowin.pins import Pins
from fpgaprune.readback.gowin.synthesised import GowinCells
from fpgaprune.readback.netlist import Netlist


def read(path: str | os.PathLike[str], fpga: Fpga) -> Chip:
    """Return the FPGA as the bitstream at `path` configures it; errors are those of `Chip.from_file`."""
    return Chip.from_file(path, fpga.device.packing[-1])


def netlist(chip: Chip, fpga: Fpga) -> Netlist:
    """Return what the board's serial output depends on; errors are those of `read_netlist`."""
    pins = fpga.board.pins
    order_number = " ".join(fpga.device.options).format(package=fpga.board.package).split()[1]
    package, variant, _ = chip.db.packages[order_number]
    known = Pins(chip, variant, package, (pins["clk"], pins["serial_in"]))
    return read_netlist(chip, known, pins["serial_out"], fpga.board.clock_mhz)


def compare(cells: SynthesisedCells, found: Netlist) -> CellComparison:
    """Compare each cell with that of synthesis; errors are those of `SynthesisReader` and of `compare_netlists`."""
    return GowinCells(cells).read().compared(found)
