"""`Options`: how a design is turned into Verilog."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fpgaprune.errors import RtlError

ADDERS = ("shared", "plain", "da4ml")


@dataclass(frozen=True)
class Options:
    """How a design is turned into Verilog.

    Attributes:
        adders: how products with constants become adders: `shared` (common pairs of digits are added once), `plain`
            (a tree for each output), `da4ml` (its solver; needs the package and minutes on its first use).
        levels: adder levels between two registers. One gives the highest clock frequency; more give fewer registers
            and a shorter latency. Where a slice has as many registers as LUTs, one takes the fewest LUTs as well.
        fold: for a Dense layer by name, in how many cycles its products are made, weights in memory; 1 is at once.
        parallel_products: a Dense layer with more non-zero weights, and no entry in `fold`, is folded.
        serial: a layer that has enough cycles for each of its sums computes them bit by bit, which takes fewer LUTs
            and more cycles; never if False.
        interval: cycles that a sample may take, where that is more than its pixels take to arrive. The more there are,
            the more layers are folded or computed bit by bit.
        cache: folder in which solved adders are kept by content; none unless given.
        solver_seconds: wall-clock limit of one run of da4ml; `shared` stands in beyond it.
    """

    adders: str = "shared"
    levels: int = 1
    fold: Mapping[str, int] = field(default_factory=dict)
    parallel_products: int = 4096
    serial: bool = True
    interval: int = 0
    cache: Path | None = None
    solver_seconds: float = 600.0

    def __post_init__(self) -> None:
        if self.adders not in ADDERS:
            raise RtlError(f"adders are {self.adders!r}; wanted one of {', '.join(ADDERS)}")
        if self.levels < 1:
            raise RtlError(f"adder levels between two registers are {self.levels}; wanted at least 1")
        if self.interval < 0:
            raise RtlError(f"the interval is {self.interval} cycles; wanted 0 (as a sample's pixels take) or more")
