"""`Laid`: a design in one layout, with its price."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fpgaprune.errors import EstimateError
from fpgaprune.fit.limits import Limits
from fpgaprune.measure import ESTIMATED, Figure, Resources, capacity_of
from fpgaprune.target import Part

# Two latencies within this factor count as equal, because the estimate is no better.
_ALIKE = 1.1


@dataclass(frozen=True)
class Laid:
    """One layout with its price.

    Attributes:
        rung: names the layout, for every design of one network: as `io_stream 2 3`, ladder 2, rung 3.
        settings: sections of a flow file to the keys that ask for this layout.
        share: upper end of the estimate / capacity, for the resource that is nearest to its capacity.
        resource: this resource.
        used: resource to the middle of its estimate.
        latency_cycles: from the first input to the last output.
        interval_cycles: between two samples.
        size: the sum of the shares of all resources; 0 counts as `share`.
    """

    rung: str
    settings: Mapping[str, Any]
    share: float
    resource: str
    used: Mapping[str, int | None]
    latency_cycles: int
    interval_cycles: int
    size: float = 0.0

    @property
    def price(self) -> float:
        """What is made small: the sum of the shares.

        With the largest share alone, a few DSPs that no knob frees would hide what the knobs save in LUTs.
        """
        return max(self.size, self.share)

    def keeps(self, limits: Limits, clock_ns: float) -> bool:
        """Whether it keeps to the limits of time."""
        latency, interval = limits.most_cycles(clock_ns)
        return self.latency_cycles <= latency and self.interval_cycles <= interval

    def rank(self, limits: Limits, clock_ns: float) -> tuple[float, ...]:
        """A smaller rank is better: limits that are kept, then the latency unless it has a limit, then the price."""
        kept = self.keeps(limits, clock_ns)
        if not kept or self.share > limits.share:
            return (not kept, max(self.share, limits.share), self.latency_cycles)
        return (False, 0.0, *self.goal(limits))

    def goal(self, limits: Limits) -> tuple[float, float]:
        """What is made small where the limits hold: the latency in steps of 10 %, unless it has a limit; the price."""
        timed = limits.latency_us is not None
        return (0.0 if timed else round(math.log(max(self.latency_cycles, 1), _ALIKE)), self.price)

    def is_slower(self, other: Laid, limits: Limits) -> bool:
        """Whether it takes clearly longer than `other`, where a shorter latency is better."""
        return limits.latency_us is None and self.latency_cycles > _ALIKE * other.latency_cycles


def nearest_limit(used: Resources[Any], part: Part) -> tuple[str, float]:
    """The resource that is nearest to its capacity, and upper end / capacity; a count is its own upper end.

    Raises:
        EstimateError: the part has no known capacity.
    """
    shares = _shares(used, part)
    resource = max(shares, key=lambda name: shares[name], default="lut")
    return resource, shares.get(resource, 0.0)


def size_of(used: Resources[Any], part: Part) -> float:
    """The sum of upper end / capacity of all resources.

    Raises:
        EstimateError: the part has no known capacity.
    """
    return sum(_shares(used, part).values())


def _shares(used: Resources[Any], part: Part) -> dict[str, float]:
    """Resource that is used to upper end / capacity; of one that the part lacks, any number is beyond it."""
    known = list(used.against(capacity_of(part)))
    if not known:
        raise EstimateError(
            f"the capacity of {part.name} is unknown; name a part that 'fpgaprune parts' lists with its capacity"
        )
    ends = [(name, figure.high if isinstance(figure, Figure) else figure, there) for name, figure, there in known]
    return {name: end / there if there else 1 + end for name, end, there in ends if end}


def counts(used: Resources[Any]) -> dict[str, int | None]:
    """Resource to its count, or to the middle of its estimate; None is unknown."""
    found = {name: used[name] for name in ESTIMATED}
    return {name: figure.value if isinstance(figure, Figure) else figure for name, figure in found.items()}
