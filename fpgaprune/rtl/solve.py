"""Adders for constant matrices: made by the chosen solver, checked, and kept by content."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fpgaprune.documents import read_json
from fpgaprune.errors import RtlError, ToolTimeoutError
from fpgaprune.files import write_bytes
from fpgaprune.rtl import da4ml_solver
from fpgaprune.rtl.adders import AdderGraph, share
from fpgaprune.rtl.options import Options

# Part of every key of the cache; raised when the solvers change what they make, or the file its form.
_FORMAT = 3


@dataclass(frozen=True, slots=True)
class Solved:
    """Adders for a matrix.

    Attributes:
        graph: the adders.
        note: what a reader of them must know of how they were made; empty if nothing.
    """

    graph: AdderGraph
    note: str = ""


def solve(matrix: NDArray[np.int64], low: int, high: int, options: Options) -> Solved:
    """Adders that multiply integers from `low` to `high` by `matrix` (inputs, outputs), as `options` say.

    They are kept in the options' cache, with their note.

    Raises:
        RtlError: the solver's answer is not that product.
        ToolError: the solver is missing or failed.
    """
    # Weights beyond what da4ml keeps exact, and matrices without any, need no search.
    method = options.adders if np.abs(matrix).max(initial=0) < 1 << 24 and matrix.any() else "plain"
    path = _path(matrix, low, high, method, options)
    kept = _read(path, matrix) if path else None
    if kept is not None:
        return kept
    solved = _solved(matrix, low, high, method, options.solver_seconds)
    if not np.array_equal(solved.graph.matrix(), matrix):
        raise RtlError(f"solver {method!r} gave adders of another matrix; report it, and use adders='plain'")
    if path:
        write_bytes(path, (json.dumps({**solved.graph.to_json(), "note": solved.note}) + "\n").encode())
    return solved


def _solved(matrix: NDArray[np.int64], low: int, high: int, method: str, seconds: float) -> Solved:
    if method != "da4ml":
        return Solved(share(matrix, search=method == "shared"))
    try:
        return Solved(da4ml_solver.solve(matrix, low, high, seconds))
    except ToolTimeoutError:
        note = f"da4ml did not end within {seconds:g} s: shared adders stand in, exact as well"
        return Solved(share(matrix), note)


def _path(matrix: NDArray[np.int64], low: int, high: int, method: str, options: Options) -> Path | None:
    """The file that keeps the answer; None where there is no cache."""
    if options.cache is None:
        return None
    version = da4ml_solver.version() if method == "da4ml" else ""
    head = json.dumps([_FORMAT, method, version, matrix.shape, low, high])
    content = head.encode() + np.ascontiguousarray(matrix, dtype="<i8").tobytes()
    return options.cache / f"{hashlib.sha256(content).hexdigest()}.json"


def _read(path: Path, matrix: NDArray[np.int64]) -> Solved | None:
    """What is kept at `path` if it is a graph of `matrix`."""
    try:
        document = read_json(path, RtlError, "a graph", "solve again")
        solved = Solved(AdderGraph.from_json(document, matrix.shape[0]), str(document["note"]))
        return solved if np.array_equal(solved.graph.matrix(), matrix) else None
    except FileNotFoundError:
        return None
    except (RtlError, AttributeError, LookupError, OverflowError, TypeError, ValueError):
        return None
