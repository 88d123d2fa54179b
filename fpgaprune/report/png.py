"""A palette PNG from an array of small integers; equal arrays give equal bytes."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Colour = tuple[int, int, int, int]


def encode_png(states: NDArray[np.uint8], palette: Sequence[Colour]) -> bytes:
    """A PNG of `states` (H, W), each an index into `palette` (red, green, blue, alpha; at most 4 colours).

    Two bits a pixel; PNG specification (W3C, 3rd edition), sections 11.2 and 11.3.
    """
    height, width = states.shape
    padded = np.zeros((height, -(-width // 4) * 4), np.uint8)
    padded[:, :width] = states
    quads = padded.reshape(height, -1, 4)
    packed = (quads << np.array([6, 4, 2, 0], np.uint8)).sum(axis=2, dtype=np.uint8)
    # Each row starts with its filter; 0 leaves it as it is.
    rows = np.concatenate([np.zeros((height, 1), np.uint8), packed], axis=1).tobytes()
    return b"".join(
        (
            b"\x89PNG\r\n\x1a\n",
            _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 2, 3, 0, 0, 0)),
            _chunk(b"PLTE", bytes(part for colour in palette for part in colour[:3])),
            _chunk(b"tRNS", bytes(colour[3] for colour in palette)),
            _chunk(b"IDAT", zlib.compress(rows, 9)),
            _chunk(b"IEND", b""),
        )
    )


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
