"""`Route`: the kind of hardware that a search estimates: an hls4ml project, or our own Verilog."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

import numpy as np
from msgspec import structs

from fpgaprune.design import Design
from fpgaprune.errors import ConfigError, DesignError, EstimateError, RtlError, UnsupportedLayerError
from fpgaprune.estimate import estimate
from fpgaprune.fabric import family_of, placed_on
from fpgaprune.fit.limits import Limits, Ranking, Sized, luts_of
from fpgaprune.flow import Flow, HlsConfig, MeasureConfig, RunDirectory, TargetConfig
from fpgaprune.hls import COUNTING, can_count
from fpgaprune.layout import (
    DesignLayout,
    Edit,
    Settings,
    at_interval,
    choose_layout,
    every_layout,
    slower_layouts,
)
from fpgaprune.measure import RESOURCES, ChosenLayout, Measured, Resources
from fpgaprune.target import Part, Target, parts_like
from fpgaprune.vendor import find_reports

# A trial is estimated; no tool runs, and nobody asks what would make it fit.
_NOT_BUILT: dict[str, Any] = {"hls": {"simulate": 0, "build": []}, "estimate": {"advice": False}}
# Seconds of open synthesis with its simulation on a calm machine: of any design, and of each LUT.
_SYNTHESIS, _SYNTHESIS_OF_A_LUT = 10.0, 0.012
# So often a layout of each layer is chosen anew where place and route would find no room, each time for this share of
# what it may take.
_TIMES, _LESS = 3, 0.97
# For so many weights a layout of each layer is chosen within a second.
_MOST_WEIGHTS = 5_000
# The share of the room of place and route for a network: the serial port of a board takes LUTs too.
_ROOM = 0.93
# Steps of a vendor's tool whose reports count resources: the one before them only estimates.
_COUNTED = ("synth", "route")


class Route(Protocol):
    """Estimate designs as one kind of hardware."""

    name: ClassVar[str]
    """As the command line writes it."""
    knobs: ClassVar[tuple[str, ...]]
    """The knobs that this hardware can use."""
    stage: ClassVar[str]
    """What the figures are, in words."""
    counted_by: ClassVar[str]
    """What counts resources, in words."""

    @property
    def searched(self) -> dict[str, Any]:
        """Sections of a flow file to the keys of every trial."""

    def layouts(self, design: Design) -> list[DesignLayout]:
        """Return `design` in every layout that has an estimate, in both io types.

        Raises:
            EstimateError: none has.
        """

    def by_one_rule(self, design: Design) -> list[DesignLayout]:
        """Return the `layouts` that lay all layers out by one rule: to choose for each layer may take a minute."""

    def at(self, design: Design, name: str) -> DesignLayout | None:
        """Return the one of the `layouts` with this name, in less time; None if there is none."""

    def own(self, design: Design, config: Flow) -> DesignLayout:
        """Return `design` in the layout that `config` asks for.

        Raises:
            EstimateError: it has no estimate.
        """

    def counting(self, design: Design, document: Mapping[str, object]) -> dict[str, Any] | None:
        """Return what a whole run of the flow `document` needs too, so that a tool counts `design`; None if none can.

        Raises:
            ToolError: a variable points to a tool that is not there.
        """

    def counting_seconds(self, layout: Sized) -> float:
        """Estimate the seconds in which a tool counts what `layout` takes; 0 if nobody knows."""

    def measured(self, run: RunDirectory, config: Flow) -> Resources[int] | None:
        """Return what a tool counted in `run`, whose flow is `config`; None if none did."""

    def on(self, part: Part) -> Route:
        """Return the same route on another part."""


@dataclass(frozen=True)
class HlsRoute:
    """An hls4ml project, by the analytic estimate of logic synthesis."""

    target: Target
    name: ClassVar[str] = "hls"
    knobs: ClassVar[tuple[str, ...]] = ("sparsity", "filters", "weight_bits", "activation_bits")
    stage: ClassVar[str] = "analytic estimate of logic synthesis"
    counted_by: ClassVar[str] = "the vendor's tool"

    @property
    def searched(self) -> dict[str, Any]:
        """Sections that keep a trial from being simulated or built."""
        return _NOT_BUILT

    def layouts(self, design: Design) -> list[DesignLayout]:
        """Return `design` with each strategy and reuse factor."""
        found: list[DesignLayout] = []
        reason: EstimateError | None = None
        for name, edit in every_layout(design):
            try:
                found.append(self._estimated(edit.design, name, edit))
            except EstimateError as error:
                reason = error
        if not found:
            raise reason or EstimateError("no layer of the network multiplies by weights, so nothing can be laid out")
        return found

    def by_one_rule(self, design: Design) -> list[DesignLayout]:
        """Return all layouts: each has one strategy and reuse factor."""
        return self.layouts(design)

    def at(self, design: Design, name: str) -> DesignLayout | None:
        """Return `design` with one strategy and reuse factor."""
        for other, edit in every_layout(design):
            if other == name:
                with suppress(EstimateError):
                    return self._estimated(edit.design, name, edit)
        return None

    def own(self, design: Design, config: Flow) -> DesignLayout:  # noqa: ARG002
        """Return `design` as it is: an hls4ml project holds its layout."""
        return self._estimated(design)

    def counting(self, design: Design, document: Mapping[str, Any]) -> dict[str, Any] | None:
        """Ask for a build by the vendor's tool, if it is found; steps that the flow itself asks for stay in force."""
        asked = document.get("hls", {}).get("build")
        if asked is None:
            return {"hls": {"build": list(COUNTING)}} if can_count(design) else None
        return {} if asked else None

    def counting_seconds(self, layout: Sized) -> float:  # noqa: ARG002
        """Return 0: minutes or hours, and nothing says how many."""
        return 0.0

    def measured(self, run: RunDirectory, config: Flow) -> Resources[int] | None:
        """Return what the vendor's tool counted after logic synthesis, or after place and route."""
        if not config[HlsConfig].build:
            return None
        reports = [report for report in find_reports(run.file("hls")) if report.stage.step in _COUNTED]
        counted = [report.total for report in reports if report.total.lut is not None]
        return counted[-1] if counted else None

    def on(self, part: Part) -> Route:
        """Return the same project for `part`."""
        return HlsRoute(replace(self.target, part=part, order_number=part.name))

    def _estimated(self, design: Design, name: str = "", edit: Edit | None = None) -> DesignLayout:
        made = estimate(design, replace(self.target, io_type=design.io_type))
        if made.fits is None:
            raise EstimateError(
                f"whether {design.name} fits {self.target.part.name} is unknown; wanted a part whose capacity is "
                "listed, and an estimate for every layer"
            )
        return DesignLayout.of_project(made, name, None if edit is None else edit.settings)


@dataclass(frozen=True)
class VerilogRoute:
    """Our own Verilog, by its estimate for open synthesis of one family; the best network is synthesised.

    Attributes:
        part: the part.
        family: its family for open synthesis.
        share: of each resource that a layout chosen for the part may take, upper end of the estimate.
    """

    part: Part
    family: str
    share: float = 0.8
    name: ClassVar[str] = "verilog"
    knobs: ClassVar[tuple[str, ...]] = ("sparsity", "filters", "weight_bits", "activation_bits", "hold")
    stage: ClassVar[str] = "estimate of open synthesis"
    counted_by: ClassVar[str] = "open synthesis"

    @property
    def searched(self) -> dict[str, Any]:
        """Sections that keep a trial from being simulated, built or synthesised."""
        return {**_NOT_BUILT, "measure": {"families": []}}

    def layouts(self, design: Design) -> list[DesignLayout]:
        """Return `design` at its shortest interval and at longer ones; its Verilog is the same in both io types."""
        return list(self.each_layout(design))

    def by_one_rule(self, design: Design) -> list[DesignLayout]:
        """Return `design` at each interval for all layers alike, where place and route has room."""
        laid = slower_layouts(design, self.part)
        return [self._named(layout, layout.name) for layout in laid if self._fullness(layout) <= 1]

    def at(self, design: Design, name: str) -> DesignLayout | None:
        """Return `design` at one interval."""
        factors = (int(name),) if name.isdigit() else None
        return next((layout for layout in self.each_layout(design, factors) if layout.name == name), None)

    def own(self, design: Design, config: Flow) -> DesignLayout:
        """Return `design` with the interval of `[measure]`."""
        asked = config[MeasureConfig]
        if asked.part is None:
            return self._named(at_interval(design, self.part, asked.interval))
        interval = asked.interval or None
        try:
            chosen = choose_layout(design, self.part, share=asked.share, interval=interval)
        except EstimateError:
            # Trained, the network takes more than was estimated: the nearest layout says how much.
            return min(map(self._named, slower_layouts(design, self.part)), key=lambda layout: layout.share)
        return self._as_chosen(chosen, "", asked.interval)

    def counting(self, design: Design, document: Mapping[str, object]) -> dict[str, Any] | None:  # noqa: ARG002
        """Ask for nothing more: each layout asks for open synthesis."""
        return {}

    def counting_seconds(self, layout: Sized) -> float:
        """Estimate the seconds of synthesis and simulation on a calm machine, by the LUTs of the estimate."""
        return _SYNTHESIS + _SYNTHESIS_OF_A_LUT * luts_of(layout)

    def measured(self, run: RunDirectory, config: Flow) -> Resources[int] | None:  # noqa: ARG002
        """Return what open synthesis counted."""
        content = run.read_json("measure.json")
        found = None if content is None else Measured.from_json(content).synthesis.get(self.family)
        return None if found is None else found.total

    def on(self, part: Part) -> Route:
        """Return the same Verilog on `part`, estimated for the same family."""
        return replace(self, part=part)

    def each_layout(self, design: Design, factors: Sequence[int] | None = None) -> Iterator[DesignLayout]:
        """Yield the layouts of `design`; only those with the intervals `factors`, if they are given."""
        fits, crowded = False, []
        for layout in slower_layouts(design, self.part, factors):
            if layout.share <= self.share and self._fullness(layout) > 1:
                crowded.append(layout)
                continue
            fits |= layout.share <= self.share
            yield self._of_each_layer(design, layout) or self._named(layout, layout.name)
        if not fits:
            # Choosing for each layer takes seconds, so it is done where one rule for all layers is not enough.
            with suppress(EstimateError):
                yield self._as_chosen(self._chosen(design), "part")
                return
            for layout in crowded:
                yield self._named(layout, layout.name)

    def _of_each_layer(self, design: Design, layout: DesignLayout) -> DesignLayout | None:
        """Return a smaller layout with the interval of `layout`, chosen for each layer; None if there is none.

        By one rule a Dense layer behind positions is folded, and often takes more multipliers than it saves LUTs.
        """
        if not layout.counts()["dsp"] or count_kept_weights(design) > _MOST_WEIGHTS:
            return None
        with suppress(EstimateError):
            chosen = choose_layout(design, self.part, share=self.share, interval=layout.interval_cycles)
            found = self._as_chosen(chosen, layout.name, layout.interval_cycles)
            if found.size < layout.size and found.share <= self.share and self._fullness(found) <= 1:
                return found
        return None

    def _chosen(self, design: Design) -> ChosenLayout:
        """Choose a layout for each layer so that place and route has room too, if there is one.

        Raises:
            EstimateError: no layout fits.
        """
        chosen = choose_layout(design, self.part, share=self.share, upper=True)
        least = 0.0
        for _ in range(_TIMES):
            full = self._fullness(DesignLayout.of_chosen(chosen, self.part))
            if full <= 1:
                break
            # Between a share that has no layout and one whose layout is too large.
            share = round(max(_LESS * chosen.share / full, (least + chosen.share) / 2 if least else 0.0), 3)
            try:
                chosen = choose_layout(design, self.part, share=share, upper=True)
            except EstimateError:
                least = share
        return chosen

    def _fullness(self, layout: DesignLayout) -> float:
        """Return what place and route takes over what it bears, of the kind of cell nearest to its limit.

        On Gowin a register leads through a LUT, so that registers alone can fill the part. 0 where no open tool places.
        """
        placed = placed_on(self.part, layout.counts(), layout.memories)
        taken = [(row, min(self.share, _ROOM * row.room) if row.kind in RESOURCES else row.room) for row in placed]
        return max((row.share / room for row, room in taken), default=0.0)

    def _as_chosen(self, chosen: ChosenLayout, name: str, interval: int = 0) -> DesignLayout:
        asked = {"interval": interval, "part": chosen.part, "share": chosen.share}
        return self._named(DesignLayout.of_chosen(chosen, self.part), name, asked)

    def _named(self, layout: DesignLayout, name: str = "", asked: Settings | None = None) -> DesignLayout:
        """Return `layout` with the sections of a flow file that ask for it: `asked` in `[measure]`, or its interval."""
        layout.occupancy.require_nearest()
        measure = {"families": [self.family], **(asked or {"interval": layout.fields.get("interval", 0)})}
        return structs.replace(layout, name=name, settings={"measure": measure})


def count_kept_weights(design: Design) -> int:
    """Count the weights of `design` that are not zero, without biases."""
    arrays = (array for layer in design.layers for role, array in layer.weights.items() if role != "bias")
    return sum(int(np.count_nonzero(array)) for array in arrays)


def smallest_part(route: Route, design: Design, config: Flow, share: float) -> Part | None:
    """Return the smallest listed part of the same maker and family that takes `design` in its layout, or None.

    The upper end of the estimate may take at most `share` of each resource.
    """
    target = config[TargetConfig].target()
    for part in parts_like(target.part):
        if family_of(part) == family_of(target.part):
            with suppress(EstimateError):
                if route.on(part).own(design, config).share <= share:
                    return part
    return None


def verilog_instead(route: Route, design: Design, target: Target, limits: Limits) -> DesignLayout | None:
    """Return the fastest layout of `design` as our Verilog that keeps `limits`, if `route` is another; else None."""
    family = family_of(target.part)
    if route.name == VerilogRoute.name or family is None:
        return None
    ranking = Ranking(limits, target.clock_ns)
    # The fastest one comes first, and the last ones take seconds to choose.
    found = VerilogRoute(target.part, family, limits.share).each_layout(design)
    with suppress(EstimateError, RtlError, UnsupportedLayerError, DesignError):
        return next((one for one in found if ranking.keeps_time(one) and one.share <= limits.share), None)
    return None


def find_route(name: str | None, target: Target, share: float = 0.8) -> Route:
    """Return the route `name`, `hls` or `verilog`, to `target`, of which a layout may take `share`.

    Without a name, or for `auto`, it is `verilog` for parts of Lattice and Gowin, whose tools compile no HLS; else it
    is `hls`.

    Raises:
        ConfigError: there is no such route, or open synthesis does not know the part.
    """
    family = family_of(target.part)
    if name in (None, "auto"):
        name = VerilogRoute.name if family and not target.part.compiles_hls else HlsRoute.name
    if name == HlsRoute.name and not target.part.compiles_hls:
        raise ConfigError(f"no tool of {target.part.vendor} builds an hls4ml project; take the route 'verilog'")
    if name == HlsRoute.name:
        return HlsRoute(target)
    if name != VerilogRoute.name:
        raise ConfigError(f"route is {name!r}; wanted 'auto', {HlsRoute.name!r} or {VerilogRoute.name!r}")
    if family is None:
        raise ConfigError(f"part {target.part.name!r} is of no family that open synthesis knows; take the route 'hls'")
    return VerilogRoute(target.part, family, share)
