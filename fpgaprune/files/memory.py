"""How much memory is free, and a bound on it.

`bounded_memory` protects the machine from the huge sizes that a damaged file may declare.
"""

from __future__ import annotations

import contextlib
import resource
from collections.abc import Iterator
from pathlib import Path

_USED, _AVAILABLE = "VmData:", "MemAvailable:"
# Free memory where no file says it.
_ASSUMED = 4 << 30


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


def available_bytes() -> int:
    """Memory that this machine can still give; 4 GiB where it does not say."""
    found = _stated_bytes(Path("/proc/meminfo"), _AVAILABLE)
    return _ASSUMED if found is None else found


def _used_bytes() -> int | None:
    return _stated_bytes(Path("/proc/self/status"), _USED)


def _stated_bytes(path: Path, name: str) -> int | None:
    """The number that Linux states after `name`, in bytes; None if there is none."""
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(name)), None)
