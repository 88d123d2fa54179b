"""`Estimate`: what a design will cost on a target, stage by stage and layer by layer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fpgaprune.estimate.digits import Products
from fpgaprune.target import Target

STAGES = ("csynth", "synth")
RESOURCES = ("lut", "ff", "dsp", "bram18")


@dataclass(frozen=True, slots=True)
class Figure:
    """A count with the interval in which four of five true values are expected."""

    value: int
    low: int
    high: int

    def to_json(self) -> dict[str, int]:
        """The three numbers by name."""
        return {"value": self.value, "low": self.low, "high": self.high}


@dataclass(frozen=True, slots=True)
class Usage:
    """Resources of one stage: what the HLS report will say (`csynth`) or logic synthesis will leave (`synth`)."""

    lut: Figure
    ff: Figure
    dsp: Figure
    bram18: Figure

    def to_json(self) -> dict[str, dict[str, int]]:
        """Figures by resource."""
        return {name: getattr(self, name).to_json() for name in RESOURCES}


@dataclass(frozen=True, slots=True)
class LayerEstimate:
    """One layer of an `Estimate`.

    Attributes:
        name, kind: as in the design. multiplications: by kind of constant, None where the layer has none.
        csynth, synth: resources. latency_cycles, interval_cycles: of this layer alone.
        zeros_note: what its zeros save and what they do not; empty where there is nothing to say.
    """

    name: str
    kind: str
    multiplications: Products | None
    csynth: Usage
    synth: Usage
    latency_cycles: int
    interval_cycles: int
    zeros_note: str = ""

    def to_json(self) -> dict[str, Any]:
        """The layer as JSON data."""
        products = self.multiplications
        return {
            "name": self.name,
            "kind": self.kind,
            "multiplications": None
            if products is None
            else {
                "total": products.total,
                "zero": products.zero,
                "power_of_two": products.power_of_two,
                "few_digits": products.few,
                "many_digits": products.many,
            },
            "csynth": self.csynth.to_json(),
            "synth": self.synth.to_json(),
            "latency_cycles": self.latency_cycles,
            "interval_cycles": self.interval_cycles,
        }


@dataclass(frozen=True, slots=True)
class Binding:
    """The resource that runs out first.

    Attributes:
        resource: its name. layer: which uses most of it. used, capacity: of the whole design, of the part.
        stage: of the figures, always `synth`.
    """

    resource: str
    layer: str | None
    used: int
    capacity: int
    stage: str = "synth"

    def to_json(self) -> dict[str, Any]:
        """The fields by name."""
        return {name: getattr(self, name) for name in ("resource", "layer", "used", "capacity", "stage")}


@dataclass(frozen=True, slots=True)
class Estimate:
    """The price of a design on a target, without a vendor tool.

    Attributes:
        design: its name. target: what it was priced for.
        total: `Usage` by stage. layers: in the design's order.
        latency_cycles: from the first input to the last output. interval_cycles: between two inferences.
        fits: whether the `synth` figures stay within every known capacity of the part; None where none is known.
        binding: the resource nearest to, or furthest beyond, its capacity; None where no capacity is known.
        notes: sentences for a person: zeros, sharing, what is not known.
    """

    design: str
    target: Target
    total: Mapping[str, Usage]
    layers: tuple[LayerEstimate, ...]
    latency_cycles: int
    interval_cycles: int
    fits: bool | None
    binding: Binding | None
    notes: tuple[str, ...]

    @property
    def fits_upper(self) -> bool | None:
        """Whether the upper ends of the `synth` ranges, too, stay within every known capacity; None where none is."""
        capacities = {name: getattr(self.target.part, name) for name in RESOURCES}
        known = {name: count for name, count in capacities.items() if count is not None}
        if self.fits is None or not known:
            return None
        return all(getattr(self.total["synth"], name).high <= count for name, count in known.items())

    @property
    def latency_us(self) -> float:
        """Latency in microseconds at the target's clock."""
        return self.latency_cycles * self.target.clock_ns / 1000.0

    def to_json(self) -> dict[str, Any]:
        """The whole estimate as JSON data."""
        target = self.target
        return {
            "design": self.design,
            "target": {
                "part": target.part.name,
                "order_number": target.order_number,
                "clock_ns": target.clock_ns,
                "io_type": target.io_type,
                "strategy": target.strategy,
                "reuse_factor": target.reuse_factor,
                "backend": target.backend,
            },
            "total": {stage: self.total[stage].to_json() for stage in STAGES},
            "latency_cycles": self.latency_cycles,
            "interval_cycles": self.interval_cycles,
            "latency_us": self.latency_us,
            "fits": self.fits,
            "fits_upper": self.fits_upper,
            "binding": None if self.binding is None else self.binding.to_json(),
            "notes": list(self.notes),
            "layers": [layer.to_json() for layer in self.layers],
        }
