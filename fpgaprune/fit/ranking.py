"""`Ranking`: which of two networks is the better one."""

from __future__ import annotations

import math
from dataclasses import dataclass

from msgspec import structs

from fpgaprune.fit.answer import HELD_BACK, FitPoint
from fpgaprune.fit.layout import Laid
from fpgaprune.fit.limits import Limits

# The least loss that a limit is measured by: a limit of 0 has no parts.
_LEAST = 1e-3
# A price beyond the part counts less than a step of the latency.
_BELOW_ONE = 0.999


@dataclass(frozen=True)
class Ranking:
    """Orders networks: the limits first, then what has no limit.

    Attributes:
        limits: what must hold.
        clock_ns: clock period in ns.
    """

    limits: Limits
    clock_ns: float

    def rank(self, point: FitPoint) -> tuple[float, ...]:
        """A smaller rank is better: the limits first; without them, how far the point is from them."""
        limit = self.limits.most_loss(point.judged_on == HELD_BACK) + point.lost_error
        loss = point.lost / limit if limit else float(point.lost > 0)
        if not point.meets_limits:
            return (1.0, not point.in_time, max(loss, 1.0) + max(point.share / self.limits.share, 1.0), point.share)
        return (0.0, *laid_as(point).rank(self.limits, self.clock_ns), loss)

    def corrected(self, point: FitPoint, ratio: float) -> tuple[float, ...]:
        """The rank of `point` if it takes `ratio` times its share."""
        return self.rank(structs.replace(point, share=point.share * ratio, size=point.size * ratio))

    def if_worse(self, point: FitPoint, shift: float) -> FitPoint:
        """`point` of the search if it loses `shift` more."""
        made = structs.replace(point, lost=point.lost + shift)
        return structs.replace(made, loses_little=self.room(made) >= 0)

    def objective(self, laid: Laid) -> float:
        """What has no limit, as one number to make small: the latency unless it has a limit, then the price."""
        latency, price = laid.goal(self.limits)
        return latency + min(price, _BELOW_ONE)

    def beyond(self, laid: Laid) -> dict[str, float]:
        """Limit to how far the layout is beyond it, as a fraction of the limit; 0 or less keeps to it."""
        latency, interval = self.limits.most_cycles(self.clock_ns)
        found = {"share": laid.share / self.limits.share - 1}
        for name, cycles, most in (
            ("latency", laid.latency_cycles, latency),
            ("interval", laid.interval_cycles, interval),
        ):
            if math.isfinite(most):
                found[name] = cycles / most - 1
        return found

    def lost_beyond(self, point: FitPoint) -> float:
        """How far its loss is beyond the limit, as a fraction of the limit; 0 or less keeps to it."""
        return -self.room(point) / max(self.limits.most_lost, _LEAST)

    def room(self, point: FitPoint) -> float:
        """The loss that a network of the search still leaves to the limit."""
        return self.limits.room(point.lost, point.lost_error, searching=True)


def laid_as(point: FitPoint) -> Laid:
    """The layout of `point`, as far as limits speak of it."""
    return Laid("", {}, point.share, point.resource, {}, point.latency_cycles, point.interval_cycles, point.size)
