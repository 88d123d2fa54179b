"""`Context`: what every rule that turns a layer into Verilog needs to know."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fpgaprune.design import VerilogLayout
from fpgaprune.emulate import Step
from fpgaprune.rtl.adders import AdderGraph
from fpgaprune.rtl.chain import Chain
from fpgaprune.rtl.links import SerialTrees, Stream, Trees
from fpgaprune.rtl.solve import Solver, solve


class Counter(Protocol):
    """Who counts the adders of weighted sums, so that none are searched for."""

    def trees(self, matrix: NDArray[np.int64], stream: Stream) -> Trees:
        """Those that multiply each beat of `stream` by `matrix` (inputs, outputs), all at once."""

    def serial(self, matrix: NDArray[np.int64], lane: tuple[int, bool, int, int], wanted: int | None) -> SerialTrees:
        """Those that multiply them bit by bit; arguments as for `SerialSums.of`."""


@dataclass(frozen=True)
class Context:
    """One layer and how it is to be built.

    Attributes:
        step: the layer as the emulator sees it.
        layout: of the design.
        solver: makes the adders of the layer.
        beats: cycles that a layer may take for a sample without slowing the network down.
        counter: counts adders in place of `solver`; None where they are made.
        load_bits: bits of a beat of a load of weights; 0 where none can be loaded.
        notes: remarks on the adders that were made for the layer, each once.
    """

    step: Step
    layout: VerilogLayout
    solver: Solver
    beats: int
    counter: Counter | None = None
    load_bits: int = 0
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
