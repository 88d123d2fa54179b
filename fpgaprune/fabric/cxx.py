"""The C++ compiler, and the user's cache for what is compiled once for all projects."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from fpgaprune.errors import ToolError
from fpgaprune.files import make_folder
from fpgaprune.processes import find_tool, run_tool


def find_compiler() -> str:
    """Return the path of g++ or, where it is missing, of clang++.

    Raises:
        ToolError: both are missing.
    """
    for name in ("g++", "clang++"):
        found = find_tool(name)
        if found is not None:
            return str(found)
    raise ToolError("a C++ compiler (g++ or clang++) was not found: install one, such as Debian's package g++")


def compile_to(target: Path, arguments: Sequence[str], folder: Path, timeout_s: float) -> None:
    """Make `target` with the C++ compiler and `arguments`, run in `folder`.

    Another process may compile the same file: the target gets its name once it is whole.

    Raises:
        ToolError: the compiler is missing, failed or ran too long.
    """
    partial = target.resolve().with_name(f".{target.name}.{os.getpid()}")
    log = f"{partial.name}.log"
    run_tool([find_compiler(), *arguments, "-o", str(partial)], folder, timeout_s, log_name=log, product="C++")
    partial.replace(target)
    (folder / log).unlink(missing_ok=True)


def compiled_folder(name: str) -> Path:
    """Return the folder `name` in the user's cache: `FPGAPRUNE_CACHE`, or else the one of her system."""
    home = os.environ.get("FPGAPRUNE_CACHE") or os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return make_folder(Path(home) / "fpgaprune" / name)
