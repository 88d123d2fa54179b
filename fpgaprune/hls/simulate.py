"""The C simulation of a written project: compiled with g++, called through ctypes.

Needs neither hls4ml nor TensorFlow: only the project's folder and its `Design`.
"""

from __future__ import annotations

import ctypes
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpgaprune.design import Design
from fpgaprune.errors import DataError, ToolError
from fpgaprune.hls.backends import BACKENDS
from fpgaprune.processes import run_tool


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
        if not BACKENDS[design.backend].compiles:
            raise ToolError(
                f"the simulation of a project for {design.backend} needs the vendor's compiler, not g++: "
                f"run it with project.build(steps=['csim']) where that is installed"
            )
        if shutil.which("g++") is None:
            raise ToolError("g++ was not found on PATH; the C simulation needs it: install a C++ compiler")
        try:
            run = run_tool(["bash", "build_lib.sh"], folder, timeout_s, log_name="build_lib.log")
        except ToolError as error:
            raise ToolError(f"g++ did not compile the C simulation: {error}") from error
        library = _library(folder)
        if not library.exists():
            raise ToolError(f"g++ did not compile the C simulation of {folder}; what it said is in {run.log}")
        return cls(library, design)

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
