"""`Fpga`: the FPGA on a board, for whoever reads its bitstreams."""

from __future__ import annotations

from dataclasses import dataclass

from fpgaprune.fabric import Board, Device


@dataclass(frozen=True)
class Fpga:
    """An FPGA on a board.

    Attributes:
        board: the board.
        device: the FPGA as nextpnr selects it.
    """

    board: Board
    device: Device
