"""`Context`: what every rule that turns a layer into Verilog needs to know."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fpgaprune.emulate.step import Step
from fpgaprune.rtl.chain import Chain
from fpgaprune.rtl.options import Options
from fpgaprune.rtl.solve import AdderSolver


@dataclass(frozen=True)
class Context:
    """One layer and how it is to be built.

    Attributes:
        step: the layer as the emulator sees it.
        options: as the caller gave them.
        solve: makes adders.
        beats: clocks for a sample; a layer that takes no more slows nothing down.
    """

    step: Step
    options: Options
    solve: AdderSolver
    beats: int


Rule = Callable[[Context, Chain], None]
