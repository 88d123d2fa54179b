"""Layouts of our own Verilog: one interval for all layers, ever slower ones, and each layer laid out for a part."""

from __future__ import annotations

from collections.abc import Iterator

from fpgaprune.design import Design
from fpgaprune.errors import EstimateError
from fpgaprune.estimate import choose_layout, verilog_price
from fpgaprune.fabric import price_family_of
from fpgaprune.layout.design_layout import DesignLayout
from fpgaprune.measure import ChosenLayout
from fpgaprune.target import Part

# Cycles for each sample, as multiples of the fewest that a design can have.
_SLOWER = (4, 16, 64, 256)
# Of each resource of the part, the share that a layout may take unless it is said.
SHARE = 0.8


def at_interval(design: Design, part: Part, interval: int | None = None, name: str = "") -> DesignLayout:
    """All layers by one rule, with `interval` cycles for each sample; the fewest that the design can have unless given.

    Raises:
        EstimateError: there is no estimate of our Verilog for the part's family.
        UnsupportedLayerError, DesignError, RtlError: as for `fpgaprune.to_verilog`.
    """
    made = verilog_price(design, _family(part), interval=interval or 0)
    return DesignLayout.of_verilog(made, part, name=name, fields={} if interval is None else {"interval": interval})


def slower_layouts(design: Design, part: Part) -> Iterator[DesignLayout]:
    """`design` with a sample as often as it can come, then with ever more cycles, by one rule for all layers.

    Their names are the multiples of the fewest cycles: `0` for the first, then `4`, `16` and so on.

    Raises:
        EstimateError, UnsupportedLayerError, DesignError, RtlError: as for `at_interval`.
    """
    first = at_interval(design, part, name="0")
    yield first
    for factor in _SLOWER:
        yield at_interval(design, part, factor * max(first.interval_cycles, 1), name=str(factor))


def chosen_for(
    design: Design, part: Part, *, share: float = SHARE, interval: int | None = None, upper: bool = False
) -> ChosenLayout:
    """Each layer of `design` laid out for `part`, as `choose_layout` does, by the estimate for the part's family.

    Raises:
        EstimateError: no layout fits, or there is no estimate of our Verilog for the part.
        UnsupportedLayerError, DesignError, RtlError: as for `fpgaprune.to_verilog`.
    """
    return choose_layout(design, part, _family(part), share=share, interval=interval, upper=upper)


def _family(part: Part) -> str:
    family = price_family_of(part)
    if family is None:
        raise EstimateError(f"open synthesis does not know the family of {part.name}; choose a layout for another part")
    return family
