"""Layouts of our own Verilog by one rule for all layers: at an interval, and ever slower."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fpgaprune.design import Design
from fpgaprune.estimate import verilog_price
from fpgaprune.layout.choice import require_family
from fpgaprune.layout.design_layout import DesignLayout
from fpgaprune.target import Part

# Cycles for each sample, as multiples of the fewest that a design can have.
SLOWER = (4, 16, 64, 256)


def at_interval(design: Design, part: Part, interval: int | None = None, name: str = "") -> DesignLayout:
    """All layers by one rule, with `interval` cycles for each sample; the fewest that the design can have unless given.

    Raises:
        EstimateError: there is no estimate of our Verilog for the part's family.
        UnsupportedLayerError, DesignError, RtlError: as for `fpgaprune.to_verilog`.
    """
    made = verilog_price(design, require_family(part), interval=interval or 0)
    return DesignLayout.of_verilog(made, part, name=name, fields={} if interval is None else {"interval": interval})


def slower_layouts(design: Design, part: Part, factors: Sequence[int] | None = None) -> Iterator[DesignLayout]:
    """Layouts of `design` from the shortest interval to ever longer ones, by one rule for all layers.

    Their names are the multiples of the fewest cycles: `0` for the first, then `4`, `16` and so on. `factors`
    picks some.

    Raises:
        EstimateError, UnsupportedLayerError, DesignError, RtlError: as for `at_interval`.
    """
    first = at_interval(design, part, name="0")
    for factor in (0, *SLOWER):
        if factors is not None and factor not in factors:
            continue
        interval = factor * max(first.interval_cycles, 1)
        yield at_interval(design, part, interval, name=str(factor)) if factor else first
