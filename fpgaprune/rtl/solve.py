"""Adders for constant matrices: made by the chosen solver, checked, and kept by content."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fpgaprune.documents import read_json
from fpgaprune.errors import RtlError, ToolError
from fpgaprune.files import write_bytes
from fpgaprune.rtl import da4ml_solver
from fpgaprune.rtl.adders import AdderGraph, share
from fpgaprune.rtl.options import Options

# Part of every key of the cache; raised when the solvers change what they make.
_FORMAT = 1


@dataclass
class AdderSolver:
    """Turns matrices into adders as `options` say.

    Attributes:
        options: the solver and its cache.
        notes: what a reader of the adders must know, of the runs since it was last emptied.
    """

    options: Options
    notes: list[str] = field(default_factory=list)

    def __call__(self, matrix: NDArray[np.int64], low: int, high: int) -> AdderGraph:
        """Adders that multiply integers from `low` to `high` by `matrix` (inputs, outputs).

        Raises:
            RtlError: the solver's answer is not that product.
            ToolError: the solver is missing or failed.
        """
        # Weights beyond what da4ml keeps exact, and matrices without any, need no search.
        method = self.options.adders if np.abs(matrix).max(initial=0) < 1 << 24 and matrix.any() else "plain"
        kept = self._kept(matrix, low, high, method)
        graph = _read(kept, matrix) if kept else None
        if graph is None:
            graph = self._solved(matrix, low, high, method)
            if not np.array_equal(graph.matrix(), matrix):
                raise RtlError(f"solver {method!r} gave adders of another matrix; report it, and use adders='plain'")
            if kept:
                write_bytes(kept, (json.dumps(graph.to_json()) + "\n").encode())
        return graph

    def _solved(self, matrix: NDArray[np.int64], low: int, high: int, method: str) -> AdderGraph:
        if method != "da4ml":
            return share(matrix, search=method == "shared")
        try:
            return da4ml_solver.solve(matrix, low, high, self.options.solver_seconds)
        except ToolError as error:
            if "longer than" not in str(error):
                raise
            self.notes.append(
                f"da4ml did not end within {self.options.solver_seconds:g} s: shared adders stand in, exact as well"
            )
            return share(matrix)

    def _kept(self, matrix: NDArray[np.int64], low: int, high: int, method: str) -> Path | None:
        if self.options.cache is None:
            return None
        head = json.dumps(
            [_FORMAT, method, da4ml_solver.version() if method == "da4ml" else "", matrix.shape, low, high]
        )
        content = head.encode() + np.ascontiguousarray(matrix, dtype="<i8").tobytes()
        return self.options.cache / f"{hashlib.sha256(content).hexdigest()}.json"


def _read(path: Path, matrix: NDArray[np.int64]) -> AdderGraph | None:
    """The graph kept at `path` if it is one of `matrix`."""
    try:
        graph = AdderGraph.from_json(read_json(path, RtlError, "a graph", "solve again"), matrix.shape[0])
        return graph if np.array_equal(graph.matrix(), matrix) else None
    except FileNotFoundError:
        return None
    except (RtlError, AttributeError, LookupError, OverflowError, TypeError, ValueError):
        return None
