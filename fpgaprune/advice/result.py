"""`Advice`: what a design lacks on its part, and what each change would bring."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fpgaprune.measure import ESTIMATED, Estimate, Figure, Resources, capacity_of, to_plain
from fpgaprune.target import Part, Target

# The analytic stage that every figure of an advice is of.
STAGE = "synth"
# Where a change is made.
FLOW, MODEL, COMMAND = "flow file", "model", "command"


@dataclass(frozen=True, slots=True)
class LayerShare:
    """One layer's part of a resource: `used` of it, which is the fraction `share` of the whole design's."""

    layer: str
    kind: str
    used: int
    share: float

    def to_json(self) -> dict[str, Any]:
        """The fields by name."""
        return {"layer": self.layer, "kind": self.kind, "used": self.used, "share": self.share}


@dataclass(frozen=True, slots=True)
class Shortage:
    """A resource of which the design needs more than the part has, or may need more.

    Attributes:
        resource: its name, as `lut`. used: the estimate with its 80 % range. capacity: of the part.
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

    def to_json(self) -> dict[str, Any]:
        """The fields by name."""
        return {
            "resource": self.resource,
            "used": to_plain(self.used),
            "capacity": self.capacity,
            "fits": self.fits,
            "layers": [layer.to_json() for layer in self.layers],
        }


@dataclass(frozen=True, slots=True)
class Prediction:
    """What the estimator says of a design: resources after logic synthesis, cycles, whether it fits its part.

    Attributes:
        part: on which. used: resources with their 80 % ranges. latency_cycles, interval_cycles: of the whole design.
        fits: by the middle of the ranges. fits_upper: by their upper ends. None where no capacity is known.
    """

    part: Part
    used: Resources[Figure]
    latency_cycles: int
    interval_cycles: int
    fits: bool | None
    fits_upper: bool | None

    @classmethod
    def of(cls, made: Estimate) -> Prediction:
        """The figures of an estimate."""
        cycles = (made.latency_cycles, made.interval_cycles)
        return cls(made.target.part, made.total[STAGE], *cycles, made.fits, made.fits_upper)

    @property
    def excess(self) -> float:
        """The upper end over the capacity, of the resource that is furthest beyond; 0 where none is known."""
        known = [(used.high, there) for _, used, there in self.used.against(capacity_of(self.part)) if used.high]
        return max((high / there if there else float("inf") for high, there in known), default=0.0)

    def to_json(self) -> dict[str, Any]:
        """The fields by name, the part as its name and capacities, with the stage of the figures."""
        names = ("latency_cycles", "interval_cycles", "fits", "fits_upper")
        return {
            **{name: getattr(self, name) for name in names},
            "part": self.part.name,
            "capacity": {name: capacity_of(self.part)[name] for name in ESTIMATED},
            "stage": STAGE,
            "used": to_plain(self.used),
        }


@dataclass(frozen=True, slots=True)
class Suggestion:
    """One change, and what it would bring.

    Attributes:
        knob: what is turned, as `reuse_factor` or `strategy + weight_bits`.
        change: what to write, word for word; of a flow file, a piece of TOML that takes the place of those keys.
        place: where: `flow file`, `model` or `command`.
        cost: in words, as `latency x6.2, interval x6.0; the same bits`.
        keeps_function: whether the network computes the same; else its accuracy must be measured again.
        before: the design as it is. after: as it would be; None where nothing prices it.
    """

    knob: str
    change: str
    place: str
    cost: str
    keeps_function: bool
    before: Prediction
    after: Prediction | None

    @property
    def fits(self) -> bool | None:
        """Whether the changed design fits by the middle of its estimate; None where that is unknown."""
        return None if self.after is None else self.after.fits

    @property
    def fits_upper(self) -> bool | None:
        """Whether the upper end of the estimate fits, too; None where that is unknown."""
        return None if self.after is None else self.after.fits_upper

    def to_json(self) -> dict[str, Any]:
        """The fields by name."""
        return {
            "knob": self.knob,
            "change": self.change,
            "place": self.place,
            "cost": self.cost,
            "keeps_function": self.keeps_function,
            "fits": self.fits,
            "fits_upper": self.fits_upper,
            "after": None if self.after is None else self.after.to_json(),
        }


@dataclass(frozen=True, slots=True)
class Advice:
    """What a design lacks on its target, and what would help, the best first.

    Attributes:
        design: its name. target: the part that it is to fit.
        now: the design as it is.
        shortages: resources of which the part has too few, or too few for the upper end of the estimate; the one that
            is furthest beyond first. Empty where the upper end fits, and where no capacity of the part is known.
        suggestions: in the order of `fpgaprune.advice.order`; empty where there is no shortage.
        notes: knobs that bring nothing here.
    """

    design: str
    target: Target
    now: Prediction
    shortages: tuple[Shortage, ...] = ()
    suggestions: tuple[Suggestion, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def needed(self) -> bool:
        """Whether something is to be changed for the design to fit for certain, as far as the estimate can tell."""
        return bool(self.shortages)

    def to_json(self) -> dict[str, Any]:
        """The whole advice as JSON data."""
        return {
            "design": self.design,
            "part": self.target.part.name,
            "now": self.now.to_json(),
            "shortages": [shortage.to_json() for shortage in self.shortages],
            "suggestions": [suggestion.to_json() for suggestion in self.suggestions],
            "notes": list(self.notes),
        }
