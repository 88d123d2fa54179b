"""`Advice`: what a design lacks on its part, and what each change would bring."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct

from fpgaprune.measure.estimate import Estimate
from fpgaprune.measure.measurement import Measurement
from fpgaprune.measure.plain import from_plain, to_plain
from fpgaprune.measure.resources import ESTIMATED, Figure, Resources, capacity_of
from fpgaprune.measure.stage import ANALYTIC_SYNTH

# Where a change is made.
FLOW, MODEL, COMMAND = "flow file", "model", "command"


class LayerShare(Struct, frozen=True):
    """One layer's part of a resource.

    Attributes:
        layer: its name.
        kind: of the layer.
        used: count of the layer.
        share: the count as a fraction of the whole design's.
    """

    layer: str
    kind: str
    used: int
    share: float


class Shortage(Struct, frozen=True):
    """A resource of which the design needs more than the part has, or may need more.

    Attributes:
        resource: its name, as `lut`.
        used: the estimate with its 80 % range.
        capacity: of the part.
        layers: those that take most of it, the largest first.
    """

    resource: str
    used: Figure
    capacity: int
    layers: tuple[LayerShare, ...]

    @property
    def fits(self) -> bool:
        """Whether the middle of the estimate stays within the capacity; the upper end of its range does not."""
        return self.used.value <= self.capacity


class Prediction(Struct, frozen=True):
    """What the estimator says of a design: resources after logic synthesis, cycles, whether it fits its part.

    Attributes:
        part: name of the part.
        capacity: count by resource that the part offers; None where it is not published.
        used: resources with their 80 % ranges.
        latency_cycles: of the whole design.
        interval_cycles: of the whole design.
        fits: whether the middles of the ranges fit; None where no capacity is known.
        fits_upper: whether the upper ends of the ranges fit; None where no capacity is known.
        stage: the step that the resources are an estimate of.
    """

    part: str
    capacity: Mapping[str, int | None]
    used: Resources[Figure]
    latency_cycles: int
    interval_cycles: int
    fits: bool | None
    fits_upper: bool | None
    stage: Literal["synth"] = "synth"

    @classmethod
    def of(cls, made: Estimate) -> Prediction:
        """The figures of an estimate."""
        part, used = made.target.part, made.total[ANALYTIC_SYNTH.step]
        capacity = {name: capacity_of(part)[name] for name in ESTIMATED}
        return cls(part.name, capacity, used, made.latency_cycles, made.interval_cycles, made.fits, made.fits_upper)

    @property
    def whole(self) -> Measurement[Figure]:
        """The resources of the whole design, with their stage."""
        return Measurement(ANALYTIC_SYNTH, None, self.used)

    @property
    def excess(self) -> float:
        """The upper end over the capacity, of the resource that is furthest beyond; 0 where none is known."""
        known = [(used.high, there) for _, used, there in self.used.against(Resources(**self.capacity)) if used.high]
        return max((high / there if there else float("inf") for high, there in known), default=0.0)


class Suggestion(Struct, frozen=True):
    """One change, and what it would bring.

    Attributes:
        knob: what is turned, as `reuse_factor` or `strategy + weight_bits`.
        change: what to write, word for word. For a flow file it is a piece of TOML that replaces those keys.
        place: where to write it: `flow file`, `model` or `command`.
        cost: in words, as `latency x6.2, interval x6.0; the same function`.
        keeps_function: whether the network computes the same; if not, its accuracy must be measured again.
        after: the design as it would be; None where nothing prices it.
    """

    knob: str
    change: str
    place: str
    cost: str
    keeps_function: bool
    after: Prediction | None

    @property
    def fits(self) -> bool | None:
        """Whether the changed design fits by the middle of its estimate; None where that is unknown."""
        return None if self.after is None else self.after.fits

    @property
    def fits_upper(self) -> bool | None:
        """Whether the upper end of the estimate fits, too; None where that is unknown."""
        return None if self.after is None else self.after.fits_upper


class Advice(Struct, frozen=True):
    """What a design lacks on its part, and what would help, the best first.

    Attributes:
        design: its name.
        part: name of the part that it is to fit.
        now: the design as it is.
        shortages: resources of which the part has too few, or too few for the upper end of the estimate. The one that
            is furthest beyond stands first. Empty where the upper end fits, and where no capacity of the part is known.
        suggestions: in the order of `fpgaprune.advice.order`; empty where there is no shortage.
        notes: sentences about knobs that bring nothing here.
    """

    design: str
    part: str
    now: Prediction
    shortages: tuple[Shortage, ...] = ()
    suggestions: tuple[Suggestion, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def needed(self) -> bool:
        """Whether something must change for the design to fit for certain, as far as the estimate can tell."""
        return bool(self.shortages)

    def to_json(self) -> dict[str, Any]:
        """The whole advice as JSON data, with what fits."""
        data: dict[str, Any] = to_plain(self)
        for row, suggestion in zip(data["suggestions"], self.suggestions, strict=True):
            row |= {"fits": suggestion.fits, "fits_upper": suggestion.fits_upper}
        for row, shortage in zip(data["shortages"], self.shortages, strict=True):
            row["fits"] = shortage.fits
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Advice:
        """The advice that `to_json` gave.

        Raises:
            ReportError: the data has another form.
        """
        return from_plain(data, cls, "advice")
