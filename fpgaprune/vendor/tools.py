"""Vendor tools: the list of them, and how they are found and run."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from fpgaprune import processes
from fpgaprune.processes import ToolRun, find_tool

# Tool -> its product, and what makes the tool visible to a shell.
TOOLS: Mapping[str, tuple[str, str]] = {
    "vitis-run": ("AMD Vitis 2023.2 or newer", "source settings64.sh of Vitis"),
    "vitis_hls": ("AMD Vitis HLS", "source settings64.sh of Vitis_HLS"),
    "vivado_hls": ("AMD Vivado HLS, up to 2020.1", "source settings64.sh of Vivado"),
    "vivado": ("AMD Vivado", "source settings64.sh of Vivado"),
    "quartus_sh": ("Intel Quartus", "add its bin folder to PATH"),
    "catapult": ("Siemens Catapult", "add $MGC_HOME/bin to PATH"),
    "icpx": ("the oneAPI compiler", "source setvars.sh of oneAPI"),
    "shls": ("Microchip SmartHLS", "add its bin folder to PATH"),
}


def find_tools() -> dict[str, Path]:
    """Return a dict: name -> path of every known vendor tool on this machine.

    Raises:
        ToolError: as for `find_tool`.
    """
    found = {name: find_tool(name) for name in TOOLS}
    return {name: path for name, path in found.items() if path is not None}


def run_tool(
    command: Sequence[str],
    folder: str | os.PathLike[str],
    timeout_s: float,
    on_line: Callable[[str], None] | None = None,
) -> ToolRun:
    """Run as `processes.run_tool`; a missing tool's message names its product and how to make it visible."""
    name = Path(command[0]).name if command else ""
    product, advice = TOOLS.get(name, ("no tool known here", "add its folder to PATH"))
    return processes.run_tool(command, folder, timeout_s, on_line, product=product, advice=advice)
