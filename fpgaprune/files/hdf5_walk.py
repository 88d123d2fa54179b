"""Reads everything in an HDF5 file in a process of its own, because the library may loop or crash on damaged bytes.

It is started as `python -P hdf5_walk.py FILE` and imports nothing of fpgaprune. The exit status is 0 if the file is
whole; otherwise the last line of the error output says why.
"""

from __future__ import annotations

import resource
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np

# All datasets together may take this many bytes, or this many times the size of the file.
_MAX_BYTES, _MAX_GROWTH = 1 << 28, 50
_MAX_OBJECTS = 1_000_000
_DEEPEST = 100
# Processor time: a fixed part, and one second for each 16 MiB.
_SECONDS, _BYTES_A_SECOND = 5, 1 << 24


def walk(path: Path) -> None:
    """Check that every group, attribute and dataset can be read and lies in the file itself.

    Raises:
        ValueError: something refers to another file, or takes far more memory than the file has bytes.
        OSError: the file is damaged; h5py may also raise a Runtime-, Key-, Type- or ValueError then.
    """
    size = path.stat().st_size
    rest = max(_MAX_BYTES, _MAX_GROWTH * size)
    seen: set[Any] = set()
    with h5py.File(path, "r") as file:
        groups: list[tuple[Any, int]] = [(file, 0)]
        while groups:
            group, depth = groups.pop()
            place = h5py.h5o.get_info(group.id).addr
            if depth > _DEEPEST or place in seen or len(seen) > _MAX_OBJECTS:
                raise ValueError(f"group {group.name[:60]!r} holds itself, or is nested too deep")
            seen.add(place)
            _read_attributes(group)
            for name in group:
                if not isinstance(group.get(name, getlink=True), h5py.HardLink):
                    raise ValueError(f"{name[:60]!r} is a link to another place or file")
                entry = group[name]
                if isinstance(entry, h5py.Group):
                    groups.append((entry, depth + 1))
                elif isinstance(entry, h5py.Dataset):
                    rest -= _read_dataset(entry, rest)
                else:
                    raise ValueError(f"{name[:60]!r} is neither a group nor an array")


def _read_attributes(owner: Any) -> None:
    for name in owner.attrs:
        shape = owner.attrs.get_id(name).shape
        if int(np.prod(shape or (), dtype=object)) > _MAX_BYTES:
            raise ValueError(f"attribute {name[:60]!r} has shape {shape}")
        owner.attrs[name]


def _read_dataset(entry: Any, rest: int) -> int:
    """Read `entry` and return its bytes in memory, which may be `rest` at most."""
    properties = entry.id.get_create_plist()
    if entry.is_virtual or properties.get_external_count():
        raise ValueError(f"array {entry.name[:60]!r} lies in another file")
    taken = int(np.prod(entry.shape or (), dtype=object)) * entry.dtype.itemsize
    if taken > rest:
        raise ValueError(f"array {entry.name[:60]!r} takes {taken:,} bytes, more than its file can hold")
    _read_attributes(entry)
    entry[()]
    return int(taken)


if __name__ == "__main__":
    given = Path(sys.argv[1])
    memory = 2 * _MAX_BYTES + 4 * _MAX_GROWTH * given.stat().st_size + (1 << 31)
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    if most == resource.RLIM_INFINITY or memory <= most:
        resource.setrlimit(resource.RLIMIT_DATA, (memory, most))
    seconds = _SECONDS + given.stat().st_size // _BYTES_A_SECOND
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    walk(given)
