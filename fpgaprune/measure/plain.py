"""`to_plain` and `from_plain`: results as JSON data, and back."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import msgspec

from fpgaprune.errors import ReportError
from fpgaprune.measure.stage import Stage

Result = TypeVar("Result")


def to_plain(result: Any) -> Any:
    """`result` as JSON data: an object is a mapping of its fields, a stage or a path is its text."""
    return msgspec.json.decode(msgspec.json.encode(result, enc_hook=_as_text))


def from_plain(data: Any, kind: type[Result], what: str) -> Result:
    """The object of `kind` that `data`, the JSON form of `what`, describes; unknown keys are ignored.

    Raises:
        ReportError: a field is missing or malformed.
    """
    try:
        return msgspec.convert(data, kind, dec_hook=_from_text)
    except msgspec.ValidationError as error:
        raise ReportError(f"{what} is not what fpgaprune wrote: {error}; make it anew") from error


def _as_text(value: Any) -> str:
    if isinstance(value, Stage | Path):
        return str(value)
    raise TypeError(f"a {type(value).__name__} has no JSON form")


def _from_text(kind: type[Any], text: Any) -> Any:
    return kind(text)
