"""`Foresight`: what a network would take, known before it is trained."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpgaprune.advice import with_widths
from fpgaprune.design import Design, LayerSpec
from fpgaprune.errors import MaskError
from fpgaprune.fit.knobs import GRANULARITIES, SPARSITIES, Knobs
from fpgaprune.fit.layout import Laid
from fpgaprune.fit.limits import Limits
from fpgaprune.fit.route import Route
from fpgaprune.fit.settings import joined
from fpgaprune.flow import Dataset, Flow, TargetConfig, parse_config, untrained_design

# A unit is taken if its locks leave at most this multiple of the price that the cheapest unit leaves: of equal
# products, single weights lose less.
_LOSES_LESS = {"weight": 1.5, "filter": 1.0}
# Of what the strongest knobs take, this share is saved by none. A network has at least this share of its price left.
_NEVER_SAVED, _LEAST = 0.9, 0.05
# Designs are made with so many bits, and copies get fewer.
_WIDE = 16


class Foresight:
    """Prices of one network for all knobs: a design for each choice of locks, made once, and copies with fewer bits.

    The locks are those that `[select]` would choose in the trained network. Fine-tuning moves prices by a few per cent.
    """

    def __init__(self, route: Route, document: dict[str, Any], data: Dataset, model: Any, limits: Limits) -> None:
        """Prices `model`.

        Args:
            route: the way to hardware.
            document: the flow file, as plain data.
            data: samples for criteria and for the ranges of values.
            model: the trained network.
            limits: what the layouts must keep to.
        """
        self._document, self._data, self._model, self._limits = document, data, model, limits
        self._route, self._clock_ns = route, self._config(Knobs("weight"))[TargetConfig].clock_ns
        self._designs: Callable[[str, float], Design | None] = cache(self._design)
        self.layouts: Callable[[Knobs], dict[str, Laid]] = cache(self._layouts)
        """Rung to layout for some knobs; empty if the network cannot have them."""

    def fastest(self, knobs: Knobs) -> Laid:
        """The best layout of these knobs: one that fits, and of those the fastest; else the nearest to fitting."""
        return min(self.layouts(knobs).values(), key=self._rank)

    def is_possible(self, knobs: Knobs) -> bool:
        """Whether the network can have these knobs: a sparsity may leave too few channels."""
        return bool(self.layouts(knobs))

    def granularity(self) -> str:
        """The unit whose locks save most: single weights, unless the layouts that fit store and multiply zeros.

        Raises:
            EstimateError: the network has no price.
        """
        tried = [Knobs(unit, sparsity) for unit, sparsity in GRANULARITIES.items()]
        possible = [(self.fastest(knobs), knobs.granularity) for knobs in tried if self.is_possible(knobs)]
        for laid, unit in possible:
            best = min((laid for laid, _ in possible), key=self._rank)
            alike = self._rank(laid)[:-1] <= self._rank(best)[:-1]
            if laid is best or (alike and laid.price <= _LOSES_LESS[unit] * best.price):
                return unit
        return tried[0].granularity

    def rung(self, start: Knobs) -> str:
        """The fastest layout that the strongest knobs let fit: the search lowers what it takes."""
        return self.fastest(self._strongest(start)).rung

    def at(self, rung: str, knobs: Knobs) -> Laid:
        """The layout `rung`; the best one if the network does not have that with these knobs."""
        return self.layouts(knobs).get(rung) or self.fastest(knobs)

    def price(self, rung: str, knobs: Knobs) -> float:
        """What `knobs` take in the layout `rung`, above most of what the strongest knobs take: no knob saves that."""
        price = self.at(rung, knobs).price
        return max(
            price - _NEVER_SAVED * self.at(rung, self._strongest(Knobs(knobs.granularity))).price, _LEAST * price
        )

    def _strongest(self, start: Knobs) -> Knobs:
        """The strongest knobs that the network can have."""
        stronger = (replace(start.strongest, sparsity=sparsity) for sparsity in reversed(SPARSITIES))
        return next(filter(self.is_possible, stronger), start)

    def _rank(self, laid: Laid) -> tuple[float, ...]:
        return laid.rank(self._limits, self._clock_ns)

    def _layouts(self, knobs: Knobs) -> dict[str, Laid]:
        wide = self._designs(knobs.granularity, knobs.sparsity)
        if wide is None:
            return {}
        # A network that rounds while it is trained cuts off its largest few weights, so fewer of the others become 0.
        clips = bool(self._document.get("finetune", {}).get("quantised"))
        design = with_widths(wide, knobs.weight_bits, knobs.activation_bits, clips)
        if knobs.hold:
            design = _powers_of_two(design)
        return {laid.rung: laid for laid in self._route.layouts(design)}

    def _design(self, granularity: str, sparsity: float) -> Design | None:
        wide = Knobs(granularity, sparsity, _WIDE, _WIDE)
        try:
            return untrained_design(self._config(wide), self._data, self._model)
        except MaskError:
            # What must stay free leaves no such sparsity.
            return None

    def _config(self, knobs: Knobs) -> Flow:
        return parse_config(joined(self._document, knobs.settings()), "fit")


def _powers_of_two(design: Design) -> Design:
    """`design` with the power of two that is nearest in size for each weight that is not zero."""

    def nearest(raw: NDArray[np.int64]) -> NDArray[np.int64]:
        exponents = np.round(np.log2(np.maximum(np.abs(raw), 1))).astype(np.int64)
        return np.sign(raw) * np.left_shift(1, exponents)

    def held(layer: LayerSpec) -> LayerSpec:
        # A bias is no product.
        return replace(layer, weights={n: nearest(raw) if n == "weight" else raw for n, raw in layer.weights.items()})

    return replace(design, layers=tuple(held(layer) if "weight" in layer.weights else layer for layer in design.layers))
