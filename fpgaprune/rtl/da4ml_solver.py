"""The solver of da4ml, in a process of its own that can be stopped.

Source: da4ml 0.5, `da4ml.cmvm`: the answer is two matrices, one applied after the other, each a list of additions.
The first use on a machine takes minutes, because da4ml compiles then.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpgaprune.errors import ToolError
from fpgaprune.files import read_json
from fpgaprune.processes import run_tool
from fpgaprune.rtl.adders import AdderGraph, Exit, Sum


def version() -> str:
    """Return the installed version of da4ml.

    Raises:
        ToolError: it is not installed; the message says how to install it.
    """
    try:
        return importlib.metadata.version("da4ml")
    except importlib.metadata.PackageNotFoundError:
        raise ToolError(
            "da4ml was not found: pip install 'fpgaprune[rtl]', or use adders='shared', which needs nothing"
        ) from None


def solve(matrix: NDArray[np.int64], low: int, high: int, seconds: float) -> AdderGraph:
    """Make da4ml's adders for `matrix` (inputs, outputs).

    Raises:
        ToolError: da4ml is missing, failed, or ran longer than `seconds`.
    """
    version()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        np.savez(place / "task.npz", matrix=matrix, low=low, high=high)
        run_tool([sys.executable, "-m", __name__, "task.npz", "answer.json"], place, seconds, product="Python")
        answer = read_json(place / "answer.json", ToolError, "an answer of da4ml", "try again", strict=False)
    return _graph(answer, matrix.shape[0])


def _graph(stages: list[dict[str, Any]], inputs: int) -> AdderGraph:
    """Return the adders of both matrices in one list; each value is its node times a power of two."""
    sums: list[Sum] = []
    values: list[tuple[int, int, bool]] = [(place, 0, False) for place in range(inputs)]
    for stage in stages:
        nodes: list[tuple[int, int]] = []
        for a, b, opcode, data in stage["ops"]:
            if opcode == -1:
                node, exponent, negate = values[a]
                if negate:
                    sums.append(Sum(-1, 0, node, 0, True))
                    node = inputs + len(sums) - 1
                    values[a] = (node, exponent, False)
                nodes.append((node, exponent + stage["inp_shifts"][a]))
                continue
            (one, x), (two, y) = nodes[a], nodes[b]
            y += data
            unit = min(x, y)
            sums.append(Sum(one, x - unit, two, y - unit, opcode == 1))
            nodes.append((inputs + len(sums) - 1, unit))
        values = [
            (nodes[place][0], nodes[place][1] + shift, bool(negate)) if place >= 0 else (-1, 0, False)
            for place, shift, negate in zip(stage["out_idxs"], stage["out_shifts"], stage["out_negs"], strict=True)
        ]
    return AdderGraph(inputs, tuple(sums), tuple(Exit(*value) for value in values))


def _answer(task: str, target: str) -> None:
    from da4ml.cmvm import QInterval
    from da4ml.cmvm import solve as da4ml_solve

    with np.load(task) as file:
        matrix, low, high = file["matrix"], float(file["low"]), float(file["high"])
    kernel = np.ascontiguousarray(matrix, dtype=np.float32)
    found = da4ml_solve(kernel, hard_dc=2, qintervals=[QInterval(low, high, 1.0)] * len(kernel))
    stages = [
        {
            "ops": [[int(op.id0), int(op.id1), int(op.opcode), int(op.data)] for op in part.ops],
            "inp_shifts": [int(shift) for shift in part.inp_shifts],
            "out_idxs": [int(place) for place in part.out_idxs],
            "out_shifts": [int(shift) for shift in part.out_shifts],
            "out_negs": [bool(negate) for negate in part.out_negs],
        }
        for part in found.solutions
    ]
    Path(target).write_text(json.dumps(stages))


if __name__ == "__main__":
    _answer(*sys.argv[1:])
