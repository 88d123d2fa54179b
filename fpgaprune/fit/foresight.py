"""`Foresight`: what a network would take, known before it is trained."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpgaprune.advice import with_widths
from fpgaprune.design import Design, LayerSpec
from fpgaprune.errors import MaskError
from fpgaprune.fit.answer import FitPoint
from fpgaprune.fit.knobs import Knobs
from fpgaprune.fit.limits import Limits
from fpgaprune.fit.ranking import Ranking, price_of
from fpgaprune.fit.route import Route
from fpgaprune.fit.single_layers import SingleLayers
from fpgaprune.flow import Dataset, Flow, TargetConfig, at, parse_config, untrained_design
from fpgaprune.layout import DesignLayout, joined

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
        self._document, self._data, self._model, self._route = document, data, model, route
        self._ranking = Ranking(limits, self._config(Knobs("weight"))[TargetConfig].clock_ns)
        self._designs: Callable[[Knobs], Design | None] = cache(self._design)
        self.layouts: Callable[[Knobs], dict[str, DesignLayout]] = cache(self._layouts)
        """Rung to layout for some knobs; empty if the network cannot have them."""
        self._one: Callable[[str, Knobs], DesignLayout | None] = cache(self._only)

    def fastest(self, knobs: Knobs) -> DesignLayout:
        """The best layout of these knobs: one that fits, and of those the fastest; else the nearest to fitting."""
        return min(self.layouts(knobs).values(), key=self._ranking.rank_layout)

    def is_in_time(self, knobs: Knobs) -> bool:
        """Whether the best layout of these knobs keeps to the limits of time."""
        if min(self._ranking.limits.most_cycles(self._ranking.clock_ns)) == math.inf:
            return True
        return self._ranking.keeps_time(self.fastest(knobs))

    def is_slower(self, turned: Knobs, knobs: Knobs) -> bool:
        """Whether `knobs` fit, and the best layout of `turned` takes clearly longer or does not fit."""
        was, now = self.fastest(knobs), self.fastest(turned)
        most = self._ranking.limits.share
        return was.share <= most and (now.share > most or self._ranking.is_slower(now, was))

    def is_possible(self, knobs: Knobs) -> bool:
        """Whether the network can have these knobs: a sparsity may leave too few channels."""
        return self._wide(knobs) is not None

    def single_layers(self, point: FitPoint) -> SingleLayers:
        """The layers of the network of `point` that may have a bit less, in the layout that it has."""
        config = parse_config(joined(self._document, point.settings), "fit")

        def price(design: Design) -> float:
            return price_of(self._route.own(design, config))

        if self._document.get("hls", {}).get("layers"):
            # What the flow says of single layers is kept.
            return SingleLayers({}, ())
        design = point.design()
        return SingleLayers.of(design, price, at(self._data.x_test, slice(SingleLayers.samples(design))))

    def rung(self, start: Knobs) -> str:
        """The fastest layout that the strongest knobs let fit: the search lowers what it takes."""
        return self.fastest(self._strongest(start)).name

    def at(self, rung: str, knobs: Knobs) -> DesignLayout:
        """The layout `rung`; the best one if the network does not have that with these knobs."""
        return self._one(rung, knobs) or self.fastest(knobs)

    def price(self, rung: str, knobs: Knobs) -> float:
        """What `knobs` take in the layout `rung`, above most of what the strongest knobs take: no knob saves that."""
        price = price_of(self.at(rung, knobs))
        strongest = price_of(self.at(rung, self._strongest(Knobs(knobs.granularity))))
        return max(price - _NEVER_SAVED * strongest, _LEAST * price)

    def _strongest(self, start: Knobs) -> Knobs:
        """The strongest knobs that the network can have."""
        return next(filter(self.is_possible, start.strongest), start)

    def design(self, knobs: Knobs) -> Design | None:
        """The trained network with these knobs, not fine-tuned; None if it cannot have them."""
        wide = self._wide(knobs)
        if wide is None:
            return None
        # A network that rounds while it is trained cuts off its largest few weights, so fewer of the others become 0.
        clips = bool(self._document.get("finetune", {}).get("quantised"))
        design = with_widths(wide, knobs.weight_bits, knobs.activation_bits, clips, knobs.of_layers)
        return _powers_of_two(design) if knobs.hold else design

    def _wide(self, knobs: Knobs) -> Design | None:
        """The trained network with the locks of these knobs, which all widths have in common."""
        return self._designs(Knobs(knobs.granularity, knobs.sparsity, _WIDE, _WIDE, filters=knobs.filters))

    def _layouts(self, knobs: Knobs) -> dict[str, DesignLayout]:
        design = self.design(knobs)
        return {} if design is None else {laid.name: laid for laid in self._route.layouts(design)}

    def _only(self, rung: str, knobs: Knobs) -> DesignLayout | None:
        """The layout `rung`; a search asks for it far more often than for all, which take many times as long."""
        design = self.design(knobs)
        return None if design is None else self._route.at(design, rung)

    def _design(self, wide: Knobs) -> Design | None:
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
        # A bias is no product. The power of two nearest to the largest weight may need a bit more.
        kind = layer.types["weight"]
        wider = replace(kind, width=kind.width + 1, integer=kind.integer + 1)
        return replace(
            layer,
            types={**layer.types, "weight": wider},
            weights={**layer.weights, "weight": nearest(layer.weights["weight"])},
        )

    return replace(design, layers=tuple(held(layer) if "weight" in layer.weights else layer for layer in design.layers))
