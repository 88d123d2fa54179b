"""Writes files whole or not at all, locks them for one process, and turns errors of the system into one line."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from fpgaprune.errors import FpgaPruneError, StorageError

_ELSEWHERE = "name another folder"
# The system's error number to what the user can do about it.
_ADVICE = {
    errno.ENOSPC: "the disk is full; free some space, or " + _ELSEWHERE,
    errno.EDQUOT: "your quota of disk space is used up; free some space, or " + _ELSEWHERE,
    errno.EFBIG: "the file is larger than this process may write; raise 'ulimit -f', or make the network smaller",
    errno.EROFS: "that place can only be read; " + _ELSEWHERE,
    errno.EACCES: "you may not do that there; change the permissions, or " + _ELSEWHERE,
    errno.EPERM: "you may not do that there; change the permissions, or " + _ELSEWHERE,
    errno.ENOTDIR: "a file stands where a folder is wanted; " + _ELSEWHERE,
    errno.EEXIST: "a file stands where a folder is wanted; " + _ELSEWHERE,
    errno.EISDIR: "a folder stands where a file is wanted; name another file",
    errno.ENAMETOOLONG: "the name is too long; choose a shorter one",
    errno.ENOENT: "it does not exist, or its folder is gone; make it, or name another",
    errno.EIO: "the disk reports an error; try another disk",
    errno.EMFILE: "too many files are open; raise 'ulimit -n'",
    errno.ENFILE: "too many files are open; try again later",
}
# These errors are always the storage's fault; for example, a missing file may be a mistake of the user.
_OF_STORAGE = frozenset(_ADVICE) - {errno.ENOENT, errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG}
_NO_TEMPORARY = "No usable temporary directory"


def storage_error(error: OSError, path: str | os.PathLike[str] | None = None, what: str = "written") -> StorageError:
    """Return a `StorageError` of one line that names the file or folder and says what to do.

    Args:
        error: the system's error.
        path: the file or folder, if `error` does not name it.
        what: what was to be done with it.
    """
    if _NO_TEMPORARY in str(error):
        found = StorageError(
            "nothing can be written to any folder for temporary files; free space, or name one with TMPDIR"
        )
    else:
        # When a file is copied, the second name is that of the file being written.
        named = [name for name in (error.filename2, error.filename) if isinstance(name, str | bytes | os.PathLike)]
        name = named[0] if named else path
        place = "a file" if name is None else os.fsdecode(name)
        text = (error.strerror or str(error) or type(error).__name__).splitlines()[0]
        advice = _ADVICE.get(error.errno or 0, "see whether the disk and the permissions are in order")
        found = StorageError(f"{place} cannot be {what}: {text}: {advice}")
    found.errno = error.errno
    return found


def is_storage_error(error: BaseException) -> bool:
    """Return whether `error` comes from the disk, its quota or permissions, and not from the code that wrote."""
    return isinstance(error, OSError) and (error.errno in _OF_STORAGE or _NO_TEMPORARY in str(error))


@contextlib.contextmanager
def storage(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn an `OSError` within the block into a `StorageError` about `path`."""
    try:
        yield
    except FpgaPruneError:
        raise
    except OSError as error:
        # The name of a draft would tell the user nothing.
        named = error.filename is not None and not str(error.filename).endswith((DRAFT, ".keras"))
        raise storage_error(error if named else OSError(error.errno, error.strerror or str(error)), path) from error


def make_folder(path: str | os.PathLike[str]) -> Path:
    """Make the folder `path` and its parents, if they are missing.

    Raises:
        StorageError: it cannot be made.
    """
    folder = Path(path)
    with storage(folder):
        folder.mkdir(parents=True, exist_ok=True)
    return folder


# A file is first written beside its place, under a name that begins with a dot and ends so; a killed process leaves it.
DRAFT = ".partial"


def write_bytes(path: str | os.PathLike[str], data: bytes) -> Path:
    """Write `data` to `path`; a reader, or a crash, sees the old file or the new one, never a part.

    Raises:
        StorageError: the file cannot be written; the old file stays.
    """
    target = Path(path)
    make_folder(target.parent)
    with storage(target):
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=DRAFT)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(name, 0o666 & ~_umask())
            os.replace(name, target)
        except BaseException:
            with contextlib.suppress(OSError):
                Path(name).unlink()
            raise
    return target


@contextlib.contextmanager
def whole_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Fill a draft of the folder `path` within the block; it gets its name at the end of the block.

    If the block raises, nothing is left. A killed process leaves the draft, whose name says so.

    Raises:
        StorageError: the folder cannot be made, or `path` exists.
    """
    target = Path(path)
    make_folder(target.parent)
    with storage(target):
        draft = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}.", suffix=DRAFT))
        try:
            yield draft
            draft.chmod(0o777 & ~_umask())
            draft.rename(target)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise


def is_draft(name: str) -> bool:
    """Return whether a killed process left the file or folder of this name unfinished."""
    return name.startswith(".") and name.endswith(DRAFT)


def digest_file(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of a file's bytes, in hex."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


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
