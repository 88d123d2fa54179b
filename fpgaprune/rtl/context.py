"""`Context`: what every rule that turns a layer into Verilog needs to know."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from fpgaprune.design import VerilogLayout
from fpgaprune.emulate import Step
from fpgaprune.rtl.adders import AdderGraph
from fpgaprune.rtl.chain import Chain
from fpgaprune.rtl.solve import Solver, solve


@dataclass(frozen=True)
class Context:
    """One layer and how it is to be built.

    Attributes:
        step: the layer as the emulator sees it.
        layout: of the design.
        solver: makes the adders of the layer.
        beats: cycles that a layer may take for a sample without slowing the network down.
        notes: remarks on the adders that were made for the layer, each once.
    """

    step: Step
    layout: VerilogLayout
    solver: Solver
    beats: int
    notes: list[str] = field(default_factory=list)

    def solve(self, matrix: NDArray[np.int64], low: int, high: int) -> AdderGraph:
        """Adders that multiply integers from `low` to `high` by `matrix` (inputs, outputs).

        Raises:
            RtlError, ToolError: as in `fpgaprune.rtl.solve.solve`.
        """
        solved = solve(matrix, low, high, self.solver)
        if solved.note and solved.note not in self.notes:
            self.notes.append(solved.note)
        return solved.graph


Rule = Callable[[Context, Chain], None]
