"""`Rungs`: hopeless networks end early, by their price, or after a short training."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from fpgaprune.fit.answer import FitPoint
from fpgaprune.fit.ranking import Ranking
from fpgaprune.layout import DesignLayout

# Training moves a price by a few per cent; a price beyond this multiple of a limit is no mistake of foresight.
_MARGIN = 1.25
# The best network's objective may be missed by this much: one step of 10 % of the latency, or a tenth of the share.
_MISSED = 1.0
# One in so many networks that were trained shortly is trained whole.
_ONE_IN = 3
# A longer training may win back one more limit of loss.
_WON_BACK = 1.0


@dataclass(frozen=True)
class Rungs:
    """Decides which networks go on: by price, then by a short training; the whole training is the last rung.

    Attributes:
        ranking: which network is better.
        front: whether every network counts that no other beats, not only the best one.
    """

    ranking: Ranking
    front: bool

    def hopeless(self, laid: DesignLayout, known: Sequence[FitPoint]) -> str | None:
        """Why a network of this price need not be trained, as `known` networks are better; None if it shall be.

        The front of a search knows no best network, so that only the limits of the part and of time end a trial here.
        """
        least = self._least(known)
        for name, beyond in self.ranking.beyond(laid).items():
            if 1 + beyond > _MARGIN * max(1.0, least.get(name, math.inf)):
                return f"its price is {1 + beyond:.2g} times the limit of the {name}"
        good = [point for point in known if point.meets_limits]
        if self.front or not good:
            return None
        latency, price = self.ranking.goal(laid)
        best_latency, best_price = self.ranking.goal(min(good, key=self.ranking.rank))
        if latency > best_latency + _MISSED or (latency > best_latency - _MISSED and price > _MARGIN * best_price):
            return "its price is higher than that of a network that keeps to every limit"
        return None

    def promotes(self, point: FitPoint, shortly: Sequence[FitPoint], known: Sequence[FitPoint]) -> bool:
        """Whether a network that was trained shortly is trained whole.

        Args:
            point: the network.
            shortly: all networks that the search trained shortly, `point` among them.
            known: all networks that were judged.
        """
        if self.front:
            return not any(_surely_beats(other, point) for other in known)
        hopeful = [other for other in shortly if self.ranking.lost_beyond(other) <= _WON_BACK]
        mine = self.ranking.objective(point)
        better = sum(self.ranking.objective(other) < mine for other in hopeful)
        return self.ranking.lost_beyond(point) <= _WON_BACK and better < math.ceil(len(hopeful) / _ONE_IN)

    def _least(self, known: Sequence[FitPoint]) -> dict[str, float]:
        """Limit to the least multiple of it that a known network takes."""
        found: dict[str, float] = {}
        for point in known:
            for name, beyond in self.ranking.beyond(point).items():
                found[name] = min(found.get(name, math.inf), 1 + beyond)
        return found


def _surely_beats(one: FitPoint, other: FitPoint) -> bool:
    """Whether `one` takes no more than `other`, and loses less by more than a standard error."""
    takes_no_more = one.share <= other.share and one.latency_cycles <= other.latency_cycles
    return takes_no_more and one.lost + max(one.lost_error, other.lost_error) < other.lost
