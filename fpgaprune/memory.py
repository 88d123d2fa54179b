"""`bounded_memory`: sizes that a file merely declares do not fill the machine."""

from __future__ import annotations

import contextlib
import resource
from collections.abc import Iterator
from pathlib import Path

_USED = "VmData:"


@contextlib.contextmanager
def bounded_memory(allowed: int) -> Iterator[None]:
    """This process takes `allowed` bytes more than now at most; beyond, whoever asks gets a `MemoryError`.

    TensorFlow raises its own error (`ResourceExhaustedError`) there. Where the system keeps no such account (it is
    Linux's), nothing is bounded.
    """
    used = _used_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    known = [limit for limit in (soft, hard) if limit != resource.RLIM_INFINITY]
    if used is None:
        yield
        return
    resource.setrlimit(resource.RLIMIT_DATA, (min(used + allowed, *known), hard) if known else (used + allowed, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _used_bytes() -> int | None:
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(_USED)), None)
