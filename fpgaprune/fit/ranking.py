"""`Ranking`: which of two networks is the better one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

from msgspec import structs

from fpgaprune.fit.answer import HELD_BACK, FitPoint
from fpgaprune.fit.limits import Limits
from fpgaprune.layout import DesignLayout

# The least loss that a limit is measured by: a limit of 0 has no parts.
_LEAST = 1e-3
# A price beyond the part counts less than a step of the latency.
_BELOW_ONE = 0.999
# Two latencies within this factor count as equal, because the estimate is no better.
_ALIKE = 1.1

# What has a share of the part, cycles, and a sum of shares: a layout by its estimate, or a network that was judged.
Judged: TypeAlias = DesignLayout | FitPoint


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
        return (0.0, *self.rank_layout(point), loss)

    def rank_layout(self, laid: Judged) -> tuple[float, ...]:
        """A smaller rank is better: limits that are kept, then the latency unless it has a limit, then the price."""
        kept = self.keeps_time(laid)
        if not kept or laid.share > self.limits.share:
            return (not kept, max(laid.share, self.limits.share), laid.latency_cycles)
        return (False, 0.0, *self.goal(laid))

    def keeps_time(self, laid: Judged) -> bool:
        """Whether it keeps to the limits of time."""
        latency, interval = self.limits.most_cycles(self.clock_ns)
        return laid.latency_cycles <= latency and laid.interval_cycles <= interval

    def goal(self, laid: Judged) -> tuple[float, float]:
        """What is made small where the limits hold: the latency in steps of 10 %, unless it has a limit; the price."""
        timed = self.limits.latency_us is not None
        return (0.0 if timed else round(math.log(max(laid.latency_cycles, 1), _ALIKE)), price_of(laid))

    def is_slower(self, laid: Judged, other: Judged) -> bool:
        """Whether `laid` takes clearly longer than `other`, where a shorter latency is better."""
        return self.limits.latency_us is None and laid.latency_cycles > _ALIKE * other.latency_cycles

    def corrected(self, point: FitPoint, ratio: float) -> tuple[float, ...]:
        """The rank of `point` if it takes `ratio` times its share."""
        return self.rank(structs.replace(point, share=point.share * ratio, size=point.size * ratio))

    def if_worse(self, point: FitPoint, shift: float) -> FitPoint:
        """`point` of the search if it loses `shift` more."""
        made = structs.replace(point, lost=point.lost + shift)
        return structs.replace(made, loses_little=self.room(made) >= 0)

    def objective(self, laid: Judged) -> float:
        """What has no limit, as one number to make small: the latency unless it has a limit, then the price."""
        latency, price = self.goal(laid)
        return latency + min(price, _BELOW_ONE)

    def beyond(self, laid: Judged) -> dict[str, float]:
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


def price_of(laid: Judged) -> float:
    """What is made small: the sum of the shares.

    With the largest share alone, a few DSPs that no knob frees would hide what the knobs save in LUTs.
    """
    return max(laid.size, laid.share)
