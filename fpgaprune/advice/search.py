"""`Search`: priced changes of one design, also to a larger part or to our own Verilog."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from msgspec import structs

from fpgaprune.advice.flow_file import OwnFlow
from fpgaprune.advice.narrower import narrower_activations, narrower_everything, narrower_weights
from fpgaprune.advice.order import cost_text
from fpgaprune.advice.sparser import global_average, sparser
from fpgaprune.design import Design
from fpgaprune.errors import DesignError, EstimateError, RtlError, TargetError, UnsupportedLayerError
from fpgaprune.estimate import Calibration, design_features, price
from fpgaprune.fabric import family_of
from fpgaprune.layout import (
    FLOW,
    MODEL,
    DesignLayout,
    Edit,
    Shortage,
    Suggestion,
    choose_layout,
    flow_text,
    ladders,
    one_layer_layouts,
    other_io_type,
    priced_strategies,
    products,
)
from fpgaprune.measure import Estimate, occupancy_of
from fpgaprune.target import Part, Target, find_part, parts_like


def fitting_parts(target: Target, now: Estimate, price: Callable[[Target], Estimate]) -> Iterator[Estimate]:
    """Yield the estimate on the smallest part of the target's family that holds the design, then on the vendor's.

    The upper end of the estimate must fit; if it fits no part, the middle must. Parts are tried in the order of
    their LUTs. There are at most two estimates, of different parts.

    Args:
        target: the target now.
        now: estimate of the design on that target.
        price: gives the estimate of the design on another target.
    """
    by_size = parts_like(target.part)
    seen: set[str] = set()
    for parts in ([part for part in by_size if part.family == target.part.family], by_size):
        made = _smallest(parts, target, now, price)
        if made is not None and made.target.part.name not in seen:
            seen.add(made.target.part.name)
            yield made


def _smallest(parts: list[Part], target: Target, now: Estimate, price: Callable[[Target], Estimate]) -> Estimate | None:
    middle = None
    for part in parts:
        # Estimates for other families differ by less than half, so most parts need no estimate.
        if any(row.used > 2 * row.capacity for row in occupancy_of(now.total["synth"], part).taken):
            continue
        made = price(replace(target, part=part, order_number=part.name))
        if made.fits_upper:
            return made
        if made.fits and middle is None:
            middle = made
    return middle


KNOB = "our Verilog"


def own_verilog(design: Design, target: Target, flow: OwnFlow) -> tuple[Edit, DesignLayout] | None:
    """Return the sections of a flow file that lay `design` out as our Verilog on the target's part, and its estimate.

    None if open synthesis does not know the part, if there is no such Verilog, or if the flow asks for it already.
    """
    family, asked = family_of(target.part), flow.document.get("measure", {})
    named = str(flow.document.get("target", {}).get("part", target.order_number))
    if family is None or asked.get("part") is not None:
        return None
    try:
        find_part(named)
        chosen = choose_layout(design, target.part, **{name: asked[name] for name in ("share",) if name in asked})
    except (TargetError, EstimateError, RtlError, UnsupportedLayerError, DesignError):
        return None
    keys = {"families": list(dict.fromkeys([*asked.get("families", ()), family])), "part": named}
    # With an interval the layout would be the smallest that keeps it.
    still = {"interval": 0} if asked.get("interval") else {}
    return Edit((KNOB,), {"measure": {**keys, **still}}, design), DesignLayout.of_chosen(chosen, target.part)


# A layer that takes this share of a short resource gets a suggestion of its own.
_DOMINANT = 0.4
# A change that lowers the worst resource by less than this share is no suggestion.
_LEAST_GAIN = 0.01
# A change that does not fit is dropped if its latency is more than this many times longer.
_LONGEST = 100


@dataclass(frozen=True)
class Priced:
    """A changed design with its price."""

    edit: Edit
    made: DesignLayout


class Search:
    """The knobs of one design on one target.

    Attributes:
        notes: sentences about knobs that bring nothing.
    """

    def __init__(
        self, design: Design, now: Estimate, trained: Design | None, calibrated: Calibration, flow: OwnFlow
    ) -> None:
        self.design, self.trained, self.calibrated, self.flow = design, trained, calibrated, flow
        self.target, self.estimate, self.now = now.target, now, DesignLayout.of_project(now)
        self.notes: list[str] = []

    def knobs(self, worst: Shortage) -> Iterator[Suggestion]:
        """Yield a suggestion for each knob that helps; `worst` is the worst shortage."""
        design = self.design
        other = other_io_type(design)
        alternatives: list[Iterable[Edit]] = [] if other is None else [[other], *self._layouts(other)]
        yield from self._verilog()
        for priced in self._relaid:
            yield from self._suggestion(priced)
        alternatives += [
            *self._dominant(worst),
            *(narrower_weights(design), narrower_activations(design), narrower_everything(design)),
        ]
        for edits in alternatives:
            yield from self._suggested(edits)
        sparse = list(self._suggested(sparser(design, self.trained, self.flow)))
        if not sparse:
            self.notes.append("more zeros bring nothing here: the layout stores and multiplies them, or few are left")
        yield from sparse
        yield from self._structure()
        yield from self._parts()

    def together(self) -> Iterator[Suggestion]:
        """Yield several knobs at once: another layout with fewer bits, more zeros, or both, each as mild as possible.

        If none makes the design fit, the result is the nearest one.
        """
        nearest: list[Priced] = []
        for bases in self._bases():
            # The bases go from mild to strong: if the strongest does not fit, the others need no price.
            strongest = self._best_layout(bases[-1]) if bases else None
            if strongest is None:
                continue
            if not strongest.made.fits_upper:
                nearest.append(strongest)
                continue
            found = (self._best_layout(base) for base in bases)
            yield from self._suggestion(next(p for p in found if p is not None and p.made.fits_upper))
            return
        if nearest:
            yield from self._suggestion(min(nearest, key=lambda priced: (not priced.made.fits, priced.made.share)))

    def _bases(self) -> Iterator[list[Edit]]:
        """Yield groups of changes that cost accuracy, mild to strong, in each io type: fewer bits, more zeros, both."""
        other = other_io_type(self.design)
        for start in (None,) if other is None else (None, other):
            design = self.design if start is None else start.design
            sparse = list(sparser(design, self.trained, self.flow))
            for edits in (
                list(narrower_weights(design)),
                list(narrower_everything(design)),
                sparse,
                [edit.then(more) for edit in sparse for more in _narrower(edit.design)],
            ):
                yield edits if start is None else [start.then(edit) for edit in edits]

    def _best_layout(self, base: Edit) -> Priced | None:
        def rank(priced: Priced) -> tuple[float, ...]:
            made = priced.made
            return (not made.fits_upper, not made.fits, made.latency_cycles if made.fits else made.share)

        return min(self._best_of_each(base), key=rank, default=None)

    @cached_property
    def _relaid(self) -> list[Priced]:
        """The design in the best layout of each ladder."""
        return self._best_of_each(None)

    def _best_of_each(self, base: Edit | None) -> list[Priced]:
        return [priced for ladder in self._layouts(base) if (priced := self._mildest(ladder)) is not None]

    def _layouts(self, base: Edit | None) -> Iterator[Iterable[Edit]]:
        """Yield ladders of layouts, fast to small, of the design, or of the one that `base` makes if it is given."""
        design = self.design if base is None else base.design
        for ladder in ladders(design):
            yield ladder if base is None else (base.then(edit) for edit in ladder)

    def _dominant(self, worst: Shortage) -> Iterator[Iterable[Edit]]:
        """Reuse factors of the layer that takes most of the resource that is short."""
        largest = worst.layers[0] if worst.layers else None
        if largest is None or largest.share < _DOMINANT:
            return
        if largest.layer in {layer.name for layer in products(self.design)}:
            for strategy in priced_strategies(self.design):
                yield one_layer_layouts(self.design, largest.layer, strategy)

    def _structure(self) -> Iterator[Suggestion]:
        found = global_average(self.design)
        priced = None if found is None else self._price(found[0])
        if found is None or priced is None or not self._brings(priced.made):
            return
        cost = cost_text(self.now, priced.made, keeps_function=True)
        yield Suggestion(found[0].knobs[0], found[1], MODEL, cost, True, priced.made)

    def _verilog(self) -> Iterator[Suggestion]:
        """Yield our own Verilog in the layout for the part as a suggestion, if it brings something."""
        found = own_verilog(self.design, self.target, self.flow)
        if found is not None and self._brings(found[1]):
            edit, made = found
            cost = f"our own Verilog instead of an hls4ml project; {cost_text(self.now, made, edit.keeps_function)}"
            yield Suggestion(edit.knobs[0], flow_text(self.flow.keys(edit)), FLOW, cost, edit.keeps_function, made)

    def _parts(self) -> Iterator[Suggestion]:
        """Yield the smallest parts that hold the design as it is, and in its smallest layout."""
        same = Edit(("part",), {}, self.design)
        yield from self._other_parts(same)
        smallest = min(self._relaid, key=lambda priced: priced.made.share, default=None)
        # A layout that fits the own part needs no other part.
        if smallest is not None and not smallest.made.fits:
            yield from self._other_parts(same.then(smallest.edit))

    def _other_parts(self, edit: Edit) -> Iterator[Suggestion]:
        def on(target: Target) -> Estimate:
            return price(design_features(edit.design, target), target, self.calibrated)

        for made in fitting_parts(self.target, on(self.target), on):
            part = made.target.part
            chosen = edit.then(Edit((), {"target": {"part": part.name}}, edit.design))
            for suggestion in self._suggestion(Priced(chosen, DesignLayout.of_project(made)), made.target):
                yield structs.replace(suggestion, cost=f"another device ({part.family}); {suggestion.cost}")

    def _suggested(self, edits: Iterable[Edit]) -> Iterator[Suggestion]:
        priced = self._mildest(edits)
        if priced is not None:
            yield from self._suggestion(priced)

    def _suggestion(self, priced: Priced, target: Target | None = None) -> Iterator[Suggestion]:
        """Yield the suggestion of `priced` if it helps; its estimate is that of the design that the flow makes.

        `target` is that of the design now unless given.
        """
        edit, made, keys = priced.edit, priced.made, self.flow.keys(priced.edit)
        if self.flow.make is not None and self._brings(made):
            design = self.flow.make(keys)
            found = None if design is None else self._price(replace(edit, design=design), target)
            if found is None:
                return
            made = found.made
        if self._brings(made):
            cost = cost_text(self.now, made, edit.keeps_function)
            yield Suggestion(" + ".join(edit.knobs), flow_text(keys), FLOW, cost, edit.keeps_function, made)

    def _mildest(self, edits: Iterable[Edit]) -> Priced | None:
        """Return the first edit whose upper end fits, else the first that fits, else the one nearest to fitting."""
        best: Priced | None = None
        for edit in edits:
            priced = self._price(edit)
            if priced is None:
                continue
            if priced.made.fits_upper:
                return priced
            if not priced.made.fits and priced.made.latency_cycles > _LONGEST * self.now.latency_cycles:
                continue
            if best is None or (not best.made.fits and (priced.made.fits or priced.made.share < best.made.share)):
                best = priced
        return best

    def _price(self, edit: Edit, target: Target | None = None) -> Priced | None:
        target = replace(target or self.target, io_type=edit.design.io_type)
        try:
            made = price(design_features(edit.design, target), target, self.calibrated)
        except EstimateError:
            return None
        return Priced(edit, DesignLayout.of_project(made))

    def _brings(self, made: DesignLayout) -> bool:
        return made.share < (1 - _LEAST_GAIN) * self.now.share


def _narrower(design: Design) -> list[Edit]:
    """List edits to narrower weights and activations, or to narrower weights alone where there are none."""
    return list(narrower_everything(design)) or list(narrower_weights(design))
