"""`LossLaw`: what a network is likely to lose, from what others lost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from fpgaprune.fit.answer import FitPoint
from fpgaprune.fit.knobs import Knobs
from fpgaprune.fit.single_layers import SingleLayers

# A network whose loss is far from the limit says little of the law there: it counts as if its error were this share of
# the distance.
_FAR = 0.3


@dataclass(frozen=True)
class LossLaw:
    """The loss as a sum: the more of its weights a network loses, and the fewer bits it has, the more it loses.

    Attributes:
        least: the loss of a network that lost nothing.
        weights: of the terms, none negative.
        error: standard deviation of what the law misses.
        limit: the loss that is allowed; the law is most exact near it.
        single: what single layers lose by a bit less.
        whole: epochs of a usual training.
    """

    least: float
    weights: NDArray[np.float64]
    error: float
    limit: float
    single: SingleLayers
    whole: int

    @classmethod
    def fitted(cls, points: Sequence[FitPoint], whole: int, limit: float, single: SingleLayers) -> LossLaw:
        """The law of `points`, most exact near `limit`.

        What a training shorter than `whole` loses more is alike for all networks.
        """
        lost = np.array([point.lost for point in points])
        errors = np.array([max(point.lost_error, 1e-4) for point in points])
        least = float(np.quantile(lost, 0.1))
        terms = np.array(
            [
                [*_lasting(_terms(Knobs.of(point.settings), single), point.epochs, whole), float(point.epochs < whole)]
                for point in points
            ]
        )
        trust = 1 / (errors + _FAR * np.abs(lost - limit))
        found, _ = nnls(terms * trust[:, None], np.maximum(lost - least, 0.0) * trust)
        missed = (terms @ found - (lost - least)) * trust
        error = math.sqrt(float(np.sum(missed**2) / np.sum(trust**2)))
        return cls(least, found[:-1], math.hypot(error, float(np.median(errors))), limit, single, whole)

    def likelihood(self, knobs: Knobs, epochs: int) -> float:
        """The likelihood that a training of `knobs` for `epochs`, at least `whole`, loses at most `limit`."""
        expected = self.least + float(np.dot(_lasting(_terms(knobs, self.single), epochs, self.whole), self.weights))
        return 0.5 * (1 + math.erf((self.limit - expected) / (math.sqrt(2) * self.error)))


def _lasting(terms: list[float], epochs: int, whole: int) -> list[float]:
    """`terms` of a network that is trained for more epochs than `whole`: what it loses falls with their fourth root.

    Source: docs/measurements/fit_training.md, "How long a network is trained".
    """
    return [term * (whole / max(epochs, whole)) ** 0.25 for term in terms]


def _terms(knobs: Knobs, single: SingleLayers) -> list[float]:
    """What makes a network lose: each is larger, the less it may compute."""
    zeros = 1 / max(knobs.kept, 1e-3) - 1
    filters = 1 / (1 - knobs.filters) - 1
    held = 1.0 if knobs.hold else 0.0
    # With a bit less in all layers they are twice as large.
    weight, activation = (
        2.0 ** -getattr(knobs, role) * (1 + single.lost(knobs.narrow, role))
        for role in ("weight_bits", "activation_bits")
    )
    # Of powers of two, few bits take small values only.
    return [zeros, zeros**2, zeros**4, filters, weight * (1 - held), weight * held, held, activation, activation**2]
