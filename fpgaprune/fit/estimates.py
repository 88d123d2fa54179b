"""`Estimates`: what a network would take of the part, estimated before it is trained."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fpgaprune.advice import with_widths
from fpgaprune.design import Design, LayerSpec
from fpgaprune.errors import NETWORK_ERRORS, MaskError
from fpgaprune.fit.knobs import Knobs
from fpgaprune.fit.limits import Limits, Ranking, size_of
from fpgaprune.fit.result import FitPoint
from fpgaprune.fit.route import Route
from fpgaprune.fit.surrogate import LayerSensitivity
from fpgaprune.flow import Dataset, Flow, TargetConfig, at, parse_config, untrained_design
from fpgaprune.layout import DesignLayout, joined

if TYPE_CHECKING:
    import keras

# Of what the strongest knobs take, no knob saves this share. A network counts at least this share of its own size.
_NEVER_SAVED, _LEAST = 0.9, 0.05
# Designs are made with so many bits, and copies get fewer.
_WIDE = 16


class Estimates:
    """Estimates of one network for all knobs: a design for each choice of locks, made once, and copies with fewer bits.

    The locks are those that `[select]` would choose in the trained network. Fine-tuning moves estimates by a few per
    cent.
    """

    def __init__(
        self, route: Route, document: dict[str, Any], data: Dataset, model: keras.Model, limits: Limits
    ) -> None:
        """Estimate `model`.

        Args:
            route: the route to hardware.
            document: the flow file, as plain data.
            data: samples for criteria and for the ranges of values.
            model: the trained network.
            limits: what the layouts must keep.
        """
        self._document, self._data, self._model, self._route = document, data, model, route
        self.ranking = Ranking(limits, self._config(Knobs("weight"))[TargetConfig].clock_ns)
        self.impossible: dict[Knobs, str] = {}
        """Locks to why the network with them cannot become hardware, where other locks may."""
        self._designs: Callable[[Knobs], Design | None] = cache(self._design)
        self.layouts: Callable[[Knobs], dict[str, DesignLayout]] = cache(self._layouts)
        """Name to layout for some knobs; empty if the network cannot have them."""
        self._sensitivities: dict[str, LayerSensitivity] = {}
        self._one: Callable[[str, Knobs], DesignLayout | None] = cache(self._only)

    def best_layout(self, knobs: Knobs) -> DesignLayout:
        """Return the best layout of these knobs: the fastest one that fits, else the nearest to fitting."""
        return min(self.layouts(knobs).values(), key=self.ranking.rank_layout)

    def fits_by_one_rule(self, knobs: Knobs) -> bool:
        """Tell whether a layout by one rule for all layers keeps its share of the part, which takes little time."""
        design = self.design(knobs)
        laid = [] if design is None else self._route.by_one_rule(design)
        return any(layout.share <= self.ranking.limits.share for layout in laid)

    def is_in_time(self, knobs: Knobs) -> bool:
        """Tell whether the best layout of these knobs keeps the limits of time."""
        if min(self.ranking.limits.cycle_limits(self.ranking.clock_ns)) == math.inf:
            return True
        return self.ranking.keeps_time(self.best_layout(knobs))

    def is_slower(self, moved: Knobs, knobs: Knobs) -> bool:
        """Tell whether `knobs` fit, and the best layout of `moved` takes clearly longer or does not fit."""
        was, now = self.best_layout(knobs), self.best_layout(moved)
        most = self.ranking.limits.share
        return was.share <= most and (now.share > most or self.ranking.is_slower(now, was))

    def is_possible(self, knobs: Knobs) -> bool:
        """Tell whether the network can have these knobs: a sparsity may leave too few channels."""
        return self._wide(knobs) is not None

    def layer_sensitivity(self, point: FitPoint, until: float) -> LayerSensitivity:
        """Return how sensitive each layer of the network of `point` is to one bit less, in the layout that it has.

        It is measured once for each run. Nothing is said if that takes longer than `until`, of `time.monotonic`.
        """
        if point.folder not in self._sensitivities:
            self._sensitivities[point.folder] = self._sensitivity(point, until)
        return self._sensitivities[point.folder]

    def _sensitivity(self, point: FitPoint, until: float) -> LayerSensitivity:
        config = parse_config(joined(self._document, point.settings), "fit")

        def size(design: Design) -> float:
            return size_of(self._route.own(design, config))

        if self._document.get("hls", {}).get("layers"):
            # What the flow says of single layers stays in force.
            return LayerSensitivity({}, ())
        design = point.design()
        samples = slice(LayerSensitivity.samples(design))
        return LayerSensitivity.of(design, size, at(self._data.x_test, samples), until)

    def target_layout(self, start: Knobs) -> str:
        """Return the name of the fastest layout in which the strongest knobs fit: the search makes it smaller."""
        return self.best_layout(self._strongest(start)).name

    def in_layout(self, layout: str, knobs: Knobs) -> DesignLayout:
        """Return the layout of this name; the best one if the network has none such with these knobs."""
        return self._one(layout, knobs) or self.best_layout(knobs)

    def size(self, layout: str, knobs: Knobs) -> float:
        """Return what `knobs` take in a layout, above most of what the strongest knobs take: no knob saves that."""
        size = size_of(self.in_layout(layout, knobs))
        strongest = size_of(self.in_layout(layout, self._strongest(Knobs(knobs.granularity))))
        return max(size - _NEVER_SAVED * strongest, _LEAST * size)

    def _strongest(self, start: Knobs) -> Knobs:
        """Return the strongest knobs that the network can have."""
        return next(filter(self.is_possible, start.strongest), start)

    def design(self, knobs: Knobs) -> Design | None:
        """Return the trained network with these knobs, not fine-tuned; None if it cannot have them."""
        wide = self._wide(knobs)
        if wide is None:
            return None
        # A network that rounds while it is trained cuts off its largest few weights, so fewer of the others become 0.
        clips = bool(self._document.get("finetune", {}).get("quantised"))
        design = with_widths(wide, knobs.weight_bits, knobs.activation_bits, clips, knobs.of_layers)
        return powers_of_two(design) if knobs.hold else design

    def _wide(self, knobs: Knobs) -> Design | None:
        """Return the trained network with the locks of these knobs, which all widths have in common."""
        return self._designs(Knobs(knobs.granularity, knobs.sparsity, _WIDE, _WIDE, filters=knobs.filters))

    def _layouts(self, knobs: Knobs) -> dict[str, DesignLayout]:
        design = self.design(knobs)
        return {} if design is None else {layout.name: layout for layout in self._route.layouts(design)}

    def _only(self, layout: str, knobs: Knobs) -> DesignLayout | None:
        """Return one layout; a search asks for it far more often than for all, which take many times as long."""
        design = self.design(knobs)
        return None if design is None else self._route.at(design, layout)

    def _design(self, wide: Knobs) -> Design | None:
        try:
            return untrained_design(self._config(wide), self._data, self._model)
        except MaskError:
            # What must stay free leaves no such sparsity.
            return None
        except NETWORK_ERRORS as error:
            if not (wide.sparsity or wide.filters):
                raise
            self.impossible[wide] = str(error)
            return None

    def _config(self, knobs: Knobs) -> Flow:
        return parse_config(joined(knobs.choice(self._document), self._document, knobs.settings()), "fit")


def powers_of_two(design: Design) -> Design:
    """Return `design` with the nearest power of two for each weight that is not zero."""

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
