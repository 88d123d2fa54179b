"""Files that appear whole or not at all, with the same bytes for the same content."""

from __future__ import annotations

import hashlib
import io
import os
import tempfile
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

# What is being written stands beside its place under a name that begins with a dot and ends so; a kill leaves it.
DRAFT = ".partial"


def write_bytes(path: str | os.PathLike[str], data: bytes) -> Path:
    """`path` holds exactly `data`; a reader, or a crash, sees the old file or the new one, never a part."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=DRAFT)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return target


def write_npz(path: str | os.PathLike[str], arrays: Mapping[str, NDArray[Any]]) -> Path:
    """`path` is a compressed .npz of `arrays`, keys sorted, without timestamps."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **{key: arrays[key] for key in sorted(arrays)})
    return write_bytes(path, buffer.getvalue())


def read_npz(path: str | os.PathLike[str]) -> dict[str, NDArray[Any]]:
    """The arrays of an .npz file; nothing in it is ever unpickled.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is no whole .npz of plain arrays.
    """
    try:
        archive = np.load(path, allow_pickle=False)
        if isinstance(archive, np.ndarray):
            raise ValueError("a single array, no archive of named ones")
        with archive:
            return {key: archive[key] for key in archive.files}
    except FileNotFoundError:
        raise
    except (EOFError, OSError, zipfile.BadZipFile, zlib.error, KeyError) as error:
        raise ValueError(f"not a whole .npz: {error}") from error


def is_draft(name: str) -> bool:
    """Whether a file or folder of this name is what a kill left of something that was being written."""
    return name.startswith(".") and name.endswith(DRAFT)


def digest_file(path: str | os.PathLike[str]) -> str:
    """SHA-256 of a file's bytes, in hex."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
