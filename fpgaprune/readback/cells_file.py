"""`read_cells`: the file that lies beside a bitstream: the cells of synthesis with their places."""

from __future__ import annotations

import lzma
import os
from pathlib import Path

import msgspec

from fpgaprune.errors import ReadbackError


class SynthesisedCell(msgspec.Struct, frozen=True):
    """A cell of the netlist.

    Attributes:
        type: as `DFFE`.
        connections: port -> its bits; a number is a net, text a constant.
        parameters: as yosys writes them.
        bel: the place that place and route chose, or empty.
        copies: the places of copies of the cell, which share its readers.
    """

    type: str
    connections: dict[str, list[int | str]]
    parameters: dict[str, str] = {}
    bel: str = ""
    copies: list[str] = []

    def number(self, name: str, default: int = 0) -> int:
        """Return a parameter that is a number."""
        return int(self.parameters[name], 2) if name in self.parameters else default


class SynthesisedCells(msgspec.Struct):
    """A synthesised netlist: name of a port -> its nets, and cells by name."""

    ports: dict[str, list[int | str]]
    cells: dict[str, SynthesisedCell]


def read_cells(path: str | os.PathLike[str]) -> SynthesisedCells:
    """Return the netlist that `make_bitstream` wrote beside a bitstream.

    Raises:
        ReadbackError: the file is gone, or is none.
    """
    try:
        return msgspec.json.decode(lzma.decompress(Path(path).read_bytes()), type=SynthesisedCells)
    except (OSError, lzma.LZMAError, msgspec.DecodeError) as error:
        reason = str(error).split(" - ")[0]
        raise ReadbackError(
            f"{os.fspath(path)} holds no synthesised netlist ({reason}); export the run again"
        ) from None
