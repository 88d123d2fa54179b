"""`bounded_memory` protects the machine from the huge sizes that a damaged file may declare."""

from __future__ import annotations

import contextlib
import resource
from collections.abc import Iterator
from pathlib import Path

_USED = "VmData:"


@contextlib.contextmanager
def bounded_memory(allowed: int) -> Iterator[None]:
    """Within the block, the process can take `allowed` more bytes at most; then it gets a `MemoryError`.

    TensorFlow raises a `ResourceExhaustedError` instead. Only Linux tells how much memory is used; on other systems
    nothing is bounded.
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
