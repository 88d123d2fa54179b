"""The beats of a stream as bytes: what goes into a simulator, over a serial line, and comes back."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fpgaprune.emulate import raw_of_real
from fpgaprune.errors import DataError
from fpgaprune.rtl import RtlPort
from fpgaprune.values import real_array


def raw_samples(port: RtlPort, x: object) -> NDArray[np.int64]:
    """Return samples `x` (N, ...) as raw integers of the type of `port`; they pass through float32, as in `emulate`.

    Raises:
        DataError: the samples have another shape than `port`, or there are none.
    """
    values = real_array(x, f"samples for {port.prefix}").astype(np.float32, copy=False)
    if values.shape[1:] != port.shape:
        raise DataError(f"samples for {port.prefix} have shape {values.shape[1:]}; wanted {port.shape}")
    if len(values) == 0:
        raise DataError(f"there are no samples for {port.prefix}; wanted at least one")
    return raw_of_real(values.astype(np.float64), port.type)


def beat_bytes(port: RtlPort) -> int:
    """Return the whole bytes of one beat of `port`."""
    return (port.width_bits + 7) // 8


def pack_beats(port: RtlPort, raw: NDArray[np.int64], size: int) -> bytes:
    """Return all beats of `raw` (N, ...), each in `size` bytes, the lowest first."""
    width = port.type.width
    values = raw.reshape(-1, port.lanes)
    bits = (values[:, :, None].view(np.uint64) >> np.arange(width, dtype=np.uint64)) & np.uint64(1)
    flat = bits.reshape(len(values), -1).astype(np.uint8)
    padded = np.zeros((len(values), 8 * size), np.uint8)
    padded[:, : flat.shape[1]] = flat
    return np.packbits(padded, axis=1, bitorder="little").tobytes()


def unpack_beats(port: RtlPort, data: bytes, size: int) -> NDArray[np.int64]:
    """Return the raw integers (N, ...) in `data`, whose beats take `size` bytes each, the lowest first."""
    width = port.type.width
    rows = np.frombuffer(data, np.uint8).reshape(-1, size)
    bits = np.unpackbits(rows, axis=1, bitorder="little")[:, : port.width_bits].reshape(len(rows), port.lanes, width)
    powers = np.uint64(1) << np.arange(width, dtype=np.uint64)
    raw = (bits.astype(np.uint64) * powers).sum(axis=2, dtype=np.uint64).view(np.int64)
    if port.type.signed and width < 64:
        raw = (raw << (64 - width)) >> (64 - width)
    return np.asarray(raw.reshape(-1, *port.shape), np.int64)
