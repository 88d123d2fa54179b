"""`LossSurrogate`: a model of the loss, fitted to the trials; `LayerSensitivity`: what one bit of a layer is worth."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from fpgaprune.advice import widths_of, with_widths
from fpgaprune.design import Design
from fpgaprune.emulate import emulate
from fpgaprune.errors import DesignError
from fpgaprune.fit.knobs import WIDTHS, Knobs
from fpgaprune.fit.result import FitPoint
from fpgaprune.flow import arrays_of

# A network whose loss is far from the limit says little of the loss near it: it counts as if its error were this share
# of the distance.
_FAR = 0.3
# Wider than every type of a network: the other layers keep what they have.
_WIDE = 64
# So many groups of layers are suggested: of a network with more layers, not every number of them.
_GROUPS = 4
# Samples that show what one bit less does, and the products that the emulation of all layers may take: seconds.
_FEWEST, _SAMPLES, _PRODUCTS = 16, 256, 2**32

Layer = tuple[str, str]


@dataclass(frozen=True)
class LossSurrogate:
    """The loss as a linear model: zeros and missing bits add to it.

    Attributes:
        least: the loss of a network that lost nothing.
        weights: of the terms, none negative.
        error: standard deviation of the residuals.
        limit: the largest loss; the model is most exact near it.
        sensitivity: what single layers lose by one bit less.
        whole: epochs of a usual training.
    """

    least: float
    weights: NDArray[np.float64]
    error: float
    limit: float
    sensitivity: LayerSensitivity
    whole: int

    @classmethod
    def fitted(
        cls, points: Sequence[FitPoint], whole: int, limit: float, sensitivity: LayerSensitivity
    ) -> LossSurrogate:
        """Fit the model to `points`, most exactly near `limit`.

        What a training shorter than `whole` loses more is alike for all networks.
        """
        lost = np.array([point.lost for point in points])
        errors = np.array([max(point.lost_error, 1e-4) for point in points])
        least = float(np.quantile(lost, 0.1))
        terms = np.array(
            [
                [*_lasting(_terms(point.knobs, sensitivity), point.epochs, whole), float(point.epochs < whole)]
                for point in points
            ]
        )
        trust = 1 / (errors + _FAR * np.abs(lost - limit))
        found, _ = nnls(terms * trust[:, None], np.maximum(lost - least, 0.0) * trust)
        missed = (terms @ found - (lost - least)) * trust
        error = math.sqrt(float(np.sum(missed**2) / np.sum(trust**2)))
        return cls(least, found[:-1], math.hypot(error, float(np.median(errors))), limit, sensitivity, whole)

    def likelihood(self, knobs: Knobs, epochs: int) -> float:
        """Return the likelihood that a training of `knobs` for `epochs`, at least `whole`, loses at most `limit`."""
        expected = self.least + float(
            np.dot(_lasting(_terms(knobs, self.sensitivity), epochs, self.whole), self.weights)
        )
        return 0.5 * (1 + math.erf((self.limit - expected) / (math.sqrt(2) * self.error)))


def _lasting(terms: list[float], epochs: int, whole: int) -> list[float]:
    """Scale `terms` to a training of more epochs than `whole`: the loss falls with their fourth root.

    Source: docs/measurements/fit_training.md, "How long a network is trained".
    """
    return [term * (whole / max(epochs, whole)) ** 0.25 for term in terms]


def _terms(knobs: Knobs, sensitivity: LayerSensitivity) -> list[float]:
    """Return the terms of the model: each is larger, the less the network may compute."""
    zeros = 1 / max(knobs.kept, 1e-3) - 1
    filters = 1 / (1 - knobs.filters) - 1
    held = 1.0 if knobs.hold else 0.0
    # With one bit less in all layers they are twice as large.
    weight, activation = (
        2.0 ** -getattr(knobs, role) * (1 + sensitivity.lost(knobs.narrow, role))
        for role in ("weight_bits", "activation_bits")
    )
    # Of powers of two, few bits take small values only.
    return [zeros, zeros**2, zeros**4, filters, weight * (1 - held), weight * held, held, activation, activation**2]


@dataclass(frozen=True)
class LayerSensitivity:
    """The sensitivity of single layers to one bit less in `weight_bits` or `activation_bits`.

    Attributes:
        error: the error of each, as a share of what all layers of its role lose together, 0..1.
        order: those that save something, the one that loses least for what it saves first.
    """

    error: Mapping[Layer, float]
    order: tuple[Layer, ...]

    @staticmethod
    def samples(design: Design) -> int:
        """Return the number of samples on which the surrogate is made: a large network gets fewer."""
        weights = [(layer, layer.weights["weight"].size) for layer in design.layers if "weight" in layer.weights]
        products = sum(math.prod(layer.output_shape[:-1]) * size for layer, size in weights)
        return min(max(_PRODUCTS // max(products * len(widths_of(design)), 1), _FEWEST), _SAMPLES)

    @classmethod
    def of(cls, design: Design, size: Callable[[Design], float], x: Any, until: float = math.inf) -> LayerSensitivity:
        """Measure the sensitivity of each layer of `design`, a trained network.

        Each layer in turn gets one bit less, and nothing is trained. The error of the outputs for the samples `x` says
        what it loses, `size` what it saves. Past `until`, a time of `time.monotonic`, nothing is known of any layer.
        """
        before, taken = emulate(design, x), size(design)
        errors: dict[Layer, float] = {}
        worth: dict[Layer, float] = {}
        for name, role, bits in widths_of(design):
            if time.monotonic() > until:
                return cls({}, ())
            if bits <= WIDTHS[-1]:
                continue
            narrower = with_widths(design, _WIDE, _WIDE, of_layers={name: {role: bits - 1}})
            try:
                errors[name, role] = _distance(before, emulate(narrower, x))
            except DesignError:
                # No search ends because one of its suggestions is no hardware.
                continue
            saved = taken - size(narrower)
            if saved > 0:
                worth[name, role] = errors[name, role] / saved
        whole = {role: sum(error for (_, own), error in errors.items() if own == role) for _, role in errors}
        error = {layer: found / whole[layer[1]] if whole[layer[1]] else 0.0 for layer, found in errors.items()}
        return cls(error, tuple(sorted(worth, key=lambda layer: worth[layer])))

    def groups(self) -> Iterator[frozenset[Layer]]:
        """Yield the first layers of the order, a few more each time."""
        count = len(self.order)
        for number in sorted({round(count * part / _GROUPS) for part in range(1, _GROUPS + 1)} - {0}):
            yield frozenset(self.order[:number])

    def lost(self, narrow: frozenset[Layer], role: str) -> float:
        """Return what the layers `narrow` lose in `role`, as a share of what all layers would, 0..1."""
        return sum(self.error.get(layer, 0.0) for layer in narrow if layer[1] == role)


def _distance(before: Any, after: Any) -> float:
    """Return the mean square error, as a share of the mean square of the outputs."""
    pairs = zip(arrays_of(before), arrays_of(after), strict=True)
    return float(np.mean([np.square(a - b).mean() / max(np.square(b).mean(), 1e-12) for a, b in pairs]))
