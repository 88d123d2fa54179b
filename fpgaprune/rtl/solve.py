"""`Context` of the rules that write layers, with adders for constant matrices, solved, checked and kept by content."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fpgaprune.design import VerilogLayout
from fpgaprune.emulate import Step
from fpgaprune.errors import RtlError, ToolTimeoutError
from fpgaprune.files import read_json, write_bytes
from fpgaprune.rtl import da4ml_solver
from fpgaprune.rtl.adders import AdderGraph, share
from fpgaprune.rtl.chain import Chain
from fpgaprune.rtl.links import SerialTrees, Stream, Trees

# Part of every key of the cache; raised when the solvers change what they make, or the file its form.
_FORMAT = 3


@dataclass(frozen=True, slots=True)
class Solver:
    """Solver that turns a constant matrix into adders.

    Attributes:
        adders: as in `VerilogLayout`.
        cache: folder in which solved adders are kept by content; none unless given.
        seconds: wall-clock limit of one run of da4ml; `shared` stands in beyond it.
    """

    adders: str = "shared"
    cache: Path | None = None
    seconds: float = 600.0


@dataclass(frozen=True, slots=True)
class Solved:
    """Adders for a matrix.

    Attributes:
        graph: the adders.
        note: remarks on how they were made; empty if there are none.
    """

    graph: AdderGraph
    note: str = ""


def solve(matrix: NDArray[np.int64], low: int, high: int, solver: Solver) -> Solved:
    """Find adders that multiply integers from `low` to `high` by `matrix` (inputs, outputs), made by `solver`.

    They are kept in its cache, with their note.

    Raises:
        RtlError: the solver's answer is not that product.
        ToolError: the solver is missing or failed.
    """
    # da4ml is exact for smaller weights only, and a matrix of zeros needs no search.
    method = solver.adders if np.abs(matrix).max(initial=0) < 1 << 24 and matrix.any() else "plain"
    path = _path(matrix, low, high, method, solver.cache)
    kept = _read(path, matrix) if path else None
    if kept is not None:
        return kept
    solved = _solved(matrix, low, high, method, solver.seconds)
    if not np.array_equal(solved.graph.matrix(), matrix):
        raise RtlError(f"solver {method!r} gave adders of another matrix; report it, and use adders='plain'")
    if path:
        write_bytes(path, (json.dumps({**solved.graph.to_json(), "note": solved.note}) + "\n").encode())
    return solved


def _solved(matrix: NDArray[np.int64], low: int, high: int, method: str, seconds: float) -> Solved:
    if method != "da4ml":
        return Solved(_shared(np.ascontiguousarray(matrix, np.int64).tobytes(), matrix.shape, method == "shared"))
    try:
        return Solved(da4ml_solver.solve(matrix, low, high, seconds))
    except ToolTimeoutError:
        note = f"da4ml did not end within {seconds:g} s: shared adders stand in, exact as well"
        return Solved(share(matrix), note)


# A search for a layout plans the same matrices again for every interval.
@lru_cache(maxsize=32)
def _shared(content: bytes, shape: tuple[int, int], search: bool) -> AdderGraph:
    return share(np.frombuffer(content, np.int64).reshape(shape), search)


def _path(matrix: NDArray[np.int64], low: int, high: int, method: str, cache: Path | None) -> Path | None:
    """Return the file that keeps the answer; None where there is no cache."""
    if cache is None:
        return None
    version = da4ml_solver.version() if method == "da4ml" else ""
    head = json.dumps([_FORMAT, method, version, matrix.shape, low, high])
    content = head.encode() + np.ascontiguousarray(matrix, dtype="<i8").tobytes()
    return cache / f"{hashlib.sha256(content).hexdigest()}.json"


def _read(path: Path, matrix: NDArray[np.int64]) -> Solved | None:
    """Return the adders that the file `path` holds; None if there are none for `matrix`."""
    try:
        document = read_json(path, RtlError, "a graph", "solve again")
        solved = Solved(AdderGraph.from_json(document, matrix.shape[0]), str(document["note"]))
        return solved if np.array_equal(solved.graph.matrix(), matrix) else None
    except FileNotFoundError:
        return None
    except (RtlError, AttributeError, LookupError, OverflowError, TypeError, ValueError):
        return None


class Counter(Protocol):
    """Counter of the adders of weighted sums, for estimates that search for none."""

    def trees(self, matrix: NDArray[np.int64], stream: Stream) -> Trees:
        """Count adders that multiply each beat of `stream` by `matrix` (inputs, outputs) in one pipeline."""

    def serial(self, matrix: NDArray[np.int64], lane: tuple[int, bool, int, int], wanted: int | None) -> SerialTrees:
        """Count adders that multiply bit by bit; arguments as for `SerialSums.of`."""


@dataclass(frozen=True)
class Context:
    """One layer and how it is to be built.

    Attributes:
        step: the layer as the emulator sees it.
        layout: of the design.
        solver: makes the adders of the layer.
        beats: cycles that a layer may take for a sample without slowing the network down.
        tables: bits of the index of a small table, at most.
        counter: counts adders in place of `solver`; None where they are made.
        load_bits: bits of a beat of a load of weights; 0 where none can be loaded.
        notes: remarks on the adders that were made for the layer, each once.
    """

    step: Step
    layout: VerilogLayout
    solver: Solver
    beats: int
    tables: int
    counter: Counter | None = None
    load_bits: int = 0
    notes: list[str] = field(default_factory=list)

    def solve(self, matrix: NDArray[np.int64], low: int, high: int) -> AdderGraph:
        """Find adders that multiply integers from `low` to `high` by `matrix` (inputs, outputs).

        Raises:
            RtlError, ToolError: as in `fpgaprune.rtl.solve.solve`.
        """
        solved = solve(matrix, low, high, self.solver)
        if solved.note and solved.note not in self.notes:
            self.notes.append(solved.note)
        return solved.graph


Rule = Callable[[Context, Chain], None]
