"""The folder of a search: what lies in it, and one search at a time."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fpgaprune.errors import RunError
from fpgaprune.files import make_folder, storage
from fpgaprune.fit.finalists import BEST

FRONT, SAMPLES, TRIALS, JOURNAL = "front.json", "held_back.npz", "trials", "search.journal"
_OWN = {FRONT, SAMPLES, TRIALS, BEST, JOURNAL, "model.keras", "data.npz", "report.html"}


def require_own(folder: Path) -> None:
    """`folder` is new, empty or an earlier search's.

    Raises:
        RunError: it is not.
    """
    if folder.exists() and not folder.is_dir():
        raise RunError(f"{folder} is a file; name a folder for the search")
    names = {entry.name for entry in folder.iterdir()} if folder.is_dir() else set()
    if others := sorted(name for name in names - _OWN if not name.startswith(".")):
        raise RunError(f"{folder} holds {others[0]!r}, which is of no search; name an empty or new folder")


@contextmanager
def used_alone(folder: Path) -> Iterator[None]:
    """Within the block no other process searches in `folder`; the lock ends with the process in any case.

    Raises:
        RunError: another process does.
    """
    path = make_folder(folder) / ".lock"
    with storage(path), open(path, "a+") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            handle.seek(0)
            owner = handle.read().strip() or "another search"
            raise RunError(f"{folder} is in use by {owner}; wait for it, or name another --out") from None
        handle.truncate(0)
        handle.write(f"process {os.getpid()}")
        handle.flush()
        yield
