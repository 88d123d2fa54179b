"""`read_commands`: the blocks of settings and the contents of memories that the file of a GateMate has."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

Block = tuple[int, int]
# Commands of the file, and bytes behind some of them that mean nothing.
_SETTINGS, _AT_BLOCK, _AT_RAM, _RAM_BYTES = 0xCA, 0xC8, 0xCE, 0xD2
_PATH, _STATUS, _CHOOSES_PLL, _PLL, _RAM_ADDRESS = 0xD9, 0xDB, 0xDD, 0xC1, 0xC9
_BEHIND = {_PATH: 9, _STATUS: 9, _PLL: 6}
_FIRST_DIE = b"\x10"
# Bytes of a block, those of them for its four logic cells, and of a memory's settings and content.
BLOCK, _CELLS, RAM, CONTENT = 112, 40, 27, 5120
_CELL, _CONTROLS, _RESET, _SET = 10, 8, 0x30, 0xC0
# Behind the bytes of a PLL: those of the clocks' pins and of the global clocks.
_OF_PLL, _OF_ALL = 12, 24
_LONG = 12


@dataclass
class Frames:
    """What a file writes into an FPGA.

    Attributes:
        blocks: column and row -> the bytes of a block of settings.
        starts: column and row -> for each of four logic cells where its registers begin: 0, 1, or None if anywhere.
        rams: column and row -> the bytes of a memory's settings.
        contents: column and row -> the bytes of a memory.
        clocks: bytes of the clocks' pins and of the global clocks.
        status: the last bytes, with the banks of pins.
    """

    blocks: dict[Block, bytearray] = field(default_factory=dict)
    starts: dict[Block, list[int | None]] = field(default_factory=dict)
    rams: dict[Block, bytes] = field(default_factory=dict)
    contents: dict[Block, bytes] = field(default_factory=dict)
    clocks: bytes = b""
    status: bytes = b""


def read_commands(data: bytes) -> Frames:
    """Return what a file writes.

    Raises:
        ValueError: it is damaged, or has a command that none for one die without a SerDes has.
    """
    found = Frames()
    at: Block = (0, 0)
    is_ram = False
    cells: dict[Block, bytes] = {}
    for command, body in _commands(data):
        if command in (_AT_BLOCK, _AT_RAM) and len(body) == 2:
            at, is_ram = (body[0], body[1]), command == _AT_RAM
        elif command == _SETTINGS and is_ram and len(body) <= RAM:
            found.rams[at] = body.ljust(RAM, b"\0")
        elif command == _SETTINGS and not is_ram and len(body) <= BLOCK:
            block = found.blocks.setdefault(at, bytearray(BLOCK))
            # What is not logic cells comes first, with zeros in their place.
            if len(body) > _CELLS:
                block[: len(body)] = body
                continue
            if at in cells:
                found.starts[at] = _starts(cells[at], body.ljust(_CELLS, b"\0"))
            block[:_CELLS] = cells[at] = body.ljust(_CELLS, b"\0")
        elif command == _RAM_BYTES and len(body) <= CONTENT:
            found.contents[at] = body.ljust(CONTENT, b"\0")
        elif command == _PLL and _OF_PLL <= len(body) <= _OF_ALL:
            found.clocks = body[_OF_PLL:].ljust(_OF_ALL - _OF_PLL, b"\0")
        elif command == _STATUS and len(body) in (1, _LONG):
            found.status = body if len(body) == _LONG else found.status
        elif (command, body) not in ((_PATH, _FIRST_DIE), (_RAM_ADDRESS, b"\0\0")) and command != _CHOOSES_PLL:
            raise ValueError(f"its command {command:#04x} with {body[:4].hex()} is none that fpgaprune reads")
    return found


def _commands(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield each command with its bytes; both have checksums."""
    at = 0
    while at < len(data):
        command, head = data[at], 3 if data[at] == _RAM_BYTES else 2
        size = int.from_bytes(data[at + 1 : at + head], "big")
        begin = at + head + 2
        end = begin + size + 2
        for stop in (begin, end):
            if len(data) < end or _checksum(data[at : stop - 2]) != int.from_bytes(data[stop - 2 : stop], "little"):
                raise ValueError(f"the checksum of the command at byte {at} is wrong")
        yield command, data[begin : end - 2]
        at = end + _BEHIND.get(command, 0)


def _starts(before: bytes, after: bytes) -> list[int | None]:
    """Return where the registers of each of four logic cells begin.

    They are written with resets that are always on, and then once more as they shall be.

    Raises:
        ValueError: something else changes.
    """
    found: list[int | None] = []
    for cell in range(0, _CELLS, _CELL):
        at = cell + _CONTROLS
        changed = before[at] ^ after[at]
        same = before[cell:at] == after[cell:at] and before[at + 1 : cell + _CELL] == after[at + 1 : cell + _CELL]
        if not same or (changed & ~_RESET and changed & ~_SET) or before[at] & changed:
            raise ValueError("it changes more than resets when it writes a block again")
        found.append(None if not changed else int(bool(changed & _SET)))
    return found


def _table() -> list[int]:
    found = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ 0x8408 if value & 1 else value >> 1
        found.append(value)
    return found


_OF_BYTE = _table()


def _checksum(data: bytes) -> int:
    """Return the CRC of bytes, as X.25 has it."""
    found = 0xFFFF
    for byte in data:
        found = found >> 8 ^ _OF_BYTE[(found ^ byte) & 0xFF]
    return found ^ 0xFFFF
