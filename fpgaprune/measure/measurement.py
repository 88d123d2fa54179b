"""`Cycles` and `Measurement`: what a layer, or a whole design, takes at one stage."""

from __future__ import annotations

from typing import Generic

from msgspec import Struct

from fpgaprune.measure.resources import Count, Figure, Resources
from fpgaprune.measure.stage import Stage


class Cycles(Struct, frozen=True):
    """Clock cycles; an unknown number is None.

    Attributes:
        latency_min: the fewest from the first input to the last output.
        latency_max: the most.
        interval_min: the fewest between two inputs.
        interval_max: the most.
    """

    latency_min: int | None = None
    latency_max: int | None = None
    interval_min: int | None = None
    interval_max: int | None = None


class Measurement(Struct, Generic[Count], frozen=True):
    """What one layer, or the whole design, takes at one stage.

    Attributes:
        stage: of every figure.
        layer: its name; None for the whole design.
        resources: by name.
        cycles: latency and interval.
        clock_ns: period that the stage reached, or estimates.
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
        """The count of resource `name` with its range; what a tool counted is its own range."""
        count = self.resources[name]
        return Figure(count, count, count) if isinstance(count, int) else count
