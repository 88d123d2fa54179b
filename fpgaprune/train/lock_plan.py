"""`Plan`: a lock, its masks and held values, as data and as JSON."""

from __future__ import annotations

import base64
import binascii
import math
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from fpgaprune.errors import LockError
from fpgaprune.train.hold import Hold
from fpgaprune.train.values import Values, held_values, read
from fpgaprune.values import Array, Mask, MaskSet


def encode_mask(mask: Mask) -> dict[str, Any]:
    """Return the shape and the compressed bits of `mask`, as JSON data."""
    return {"shape": list(mask.shape), "bits": _pack(np.packbits(mask).tobytes())}


def decode_mask(path: str, config: Mapping[str, Any]) -> Mask:
    """Return the mask that `encode_mask` wrote.

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
    """Return the bits of the locked elements of `held`; free elements are left out."""
    return _pack(np.ascontiguousarray(held[~mask]).tobytes())


def decode_values(path: str, text: str, mask: Mask, dtype: Any) -> Array:
    """Return an array of the mask's shape: the locked elements that `encode_values` wrote, and zeros elsewhere.

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


class Plan:
    """A lock as data: its masks and values, and after `build` the variables that hold it."""

    def __init__(self, masks: MaskSet, values: Values, weights: Mapping[str, object]) -> None:
        """Make a lock that holds nothing yet; `weights` may be empty if the model is unknown."""
        self.masks = masks
        self.weights = weights
        self.zero = isinstance(values, str) and values == "zero"
        self.holds: tuple[Hold, ...] = ()
        self.positions: dict[str, int] = {}
        self._values: Values = values
        self._encoded: dict[str, str] = {}

    def arrays(self, weights: Mapping[str, object]) -> dict[str, Any]:
        """Map weight path to the array with the values of its locked elements."""
        if self._encoded:
            return {
                path: decode_values(path, text, self.masks[path], read(weights[path]).dtype)
                for path, text in self._encoded.items()
            }
        return held_values(self._values, self.masks, weights)

    def encode(self) -> dict[str, Any]:
        """Return the current lock as JSON data.

        Raises:
            LockError: arrays of values were given and the lock was not built yet.
        """
        masks = {hold.path: read(hold.mask) for hold in self.holds} or dict(self.masks)
        values: str | dict[str, str] = self._encoded
        if self.holds and not self.zero:
            values = {hold.path: encode_values(held_array(hold), masks[hold.path]) for hold in self.holds}
        elif isinstance(self._values, str) and not self._encoded:
            values = self._values
        elif not self._encoded:
            raise LockError("this lock holds values that were given and is not built; build the optimizer to save it")
        return {
            "masks": {path: encode_mask(mask) for path, mask in masks.items()},
            "values": values,
            "positions": self.positions,
        }

    def decode(self, config: Mapping[str, Any]) -> None:
        """Take values and positions from what `encode` wrote; the masks are known already."""
        self.positions = {path: int(at) for path, at in config["positions"].items()}
        values = config["values"]
        self.zero = values == "zero"
        if isinstance(values, str):
            self._values = "zero" if self.zero else "current"
        else:
            self._encoded = dict(values)


def held_array(hold: Hold) -> Any:
    """Return an array of the weight's shape with the held values of its locked elements."""
    return np.zeros_like(read(hold.variable)) if hold.value is None else read(hold.value)


def settle(hold: Hold, mask: Any, array: Any) -> None:
    """Set the weight to `array` where `mask` is False."""
    current = read(hold.variable)
    current[~mask] = array[~mask]
    hold.variable.assign(current)
