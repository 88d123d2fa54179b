"""`Neighbourhood`: which neighbour of the best network to train next, by a surrogate of the loss.

A descent only goes down: it never gives a bit back to lock more weights. A surrogate of the loss, fitted to all trials,
says which of the neighbours of the best network is likely to lose little.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise, product
from typing import Any

import numpy as np

from fpgaprune.fit.estimates import Estimates
from fpgaprune.fit.knobs import POWERS_OF_TWO, SPARSITIES, WIDTHS, Knobs
from fpgaprune.fit.limits import Ranking
from fpgaprune.fit.result import FitPoint
from fpgaprune.fit.surrogate import LayerSensitivity, LossSurrogate

# Neighbours: every knob up to so many steps away. Steps of the sparsity are half of those of a descent.
_STEPS = {"sparsity": 4, "filters": 1, "weight_bits": 2, "activation_bits": 2}
_FINE = sorted({*SPARSITIES, *(round(sum(pair) / 2, 2) for pair in pairwise(SPARSITIES))})
# A network is tried if its size is at most this share of the best one's, and if it loses little with this likelihood.
_SAVES, _LIKELY = 0.97, 0.2
# A descent does not try a network that loses little with less than this likelihood.
_HOPELESS = 0.001
# So many networks are estimated for each that is tried.
_ESTIMATED = 60
# Fewer trials are too few for the surrogate.
FEWEST = 6


@dataclass(frozen=True)
class Neighbourhood:
    """Suggest networks around the best one.

    Attributes:
        names: the knobs that may move.
        estimates: estimates of networks that were not trained.
        ranking: which network is better.
        whole: epochs of a whole training.
        epochs: epochs of the networks that it suggests, `whole` or more.
        sensitivity: returns how sensitive each layer of a network is to one bit less; nothing if that takes longer
            than until a time of `time.monotonic`.
        likely: a network is suggested if it loses little with this likelihood.
    """

    names: Sequence[str]
    estimates: Estimates
    ranking: Ranking
    whole: int
    epochs: int
    sensitivity: Callable[[FitPoint, float], LayerSensitivity] = lambda *_: LayerSensitivity({}, ())
    likely: float = _LIKELY

    def next(
        self,
        points: Sequence[FitPoint],
        skipped: Collection[Knobs] = (),
        above: Collection[Knobs] = (),
        until: float = math.inf,
    ) -> tuple[Knobs, FitPoint | None] | None:
        """Return the most promising knobs, and the point whose network their training starts from; None without any.

        What is maximised is the likelihood that the limit of the loss is kept, times the halvings of the size.

        Args:
            points: all networks so far.
            skipped: knobs that are running, or that no network can have.
            above: knobs whose networks are too small: what is suggested is larger than each of them.
            until: a time of `time.monotonic` after which the best one so far is returned.
        """
        good = [point for point in points if point.meets_limits]
        if not good or len(points) < FEWEST:
            return None
        point = min(good, key=self.ranking.rank)
        best, layout = point.knobs, self.estimates.best_layout(point.knobs)
        # One bit less of a layer cannot be told from a smaller size where every network fills the part.
        sensitivity = LayerSensitivity({}, ()) if layout.fills_part else self.sensitivity(point, until)
        estimated: Callable[[Knobs], float] = partial(self.estimates.size, layout.name)
        size_of = (lambda knobs: 2 ** _rough_size(knobs)) if layout.fills_part else estimated
        size = size_of(best)
        floor = max(map(size_of, above), default=0.0)
        tried = {point.knobs for point in points if point.epochs >= self.epochs}
        surrogate = self._surrogate(points, sensitivity)
        likely = {
            knobs: share
            for knobs in self._neighbours(best, sensitivity)
            if knobs not in tried
            and knobs not in skipped
            and not self._is_refuted(points, knobs)
            and (share := surrogate.likelihood(knobs, self.epochs)) >= self.likely
        }
        # An estimate takes far longer than the surrogate, so only the most promising by a rough size get one.
        hoped = {knobs: share * (_rough_size(best) - _rough_size(knobs)) for knobs, share in likely.items()}
        found: list[tuple[float, Knobs]] = []
        for knobs in sorted(hoped, key=lambda knobs: -hoped[knobs])[:_ESTIMATED]:
            if found and time.monotonic() > until:
                break
            if not self.estimates.is_possible(knobs):
                continue
            own = size_of(knobs)
            saved = math.log2(size / max(own, 1e-9))
            if own > floor and saved >= -math.log2(_SAVES):
                found.append((likely[knobs] * saved, knobs))
        if not found:
            return None
        chosen = max(found, key=lambda one: one[0])[1]
        near = [point for point in points if point.loses_little and point.knobs.leads_to(chosen)]
        return chosen, min(near, key=lambda point: (point.share, -point.epochs), default=None)

    def is_hopeless(self, points: Sequence[FitPoint], knobs: Knobs) -> bool:
        """Tell whether a whole training of `knobs` has hardly a chance to lose little, by what the others lost."""
        return self._is_refuted(points, knobs) or (
            len(points) >= FEWEST
            and self._surrogate(points, LayerSensitivity({}, ())).likelihood(knobs, self.whole) < _HOPELESS
        )

    def _is_refuted(self, points: Sequence[FitPoint], knobs: Knobs) -> bool:
        """Tell whether a larger network, trained for as long, lost more than a standard error too much."""
        return any(
            point.epochs >= self.epochs
            and self.ranking.margin(point) + point.lost_error < 0
            and point.knobs.leads_to(knobs)
            for point in points
        )

    def _surrogate(self, points: Sequence[FitPoint], sensitivity: LayerSensitivity) -> LossSurrogate:
        error = float(np.median([point.lost_error for point in points]))
        return LossSurrogate.fitted(
            points, self.whole, self.ranking.limits.margin(0.0, error, searching=True), sensitivity
        )

    def _neighbours(self, best: Knobs, sensitivity: LayerSensitivity) -> Iterator[Knobs]:
        """Yield all knobs a few steps away from `best`; those with its filters also with one bit less somewhere."""
        widths = list(range(WIDTHS[-1], max(WIDTHS[0], best.weight_bits, best.activation_bits) + 1))
        widths_around = [
            _around(widths, getattr(best, name), _STEPS[name]) if name in self.names else [getattr(best, name)]
            for name in ("weight_bits", "activation_bits")
        ]
        holds = {best.hold, POWERS_OF_TWO} if "hold" in self.names else {best.hold}
        for locks, weight_bits, activation_bits in product(self._locks(best), *widths_around):
            for hold in sorted(holds):
                knobs = replace(locks, weight_bits=weight_bits, activation_bits=activation_bits, hold=hold)
                yield knobs
                if knobs.filters == best.filters and knobs.hold == best.hold:
                    yield from (
                        replace(knobs, narrow=group)
                        for group in sensitivity.groups()
                        if all(getattr(knobs, role) > WIDTHS[-1] for _, role in group)
                    )

    def _locks(self, best: Knobs) -> Iterator[Knobs]:
        """Yield `best` with more filters, fewer or none; each with a few more and a few fewer of the other units.

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


def _around(values: list[Any], own: object, steps: int) -> list[Any]:
    """Return the `values` at most `steps` away from `own`; `own` alone if it is none of them."""
    if own not in values:
        return [own]
    index = values.index(own)
    return values[max(index - steps, 0) : index + steps + 1]


def _rough_size(knobs: Knobs) -> float:
    """Return the binary logarithm of a rough size: products, times the bits of what they multiply."""
    narrow = sum(role == "activation_bits" for _, role in knobs.narrow) / max(len(knobs.narrow), 1)
    weights = 1.0 if knobs.hold else float(knobs.weight_bits)
    return math.log2(max(knobs.kept, 1e-3) * weights * (knobs.activation_bits + 1 - narrow / 2))
