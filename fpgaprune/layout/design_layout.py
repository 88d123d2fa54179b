"""`DesignLayout`: a design in one layout on one part, with its estimate; those of our Verilog, ever slower."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal

from msgspec import Struct

from fpgaprune.design import Design
from fpgaprune.estimate import verilog_price
from fpgaprune.layout.choice import require_family
from fpgaprune.measure import (
    ANALYTIC_SYNTH,
    OF_VERILOG,
    ChosenLayout,
    Estimate,
    Figure,
    Measurement,
    Occupancy,
    Resources,
    Stage,
    Taken,
    VerilogPrice,
    capacity_of,
    to_plain,
)
from fpgaprune.target import Part


class DesignLayout(Struct, frozen=True, dict=True):
    """A design in one layout on one part, with its estimate.

    Shares and limits are those of the part that the design was estimated for: another part has another estimate.

    Attributes:
        part: name of the part.
        capacity: resource -> count that the part has; None if it is not published.
        used: resources with their 80 % ranges.
        latency_cycles: from the first input to the last output.
        interval_cycles: between two samples.
        stage: the step that the resources estimate: a vendor's synthesis of an hls4ml project, or open synthesis of our
            own Verilog.
        whole: whether every layer has an estimate; if not, nobody can say that the design fits.
        name: of the layout, the same for every design of one network: `io_stream 2 3` is ladder 2, rung 3.
        settings: sections of a flow file to the keys that ask for this layout.
        fields: of `VerilogLayout`, that make it; empty for the usual one and for an hls4ml project.
        memories: small memories that are made of LUTs.
    """

    part: str
    capacity: Mapping[str, int | None]
    used: Resources[Figure]
    latency_cycles: int
    interval_cycles: int
    stage: Literal["synth", "synth(open)"] = "synth"
    whole: bool = True
    name: str = ""
    settings: Mapping[str, Any] = {}
    fields: Mapping[str, Any] = {}
    memories: int = 0

    @classmethod
    def of_project(cls, made: Estimate, name: str = "", settings: Mapping[str, Any] | None = None) -> DesignLayout:
        """Return the hls4ml project that `made` estimates."""
        figures = (made.total[ANALYTIC_SYNTH.step], made.latency_cycles, made.interval_cycles)
        part = made.target.part
        return cls(
            part.name, _published(part), *figures, whole=made.occupancy.whole, name=name, settings=settings or {}
        )

    @classmethod
    def of_verilog(cls, made: VerilogPrice, part: Part, **more: Any) -> DesignLayout:
        """Return our own Verilog on `part`; `more` are `name`, `settings` and `fields`."""
        figures = (made.resources, made.latency_cycles, made.interval_cycles)
        return cls(part.name, _published(part), *figures, "synth(open)", memories=made.memories, **more)

    @classmethod
    def of_chosen(cls, chosen: ChosenLayout, part: Part, **more: object) -> DesignLayout:
        """Return our own Verilog in the layout that was chosen for `part`."""
        return cls.of_verilog(chosen.price, part, fields=chosen.settings, **more)

    @cached_property
    def occupancy(self) -> Occupancy:
        """Share of each resource of the part that the layout takes."""
        return Occupancy.of(self.used, self.part, Resources(**self.capacity), self.whole)

    @cached_property
    def nearest_limit(self) -> Taken | None:
        """The resource whose upper end is nearest to, or furthest beyond, its capacity; None without a capacity."""
        return self.occupancy.nearest_limit("high")

    @property
    def share(self) -> float:
        """Upper end / capacity of the nearest limit; 0 if no capacity is known."""
        return 0.0 if self.nearest_limit is None else self.nearest_limit.share("high")

    @property
    def resource(self) -> str:
        """The resource of the nearest limit."""
        return "lut" if self.nearest_limit is None else self.nearest_limit.resource

    @cached_property
    def size(self) -> float:
        """The sum of upper end / capacity of all resources."""
        return self.occupancy.size("high")

    @property
    def fills_part(self) -> bool:
        """Whether it was chosen to be as fast as the part allows, so that a smaller network is faster, not smaller."""
        return self.settings.get("measure", {}).get("part") is not None

    @property
    def fits(self) -> bool | None:
        """Whether the middles of the ranges fit; None if that is not known."""
        return self.occupancy.fits

    @property
    def fits_upper(self) -> bool | None:
        """Whether the upper ends of the ranges fit; None if that is not known."""
        return self.occupancy.fits_upper

    @property
    def measured(self) -> Measurement[Figure]:
        """The resources of the whole design, with their stage."""
        return Measurement(Stage(f"analytic_{self.stage}"), None, self.used)

    def counts(self, end: Literal["low", "value", "high"] = "value") -> dict[str, int | None]:
        """Map resource to the middle of its estimate, or to one end; None is unknown."""
        figures = {name: self.used[name] for name in OF_VERILOG}
        return {name: None if figure is None else getattr(figure, end) for name, figure in figures.items()}

    def to_json(self) -> dict[str, Any]:
        """Return the estimate and its verdicts as JSON data."""
        names = ("part", "capacity", "used", "latency_cycles", "interval_cycles", "fits", "fits_upper", "stage")
        return {name: to_plain(getattr(self, name)) for name in names} | ({} if self.whole else {"whole": False})


def _published(part: Part) -> dict[str, int | None]:
    there = capacity_of(part)
    return {name: there[name] for name in OF_VERILOG}


# Cycles for each sample, as multiples of the fewest that a design can have.
SLOWER = (4, 16, 64, 256)


def at_interval(design: Design, part: Part, interval: int | None = None, name: str = "") -> DesignLayout:
    """Lay all layers out by one rule, with `interval` cycles for each sample; the fewest possible unless given.

    Raises:
        EstimateError: there is no estimate of our Verilog for the part's family.
        UnsupportedLayerError, DesignError, RtlError: as for `fpgaprune.to_verilog`.
    """
    made = verilog_price(design, require_family(part), interval=interval or 0)
    return DesignLayout.of_verilog(made, part, name=name, fields={} if interval is None else {"interval": interval})


def slower_layouts(design: Design, part: Part, factors: Sequence[int] | None = None) -> Iterator[DesignLayout]:
    """Yield layouts of `design` from the shortest interval to ever longer ones, by one rule for all layers.

    Their names are the multiples of the fewest cycles: `0` for the first, then `4`, `16` and so on. `factors`
    picks some.

    Raises:
        EstimateError, UnsupportedLayerError, DesignError, RtlError: as for `at_interval`.
    """
    first = at_interval(design, part, name="0")
    for factor in (0, *SLOWER):
        if factors is not None and factor not in factors:
            continue
        interval = factor * max(first.interval_cycles, 1)
        yield at_interval(design, part, interval, name=str(factor)) if factor else first
