"""`Fields`: reads the fields of a row, and refuses one of a wrong type or range."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fpgaprune.errors import EstimateError
from fpgaprune.estimate.features import Port

# The widest `ap_fixed` of Vivado and Vitis HLS (default of AP_INT_MAX_W).
MAX_WIDTH = 1024
# No count of an FPGA design is larger.
_MOST = 1 << 40


class Fields:
    """One JSON object of a row; `where` names it in messages. None counts as absent."""

    __slots__ = ("data", "where")

    def __init__(self, data: object, where: str) -> None:
        if not isinstance(data, Mapping):
            raise EstimateError(f"{where} is {type(data).__name__}; wanted an object")
        self.data = data
        self.where = where

    def _refuse(self, key: str, wanted: str) -> EstimateError:
        return EstimateError(f"{self.where} has {key} {self.data.get(key)!r:.60}; wanted {wanted}")

    def text(self, key: str, otherwise: str | None = None) -> str:
        """Return the text under `key`; if it is absent, `otherwise`, unless that is None."""
        value = self.data.get(key)
        if value is None and otherwise is not None:
            return otherwise
        if not isinstance(value, str) or (not value and otherwise is None):
            raise self._refuse(key, "a text")
        return value

    def choice(self, key: str, allowed: tuple[str, ...]) -> str | None:
        """Return the text under `key`, one of `allowed`; None if it is absent."""
        value = self.data.get(key)
        if value is not None and value not in allowed:
            raise self._refuse(key, f"one of {', '.join(allowed)}")
        return value

    def count(self, key: str, otherwise: int | None = None, *, low: int = 1, high: int = _MOST) -> int:
        """Return the whole number under `key`; if it is absent, `otherwise`, unless that is None."""
        value = self.data.get(key)
        if value is None and otherwise is not None:
            return otherwise
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise self._refuse(key, f"a whole number from {low} on" if high == _MOST else f"{low} to {high}")
        return value

    def maybe_count(self, *keys: str) -> int | None:
        """Return the whole number, 1 or more, under the first of `keys` that is present; None if none is."""
        key = next((k for k in keys if self.data.get(k) is not None), None)
        return None if key is None else self.count(key)

    def number(self, key: str, low: float, high: float) -> float:
        """Return the number from `low` to `high` under `key`."""
        value = self.data.get(key)
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            raise self._refuse(key, f"a number from {low} to {high}")
        return float(value)

    def mapping(self, key: str) -> Mapping[str, Any]:
        """Return the object under `key`; empty if it is absent."""
        value = self.data.get(key)
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            raise self._refuse(key, "an object")
        return value

    def sizes(self, key: str) -> tuple[int, ...]:
        """Return the whole numbers under `key` without the unknown ones (None); empty if it is absent."""
        value = self.data.get(key)
        if value is None:
            return ()
        if not isinstance(value, list):
            raise self._refuse(key, "a list of whole numbers")
        known = [v for v in value if v is not None]
        if any(isinstance(v, bool) or not isinstance(v, int) or not 1 <= v <= _MOST for v in known):
            raise self._refuse(key, "whole numbers from 1 on")
        return tuple(known)

    def port(self, key: str, otherwise: Port) -> Port:
        """Read the format under `key`, as `{"W": 16, "I": 6, "str": "ap_fixed<16,6>"}`; if absent, `otherwise`."""
        value = self.mapping(key)
        if value.get("W") is None:
            return otherwise
        bits, integer = value["W"], value.get("I")
        if isinstance(bits, bool) or not isinstance(bits, int) or not 1 <= bits <= MAX_WIDTH:
            raise EstimateError(f"{self.where} has a {key} of {bits!r:.20} bits; wanted 1 to {MAX_WIDTH}")
        if integer is not None and (isinstance(integer, bool) or not isinstance(integer, int) or abs(integer) > 1024):
            raise EstimateError(f"{self.where} has a {key} of {integer!r:.20} integer bits; wanted a whole number")
        text = str(value.get("str", "")).upper()
        return Port(bits, "RND" in text, "SAT" in text, integer)
