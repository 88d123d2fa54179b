"""The C simulation of a written project: compiled with g++, called through ctypes.

Needs neither hls4ml nor TensorFlow: only the project's folder and its `Design`.
"""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpgaprune.design import Design
from fpgaprune.errors import DataError, ToolError


@dataclass(frozen=True)
class CSimulation:
    """A compiled project; `predict` gives what the hardware gives, bit for bit.

    Attributes:
        library: the shared object.
        design: what it computes.
    """

    library: Path
    design: Design

    @classmethod
    def build(cls, folder: Path, design: Design, timeout_s: float = 900.0) -> CSimulation:
        """The project in `folder` is compiled.

        Raises:
            ToolError: g++ is missing, fails or takes longer than `timeout_s`.
        """
        if shutil.which("g++") is None:
            raise ToolError("g++ was not found on PATH; the C simulation needs it: install a C++ compiler")
        process = subprocess.Popen(
            ["bash", "build_lib.sh"],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        try:
            log, _ = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired as error:
            raise ToolError(f"g++ ran longer than {timeout_s:.0f} s on {folder} and was stopped") from error
        finally:
            if process.poll() is None:
                # The script's own children would go on compiling.
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        if process.returncode:
            last = log.strip().splitlines()[-1] if log.strip() else "no output"
            raise ToolError(f"g++ failed on {folder} with exit status {process.returncode}: {last}")
        return cls(_library(folder), design)

    @classmethod
    def open_or_build(cls, folder: Path, design: Design) -> CSimulation:
        """The project's C simulation, compiled only where that has not been done."""
        library = _library(folder)
        return cls(library, design) if library.exists() else cls.build(folder, design)

    def predict(self, x: NDArray[Any] | Sequence[NDArray[Any]]) -> Any:
        """float32 outputs (N, ...) for inputs `x` (N, ...); a tuple of them where the design has several.

        Args:
            x: samples, or one array of them for each input of the design.

        Raises:
            DataError: `x` does not fit the design's inputs.
        """
        arrays: list[NDArray[Any]] = list(x) if isinstance(x, list | tuple) else [np.asarray(x)]
        shapes = [layer.output_shape for layer in self.design.layers if layer.kind == "Input"]
        if [array.shape[1:] for array in arrays] != shapes:
            got = ", ".join(str(array.shape[1:]) for array in arrays)
            wanted = ", ".join(map(str, shapes))
            raise DataError(f"samples have shape {got}; design {self.design.name!r} takes {wanted}")
        samples = [np.ascontiguousarray(array, dtype=np.float32) for array in arrays]
        count = len(samples[0])
        if any(len(array) != count for array in samples):
            raise DataError(f"the inputs have {[len(array) for array in samples]} samples; wanted as many of each")
        results = tuple(
            np.zeros((count, *self.design[name].output_shape), dtype=np.float32) for name in self.design.outputs
        )
        pointer = np.ctypeslib.ndpointer(dtype=np.float32, flags="C_CONTIGUOUS")
        run = getattr(ctypes.CDLL(str(self.library)), f"{self.design.name}_float")
        run.argtypes = [pointer] * (len(samples) + len(results))
        run.restype = None
        for place in range(count):
            run(*(array[place] for array in (*samples, *results)))
        return results[0] if len(results) == 1 else results


def _library(folder: Path) -> Path:
    script = (folder / "build_lib.sh").read_text()
    settings = dict(re.findall(r"^(PROJECT|LIB_STAMP)=(\w+)$", script, flags=re.MULTILINE))
    return (folder / "firmware" / f"{settings['PROJECT']}-{settings['LIB_STAMP']}.so").resolve()
