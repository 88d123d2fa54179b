"""Writes `.npz` files with the same bytes for the same arrays, and reads them without unpickling."""

from __future__ import annotations

import io
import math
import os
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpgaprune.errors import shown
from fpgaprune.files.documents import PARSER_ERRORS, in_a_line
from fpgaprune.files.whole_files import write_bytes

# All arrays together may take this many bytes, or this many times the size of the file. Masks of a large network are
# compressed to a thousandth, samples are not.
_MAX_BYTES, _MAX_GROWTH = 1 << 29, 50
# Kinds of plain numbers and text; Python objects, records and dates are refused.
_KINDS = "biufcSU"


def write_npz(path: str | os.PathLike[str], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write `arrays` to `path` as a compressed .npz, keys sorted, without timestamps.

    Raises:
        StorageError: the file cannot be written.
    """
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **{key: arrays[key] for key in sorted(arrays)})
    write_bytes(path, buffer.getvalue())


def read_npz(path: str | os.PathLike[str]) -> dict[str, NDArray[Any]]:
    """Return the arrays of an .npz file; nothing is unpickled.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is not a whole .npz of plain arrays, or its arrays would take far more memory than the file.
    """
    try:
        with open(path, "rb") as file:
            if file.read(6) == b"\x93NUMPY":
                raise ValueError("a single array, no archive of named ones; write it with numpy.savez")
            file.seek(0)
            with zipfile.ZipFile(file) as archive:
                return _arrays(archive, os.fstat(file.fileno()).st_size)
    except FileNotFoundError:
        raise
    except PARSER_ERRORS as error:
        raise ValueError(f"not a whole .npz: {in_a_line(error)}") from error


def _arrays(archive: zipfile.ZipFile, size: int) -> dict[str, NDArray[Any]]:
    members = archive.infolist()
    allowed = max(_MAX_BYTES, _MAX_GROWTH * size)
    total = sum(member.file_size for member in members)
    if total > allowed:
        raise ValueError(f"its arrays take {total:,} bytes in a file of {size:,}; wanted {allowed:,} at most")
    found: dict[str, NDArray[Any]] = {}
    for member in members:
        name = member.filename.removesuffix(".npy")
        if name in found:
            raise ValueError(f"it holds two arrays {shown(name)}")
        with archive.open(member) as stream:
            _check_header(name, stream, member.file_size)
        with archive.open(member) as stream:
            found[name] = np.lib.format.read_array(stream, allow_pickle=False)
            # zipfile compares the checksum at the end of the member.
            if stream.read():
                raise ValueError(f"array {shown(name)} is followed by other bytes")
    return found


def _check_header(name: str, stream: Any, size: int) -> None:
    version = np.lib.format.read_magic(stream)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"array {shown(name)} is of format {version}; wanted plain numbers")
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(stream)
    if dtype.hasobject or dtype.kind not in _KINDS:
        raise ValueError(f"array {shown(name)} holds {shown(dtype)}; wanted plain numbers, nothing is unpickled")
    wanted = math.prod(shape) * dtype.itemsize
    if any(axis < 0 for axis in shape) or stream.tell() + wanted != size:
        raise ValueError(
            f"array {shown(name)} has shape {shown(shape)} and {size - stream.tell():,} bytes; the shape takes "
            f"{min(wanted, 10**18):,}"
        )
