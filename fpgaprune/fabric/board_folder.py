"""What a folder for a board holds beside the bitstream: test bench, golden bytes, the board's own Verilog and pins."""

from __future__ import annotations

import os
from pathlib import Path

from fpgaprune.fabric import testbench
from fpgaprune.fabric.beats import beat_bytes
from fpgaprune.fabric.bitstream import find_board_router
from fpgaprune.fabric.boards import board_top
from fpgaprune.fabric.identity import SIZE
from fpgaprune.fabric.pll import Pll
from fpgaprune.fabric.synthesis import read_sources
from fpgaprune.fabric.vectors import Vectors
from fpgaprune.files import hardware_path, write_bytes
from fpgaprune.rtl import VerilogProject

# Bytes with which a board says which design it holds.
ANSWER_BYTES = SIZE


def vector_files(project: VerilogProject) -> list[str]:
    """Return the names of the files that hold the words of a test bench."""
    return [testbench.vector_file(port) for port in (*project.inputs, *project.outputs)]


def write_simulation(project: VerilogProject, vectors: Vectors, folder: Path) -> None:
    """Write the project's Verilog, a test bench that checks itself, and the words that it reads to `folder`.

    Raises:
        RtlError: a file of the project is missing.
    """
    for name, content in read_sources(project, project.files).items():
        write_bytes(folder / name, content)
    for port in (*project.inputs, *project.outputs):
        write_bytes(folder / testbench.vector_file(port), vectors.hexadecimal(port).encode())
    write_bytes(folder / "testbench.v", testbench.testbench_of(project, vectors).encode())


def board_files(project: VerilogProject, board: str | os.PathLike[str], pll: Pll | None) -> dict[str, str]:
    """Name -> text: the top module that joins the project to the board's pins, and the file that names the pins.

    The design's clock is that of `pll`; without one, the oscillator's.

    Raises:
        TargetError: as for `find_board_router` and `board_top`.
    """
    place, _, packing = find_board_router(board)
    uart = hardware_path("boards", "uart_stream.v").read_text(encoding="utf-8")
    return {"board.v": board_top(project, place, uart, pll), packing.pins_file: packing.pins(place)}


def golden_bytes(project: VerilogProject, vectors: Vectors) -> tuple[bytes, bytes]:
    """Return what a serial line carries for the golden samples: the bytes to send, and those that must come back."""
    found = []
    for port in (project.inputs[0], project.outputs[0]):
        size = beat_bytes(port)
        found.append(b"".join(word.to_bytes(size, "little") for word in vectors.words[port.prefix]))
    return found[0], found[1]
