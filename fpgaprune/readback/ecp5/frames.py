"""`read_frames`: the bits of an ECP5's configuration, and the contents of its block memories, from a bitstream."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np
from numpy.typing import NDArray

_BEGIN = bytes.fromhex("ffffbdb3")
# Commands without data, and those with four bytes of it.
_PLAIN = {0x3B: "reset of the checksum", 0x46: "first address", 0xCE: "", 0x5E: "done", 0x79: "", 0xBB: ""}
_WITH_WORD = (0x22, 0xE2, 0xF6, 0xC2)
_IDENTITY, _MEMORY, _FRAMES, _WORDS, _FILL, _RESET = 0xE2, 0xF6, 0x82, 0xB2, 0xFF, 0x3B
WORD, WORDS = 9, 2048


def read_frames(
    data: bytes, identity: int, frames: int, frame_bits: int
) -> tuple[NDArray[np.uint8], dict[int, bytearray]]:
    """Read the bits (frames, bits of each), and each memory's bits by its number, word by word of 9.

    Args:
        data: the file.
        identity: the number of the FPGA.
        frames: how many it has.
        frame_bits: bits of each.

    Raises:
        LookupError: it is for another FPGA.
        ValueError: the file is damaged; the message says where.
    """
    reader = _Reader(data)
    bits, memories = np.zeros((frames, frame_bits), np.uint8), dict[int, bytearray]()
    for command, number, word in reader.commands():
        if command == _IDENTITY and word != identity:
            raise LookupError(f"{word:#010x}")
        if command == _FRAMES:
            if number != frames:
                raise ValueError(f"it has {number} frames instead of {frames}")
            size = (frame_bits + 7) // 8
            rows = np.frombuffer(b"".join(reader.checked(size, number, 1)), np.uint8).reshape(frames, size)
            bits[:] = np.unpackbits(rows[:, ::-1], axis=1, bitorder="little")[::-1, :frame_bits]
        if command == _WORDS:
            memory, first = word >> 11, word & (WORDS - 1)
            content = memories.setdefault(memory, bytearray(WORD * WORDS))
            rows = np.frombuffer(reader.block(WORD * number), np.uint8)
            whole = np.unpackbits(rows).reshape(-1, WORD)[:, ::-1].tobytes()
            content[WORD * first : WORD * first + len(whole)] = whole
    return bits, memories


class _Reader:
    """Bytes with their checksum (CRC-16, x^16 + x^15 + x^2 + 1)."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at, self._sum = data, data.find(_BEGIN) + len(_BEGIN), 0
        if self._at < len(_BEGIN):
            raise ValueError("it has no preamble")

    def commands(self) -> Iterator[tuple[int, int, int]]:
        """Yield each command, the number that stands in it, and its word, or that of the last address of a memory."""
        memory, identity = 0, None
        while self._at < len(self._data):
            if self._data[self._at] == _FILL:  # Not part of any checksum.
                self._at += 1
                continue
            command = self._take(1)[0]
            flags, number = self._take(1)[0], int.from_bytes(self._take(2), "big")
            word = int.from_bytes(self._take(4), "big") if command in _WITH_WORD else memory
            if command == _RESET:
                self._sum = 0
            elif command == _MEMORY:
                memory = word
            elif command == _IDENTITY:
                identity = word
            elif command in (_FRAMES, _WORDS):
                if identity is None:
                    raise ValueError("it names no FPGA")
            elif command not in (*_PLAIN, *_WITH_WORD):
                raise ValueError(f"byte {self._at - 4} is no command")
            yield command, number, word
            if command in (*_PLAIN, *_WITH_WORD) and flags & 0x80:
                self._check()

    def checked(self, size: int, count: int, fill: int) -> Iterator[bytes]:
        """Yield parts of the file, each with its checksum and fillers behind it."""
        for _ in range(count):
            yield self._take(size)
            self._check()
            self._take(fill)

    def block(self, size: int) -> bytes:
        """Return a part of the file with one checksum."""
        found = self._take(size)
        self._check()
        return found

    def _take(self, size: int) -> bytes:
        found = self._data[self._at : self._at + size]
        if len(found) < size:
            raise ValueError("it ends early")
        self._at += size
        table, total = _table(), self._sum
        for byte in found:
            total = (total << 8 & 0xFFFF) ^ table[total >> 8 ^ byte]
        self._sum = total
        return found

    def _check(self) -> None:
        wanted, found = self._sum, int.from_bytes(self._take(2), "big")
        if wanted != found:
            raise ValueError(f"the checksum before byte {self._at} is wrong")
        self._sum = 0


@cache
def _table() -> tuple[int, ...]:
    found = []
    for byte in range(256):
        total = byte << 8
        for _ in range(8):
            total = (total << 1 ^ (0x8005 if total & 0x8000 else 0)) & 0xFFFF
        found.append(total)
    return tuple(found)
