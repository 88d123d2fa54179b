"""`Laid`: a design in one layout, priced; `layouts_of` prices every layout of a design."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from fpgaprune.advice import Edit, ladders, other_io_type
from fpgaprune.design import Design
from fpgaprune.errors import EstimateError
from fpgaprune.estimate import estimate
from fpgaprune.fit.limits import Limits
from fpgaprune.measure import ESTIMATED, capacity_of
from fpgaprune.target import Target

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
        used: resource to the middle of its estimate after logic synthesis.
        latency_cycles: from the first input to the last output.
        interval_cycles: between two samples.
    """

    rung: str
    settings: Mapping[str, Any]
    share: float
    resource: str
    used: Mapping[str, int | None]
    latency_cycles: int
    interval_cycles: int

    def keeps(self, limits: Limits, clock_ns: float) -> bool:
        """Whether it keeps to the limits of time."""
        latency, interval = limits.most_cycles(clock_ns)
        return self.latency_cycles <= latency and self.interval_cycles <= interval

    def rank(self, limits: Limits, clock_ns: float) -> tuple[float, ...]:
        """A smaller rank is better: limits that are kept, then the latency unless it has a limit, then the share."""
        kept = self.keeps(limits, clock_ns)
        if not kept or self.share > limits.share:
            return (not kept, max(self.share, limits.share), self.latency_cycles)
        timed = limits.latency_us is not None
        return (False, 0.0, 0.0 if timed else round(math.log(self.latency_cycles, _ALIKE)), self.share)


def layouts_of(design: Design, target: Target) -> list[Laid]:
    """`design` in every layout that has a price.

    Raises:
        EstimateError: no layout has one, or the capacity of the part is unknown; the message says why.
    """
    found: list[Laid] = []
    said: EstimateError | None = None
    for rung, edit in _every(design):
        try:
            found.append(laid_as(edit.design, target, rung, edit.settings))
        except EstimateError as error:
            said = error
    if not found:
        raise said or EstimateError("the network has no layer that multiplies by weights, so nothing can be laid out")
    return found


def laid_as(design: Design, target: Target, rung: str = "", settings: Mapping[str, Any] | None = None) -> Laid:
    """`design` in its own layout, which `rung` names and `settings` ask for.

    Raises:
        EstimateError: a layer has no hardware model, or the capacity of the part is unknown.
    """
    made = estimate(design, replace(target, io_type=design.io_type))
    part, used = made.target.part, made.total["synth"]
    known = list(used.against(capacity_of(part)))
    if not known or made.fits is None:
        raise EstimateError(
            f"whether {design.name} fits {part.name} is unknown; wanted a part whose capacity is listed, as "
            "'fpgaprune parts' shows, and a price for every layer"
        )
    shares = {name: figure.high / there if there else math.inf for name, figure, there in known if figure.high}
    resource = max(shares, key=lambda name: shares[name], default="lut")
    counts = {name: None if (figure := used[name]) is None else figure.value for name in ESTIMATED}
    share = shares.get(resource, 0.0)
    return Laid(rung, settings or {}, share, resource, counts, made.latency_cycles, made.interval_cycles)


def _every(design: Design) -> Iterator[tuple[str, Edit]]:
    """Name and change for every layout, in both io types."""
    other = other_io_type(design)
    for number, ladder in enumerate(ladders(design)):
        yield from ((f"{design.io_type} {number} {rung}", edit) for rung, edit in enumerate(ladder))
    if other is not None:
        for number, ladder in enumerate(ladders(other.design)):
            name = other.design.io_type
            yield from ((f"{name} {number} {rung}", other.then(edit)) for rung, edit in enumerate(ladder))
