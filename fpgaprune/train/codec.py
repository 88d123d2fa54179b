"""Masks and held values as JSON, so that the configuration of an optimizer holds its whole lock."""

from __future__ import annotations

import base64
import binascii
import math
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from fpgaprune.errors import LockError
from fpgaprune.values import Array, Mask


def encode_mask(mask: Mask) -> dict[str, Any]:
    """The shape and the compressed bits of `mask`, as JSON data."""
    return {"shape": list(mask.shape), "bits": _pack(np.packbits(mask).tobytes())}


def decode_mask(path: str, config: Mapping[str, Any]) -> Mask:
    """The mask that `encode_mask` wrote.

    Raises:
        LockError: the text is damaged.
    """
    shape = tuple(int(size) for size in config["shape"])
    count = math.prod(shape)
    packed = np.frombuffer(_unpack(path, config["bits"]), dtype=np.uint8)
    if packed.size != (count + 7) // 8:
        raise LockError(f"the saved mask for {path!r} has {packed.size} bytes; shape {shape} wants {(count + 7) // 8}")
    return np.unpackbits(packed, count=count).astype(bool).reshape(shape)


def encode_values(held: Array, mask: Mask) -> str:
    """The bits of the locked elements of `held`; free elements are left out."""
    return _pack(np.ascontiguousarray(held[~mask]).tobytes())


def decode_values(path: str, text: str, mask: Mask, dtype: Any) -> Array:
    """An array of the mask's shape: the locked elements that `encode_values` wrote, and zeros elsewhere.

    Raises:
        LockError: the text is damaged.
    """
    data = _unpack(path, text)
    held = np.zeros(mask.shape, dtype=dtype)
    wanted = int(np.count_nonzero(~mask)) * held.dtype.itemsize
    if len(data) != wanted:
        raise LockError(f"the saved values for {path!r} have {len(data)} bytes; its mask wants {wanted}")
    held[~mask] = np.frombuffer(data, dtype=held.dtype)
    return held


def _pack(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data, 6)).decode("ascii")


def _unpack(path: str, text: str) -> bytes:
    try:
        return zlib.decompress(base64.b64decode(text, validate=True))
    except (binascii.Error, zlib.error, ValueError) as error:
        raise LockError(f"the saved lock of {path!r} is damaged: {error}; lock the model again with fp.lock") from error
