"""`Cycles` and `Measurement`: what a layer, or a whole design, takes at one stage."""

from __future__ import annotations

from typing import Generic

from msgspec import Struct

from fpgaprune.measure.resources import Count, Figure, Resources
from fpgaprune.measure.stage import Stage


class Cycles(Struct, frozen=True):
    """Clock cycles; an unknown number is None.

    Attributes:
        latency_min: fewest cycles from the first input to the last output.
        latency_max: most cycles from the first input to the last output.
        interval_min: fewest cycles between two samples.
        interval_max: most cycles between two samples.
    """

    latency_min: int | None = None
    latency_max: int | None = None
    interval_min: int | None = None
    interval_max: int | None = None


class Measurement(Struct, Generic[Count], frozen=True):
    """What one layer, or the whole design, takes at one stage.

    Attributes:
        stage: the stage of every figure.
        layer: name of the layer; None for the whole design.
        resources: what it takes.
        cycles: latency and interval.
        clock_ns: period that the stage reached or estimates.
    """

    stage: Stage
    layer: str | None = None
    resources: Resources[Count] = Resources()
    cycles: Cycles = Cycles()
    clock_ns: float | None = None

    @property
    def unknown(self) -> bool:
        """Whether no resource is known."""
        return self.resources == Resources()

    def figure(self, name: str) -> Figure | None:
        """The count of resource `name` with its range; the range of a tool's count is the count itself."""
        count = self.resources[name]
        return Figure(count, count, count) if isinstance(count, int) else count
