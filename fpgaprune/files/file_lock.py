"""`locked_file`: one process at a time; the lock ends with the process, however it ends."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from fpgaprune.files.whole_files import storage

# What the file of a lock begins with; the number of the process that holds it follows.
LOCK_OWNER = "process "
# Makes the error to raise if another process has the lock, from what that process wrote.
InUse = Callable[[str], Exception]


@contextmanager
def locked_file(path: Path, in_use: InUse | None = None) -> Iterator[None]:
    """Hold the lock of the file at `path`, which is made and stays, within the block; without `in_use`, wait for it."""
    with storage(path):
        handle = open(path, "a+")  # noqa: SIM115 - closed below, whatever the lock says
    with handle:
        _take(handle, fcntl.LOCK_EX, in_use)
        handle.truncate(0)
        handle.write(f"{LOCK_OWNER}{os.getpid()}")
        handle.flush()
        yield


def require_unlocked(path: Path, in_use: InUse) -> None:
    """Raise `in_use` if a process holds the lock of the file at `path`; nothing is written."""
    with suppress(FileNotFoundError), open(path) as handle:
        _take(handle, fcntl.LOCK_SH, in_use)


def _take(handle: TextIO, how: int, in_use: InUse | None) -> None:
    if in_use is None:
        fcntl.flock(handle, how)
        return
    try:
        fcntl.flock(handle, how | fcntl.LOCK_NB)
    except BlockingIOError as error:
        handle.seek(0)
        raise in_use(handle.read().strip() or "another process") from error
