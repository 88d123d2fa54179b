"""Records: results of tools, kept as JSON in files or folders that are named after everything that made them."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TypeVar

import msgspec

from fpgaprune.errors import RtlError
from fpgaprune.files import read_json, write_bytes
from fpgaprune.measure import to_plain

Record = TypeVar("Record")


def digest_of(*parts: object) -> str:
    """Return sixteen hex digits over `parts`, which are JSON data."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def write_record(path: Path, record: object) -> None:
    """Write `record` to `path` as JSON; equal records give equal bytes."""
    write_bytes(path, (json.dumps(to_plain(record), indent=1, sort_keys=True) + "\n").encode())


def read_record(path: Path, kind: type[Record], what: str, advice: str) -> Record:
    """Return the object of `kind` in the JSON file at `path`; keys that `kind` does not know are ignored.

    Args:
        path: the file.
        kind: the class of the object.
        what: what the file should be, as `a report of nextpnr`.
        advice: what to do if it is something else.

    Raises:
        RtlError: the file is something else.
        FileNotFoundError: the file does not exist.
    """
    document = read_json(path, RtlError, what, advice, strict=False)
    try:
        return msgspec.convert(document, kind)
    except msgspec.ValidationError as error:
        raise RtlError(f"{path} is not {what}: {error}; {advice}") from error
