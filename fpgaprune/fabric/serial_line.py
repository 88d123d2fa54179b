"""`open_line`: the serial line to a board, found by the board's USB chip or named as a port."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Protocol

from fpgaprune.errors import BoardError, TargetError, ToolError
from fpgaprune.fabric.boards import BAUD, Board, find_board, is_serial_board, list_serial_boards

# What a port is called on Linux, macOS and Windows, and by pyserial's own protocols.
_PORT = re.compile(r"/dev/.+|com\d+|\w+://.+", re.IGNORECASE)


class SerialLine(Protocol):
    """What a serial line offers, as pyserial has it."""

    def read(self, size: int) -> bytes:
        """Read at most `size` bytes, fewer if the time is over."""

    def write(self, data: bytes) -> Any:
        """Send `data`."""

    def reset_input_buffer(self) -> None:
        """Forget what has come and was not read."""

    def close(self) -> None:
        """Close the serial line."""


def open_line(board_or_port: str, baud: int | None, timeout_s: float) -> SerialLine:
    """Return the line to the board that `hw/boards` or a TOML file describes, or at a port such as `/dev/ttyUSB0`.

    Args:
        board_or_port: the name of a board, a board's TOML file, or a port.
        baud: bits a second; those of the board, or `BAUD` at a port, unless given.
        timeout_s: seconds after which `read` returns what has come.

    Raises:
        ToolError: pyserial is missing.
        BoardError: there is no such board or port here, several, or it cannot be opened.
    """
    try:
        import serial
        from serial.tools.list_ports import comports
    except ImportError:
        raise ToolError("pyserial, which speaks to boards, was not found: pip install 'fpgaprune[boards]'") from None
    here = list(comports())
    if _PORT.fullmatch(board_or_port):
        port, board = board_or_port, None
    else:
        board = _board(board_or_port, here)
        port = _port_of(board, here)
    try:
        line: SerialLine = serial.serial_for_url(port, baud or (board.baud if board else BAUD), timeout=timeout_s)
    except (serial.SerialException, OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error).split(":")[0]
        raise BoardError(f"port {port} cannot be opened ({reason}); {_listed(here)}") from None
    return line


def _board(name: str, here: Iterable[object]) -> Board:
    if not name.endswith(".toml") and not is_serial_board(name):
        raise BoardError(
            f"{name!r} is neither a port nor a board; wanted a port such as /dev/ttyUSB0, a board's TOML file or "
            f"one of {', '.join(list_serial_boards())}; {_listed(here)}"
        )
    try:
        return find_board(Path(name) if name.endswith(".toml") else name)
    except TargetError as error:
        raise BoardError(str(error)) from None


def _port_of(board: Board, here: Iterable[Any]) -> str:
    if board.usb is None:
        raise BoardError(
            f"{board.name} has no serial chip that its file names; name the port of your adapter, as /dev/ttyUSB0; "
            f"{_listed(here)}"
        )
    found = [port for port in here if port.vid is not None and f"{port.vid:04x}:{port.pid:04x}" == board.usb.lower()]
    if board.usb_interface is not None and len(found) > 1:
        # Linux gives a location such as 1-2:1.1: the last number is the interface.
        ending = f".{board.usb_interface}"
        found = [port for port in found if (port.location or "").endswith(ending)] or found
    if not found:
        raise BoardError(f"no {board.name} is connected (USB {board.usb}); plug it in, or name a port; {_listed(here)}")
    if len(found) > 1:
        names = ", ".join(port.device for port in found)
        raise BoardError(f"several ports may be the {board.name}: {names}; name one instead of the board")
    return str(found[0].device)


def _listed(here: Iterable[Any]) -> str:
    names = [port.device for port in here]
    return f"ports here: {', '.join(names)}" if names else "no port is here"
