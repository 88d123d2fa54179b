"""`Outlook`: which network to train next, from what all networks before it lost.

A descent only goes down: it never gives a bit back to lock more weights. A law of the loss, fitted to all networks,
says which of the neighbours of the best one is likely to lose little.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product
from typing import Any

import numpy as np

from fpgaprune.fit.answer import FitPoint
from fpgaprune.fit.foresight import Foresight
from fpgaprune.fit.knobs import CHEAP, SPARSITIES, WIDTHS, Knobs
from fpgaprune.fit.law import LossLaw
from fpgaprune.fit.ranking import Ranking
from fpgaprune.fit.single_layers import SingleLayers

# Neighbours: every knob up to so many steps away. Steps of the sparsity are half of those of a descent.
_STEPS = {"sparsity": 4, "filters": 1, "weight_bits": 2, "activation_bits": 2}
_FINE = sorted({*SPARSITIES, *(round(sum(pair) / 2, 2) for pair in pairwise(SPARSITIES))})
# A network is tried if its price is at most this share of the best one's, and if it loses little with this likelihood.
_SAVES, _LIKELY = 0.97, 0.2
# A descent does not try a network that loses little with less than this likelihood.
_HOPELESS = 0.001
# So many networks are priced for each that is tried.
_PRICED = 60
# Fewer networks say nothing of the figures of a law.
FEWEST = 6


@dataclass(frozen=True)
class Outlook:
    """Suggests networks around the best one.

    Attributes:
        names: the knobs that may be turned.
        foresight: prices.
        ranking: which network is better.
        whole: epochs of a whole training.
        epochs: epochs of the networks that it suggests, `whole` or more.
        single: the layers of a network that may have a bit less.
        likely: a network is suggested if it loses little with this likelihood.
    """

    names: Sequence[str]
    foresight: Foresight
    ranking: Ranking
    whole: int
    epochs: int
    single: Callable[[FitPoint], SingleLayers] = lambda _: SingleLayers({}, ())
    likely: float = _LIKELY

    def next(
        self, points: Sequence[FitPoint], refused: Collection[Knobs] = (), above: Collection[Knobs] = ()
    ) -> tuple[Knobs, FitPoint | None] | None:
        """The knobs that promise most, and the point whose network they are trained from; None if nothing is likely.

        What is promised is the likelihood that little is lost, times the bits that the price falls by.

        Args:
            points: all networks so far.
            refused: knobs that no network can have.
            above: knobs whose networks are too small: the price of each is less than that of what is suggested.
        """
        good = [point for point in points if point.meets_limits]
        if not good or len(points) < FEWEST:
            return None
        point = min(good, key=self.ranking.rank)
        best, single = Knobs.of(point.settings), self.single(point)
        rung = self.foresight.fastest(best).name
        price = self.foresight.price(rung, best)
        floor = max((self.foresight.price(rung, knobs) for knobs in above), default=0.0)
        tried = {Knobs.of(point.settings) for point in points if point.epochs >= self.epochs}
        law = self._law(points, single)
        likely = {
            knobs: share
            for knobs in self._neighbours(best, single)
            if knobs not in tried
            and knobs not in refused
            and (share := law.likelihood(knobs, self.epochs)) >= self.likely
        }
        # A price takes far longer than the law, so only those that seem to promise most get one.
        hoped = {knobs: share * (_guessed_bits(best) - _guessed_bits(knobs)) for knobs, share in likely.items()}
        found: list[tuple[float, Knobs]] = []
        for knobs in sorted(hoped, key=lambda knobs: -hoped[knobs])[:_PRICED]:
            if not self.foresight.is_possible(knobs):
                continue
            own = self.foresight.price(rung, knobs)
            saved = math.log2(price / max(own, 1e-9))
            if own > floor and saved >= -math.log2(_SAVES):
                found.append((likely[knobs] * saved, knobs))
        if not found:
            return None
        chosen = max(found, key=lambda one: one[0])[1]
        near = [point for point in points if point.loses_little and Knobs.of(point.settings).leads_to(chosen)]
        return chosen, min(near, key=lambda point: (point.share, -point.epochs), default=None)

    def is_hopeless(self, points: Sequence[FitPoint], knobs: Knobs) -> bool:
        """Whether a whole training of `knobs` has hardly a chance to lose little, by what all before it lost."""
        return (
            len(points) >= FEWEST and self._law(points, SingleLayers({}, ())).likelihood(knobs, self.whole) < _HOPELESS
        )

    def _law(self, points: Sequence[FitPoint], single: SingleLayers) -> LossLaw:
        error = float(np.median([point.lost_error for point in points]))
        return LossLaw.fitted(points, self.whole, self.ranking.limits.room(0.0, error, searching=True), single)

    def _neighbours(self, best: Knobs, single: SingleLayers) -> Iterator[Knobs]:
        """All knobs that are a few steps away from `best`, each; those with its filters also with a bit less here and
        there.
        """
        widths = list(range(WIDTHS[-1], max(WIDTHS[0], best.weight_bits, best.activation_bits) + 1))
        turns = [
            _around(widths, getattr(best, name), _STEPS[name]) if name in self.names else [getattr(best, name)]
            for name in ("weight_bits", "activation_bits")
        ]
        holds = {best.hold, CHEAP} if "hold" in self.names else {best.hold}
        for locks, weight_bits, activation_bits in product(self._locks(best), *turns):
            for hold in sorted(holds):
                knobs = replace(locks, weight_bits=weight_bits, activation_bits=activation_bits, hold=hold)
                yield knobs
                if knobs.filters == best.filters and knobs.hold == best.hold:
                    yield from (
                        replace(knobs, narrow=group)
                        for group in single.groups()
                        if all(getattr(knobs, role) > WIDTHS[-1] for _, role in group)
                    )

    def _locks(self, best: Knobs) -> Iterator[Knobs]:
        """`best` with more filters, fewer or none; each with a few more and a few fewer of the other units.

        A descent that began with filters never takes them back, and single weights in their place may lose less. So as
        many of these are locked as leave about as many products.
        """
        filters = [best.filters]
        if "filters" in self.names:
            filters = sorted({0.0, *_around(list(SPARSITIES), best.filters, _STEPS["filters"])})
        for share in filters:
            knobs = replace(best, filters=share, narrow=frozenset())
            if "sparsity" not in self.names:
                yield knobs
                continue
            own = best.sparsity
            if share != best.filters:
                alike = [replace(knobs, sparsity=sparsity) for sparsity in _FINE]
                own = min(alike, key=lambda knobs: abs(math.log(knobs.kept / best.kept))).sparsity
            yield from (replace(knobs, sparsity=sparsity) for sparsity in _around(_FINE, own, _STEPS["sparsity"]))


def _around(ladder: list[Any], own: Any, steps: int) -> list[Any]:
    """The rungs of `ladder` at most `steps` away from `own`; `own` alone if it is none of them."""
    if own not in ladder:
        return [own]
    place = ladder.index(own)
    return ladder[max(place - steps, 0) : place + steps + 1]


def _guessed_bits(knobs: Knobs) -> float:
    """The binary logarithm of a price that is no more than guessed: products, times the bits of what they multiply."""
    narrow = sum(role == "activation_bits" for _, role in knobs.narrow) / max(len(knobs.narrow), 1)
    weights = 1.0 if knobs.hold else float(knobs.weight_bits)
    return math.log2(max(knobs.kept, 1e-3) * weights * (knobs.activation_bits + 1 - narrow / 2))
