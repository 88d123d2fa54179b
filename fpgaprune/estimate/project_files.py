"""Reads the files of an hls4ml project folder: the top function, the settings in the build scripts, the weights."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpgaprune.errors import EstimateError, FirmwareError
from fpgaprune.files import parse_numbers, read_weight_array


def read_numbers(folder: Path, name: str) -> NDArray[np.float64]:
    """The numbers of weight `name`, from its text file or its header file."""
    text = folder / f"{name}.txt"
    try:
        if text.is_file():
            return parse_numbers(read_text(text), text)
        return read_weight_array(folder / f"{name}.h").values
    except FirmwareError as error:
        raise EstimateError(str(error)) from error


def find_top_file(home: Path) -> Path:
    """The C++ file that calls the layers."""
    for candidate in sorted(home.glob("*.cpp")):
        if re.search(r"nnet::\w+\s*<", read_text(candidate)) and "_bridge" not in candidate.stem:
            return candidate
    raise EstimateError(f"no top function (a .cpp that calls nnet:: layers) in {home}; wanted an hls4ml project folder")


def read_settings(root: Path) -> dict[str, Any]:
    """Part, clock period and backend; each hls4ml release states them in other files."""
    texts = [read_text(p) for n in ("project.tcl", "build_prj.tcl", "hls4ml_config.yml") if (p := root / n).is_file()]
    text = "\n".join(texts)

    def first(*patterns: str) -> str | None:
        for pattern in patterns:
            found = re.search(pattern, text, re.MULTILINE)
            if found:
                return found[1]
        return None

    part = first(r'set part "([^"]+)"', r"set_part\s+\{?([\w-]+)", r"^\s*(?:Xilinx)?Part:\s*(\S+)")
    clock = first(r"set clock_period (\d[\d.]*)", r"create_clock -period (\d[\d.]*)", r"^\s*ClockPeriod:\s*(\d[\d.]*)")
    backend = first(r'set backend "(\w+)"', r"^\s*Backend:\s*(\w+)") or "Vivado"
    names = {"vivado": "Vivado", "vitis": "Vitis", "vivadoaccelerator": "VivadoAccelerator"}
    return {"part": part, "clock_ns": float(clock or 5.0), "backend": names.get(backend.lower(), backend)}


def read_text(path: Path) -> str:
    """The text of `path`.

    Raises:
        EstimateError: the file cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise EstimateError(f"project file {path} cannot be read: {error.strerror}") from error
