"""`Estimate` and `VerilogPrice`: the price of a design on a target, stage by stage and layer by layer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from msgspec import Struct

from fpgaprune.measure.measurement import (
    ANALYTIC_CSYNTH,
    ANALYTIC_OPEN_SYNTH,
    ANALYTIC_SYNTH,
    Cycles,
    Measurement,
    Stage,
    from_plain,
    interval_words,
    to_plain,
)
from fpgaprune.measure.occupancy import Occupancy, Taken, occupancy_of
from fpgaprune.measure.resources import ESTIMATED, LABELS, Figure, Resources
from fpgaprune.target import Target
from fpgaprune.values import Summarised, Summary

# The stages that are estimated, earliest first.
PRICED = (ANALYTIC_CSYNTH, ANALYTIC_SYNTH)


class Multiplications(Struct, frozen=True):
    """A layer's multiplications by constants for each output position, counted by the digits of the constant.

    Attributes:
        total: all multiplications, those by zero included.
        zero: multiplications by zero.
        power_of_two: multiplications by a constant of one signed digit.
        few_digits: multiplications by a constant of two signed digits.
        many_digits: multiplications by a constant of three signed digits or more.
    """

    total: int
    zero: int
    power_of_two: int
    few_digits: int
    many_digits: int

    @property
    def nonzero(self) -> int:
        """Multiplications that take hardware."""
        return self.total - self.zero


class LayerEstimate(Struct, frozen=True):
    """One layer of an `Estimate`.

    Attributes:
        name: name of the layer.
        kind: class of the layer, as the design states it.
        multiplications: its multiplications; None if it has none.
        csynth: resources that the HLS report will state; all unknown if no hardware model prices the layer.
        synth: resources that logic synthesis will leave; all unknown if no hardware model prices the layer.
        latency_cycles: latency of this layer alone.
        interval_cycles: interval of this layer alone.
    """

    name: str
    kind: str
    multiplications: Multiplications | None
    csynth: Resources[Figure]
    synth: Resources[Figure]
    latency_cycles: int
    interval_cycles: int

    def uses(self, name: str) -> int:
        """Return the middle of the `synth` estimate of resource `name`; 0 if it is unknown."""
        used = self.synth[name]
        return 0 if used is None else used.value

    def at(self, stage: Stage) -> Measurement[Figure]:
        """Return the figures of the analytic `stage`."""
        used = {"csynth": self.csynth, "synth": self.synth}
        return _at(stage, used, self.name, self.latency_cycles, self.interval_cycles)


class Estimate(Summarised, Struct, frozen=True):
    """The price of a design on a target, without a vendor tool.

    Attributes:
        design: name of the design.
        target: the target that it was priced for.
        total: `csynth` or `synth`, the step that is estimated -> resources.
        layers: the layers, in the design's order.
        latency_cycles: from the first input to the last output.
        interval_cycles: between two samples.
        notes: sentences for a person: what zeros save, what is shared, what is left out or not known.
    """

    design: str
    target: Target
    total: Mapping[str, Resources[Figure]]
    layers: tuple[LayerEstimate, ...]
    latency_cycles: int
    interval_cycles: int
    notes: tuple[str, ...]

    def _summary(self) -> Summary:
        rows = [
            (LABELS[row.resource], f"{row.low:,}", f"{row.used:,}", f"{row.high:,}", f"{row.capacity:,}")
            for row in self.occupancy.taken
        ]
        where = f"{self.design} {self.occupancy.verdict} at {self.target.clock_ns:g} ns"
        largest = sorted(((layer.uses("lut"), layer.name) for layer in self.layers), reverse=True)[:3]
        notes = [
            f"latency {self.latency_cycles:,} cycles ({self.latency_us:.4g} µs); a sample each "
            f"{self.interval_cycles:,} cycles",
            f"most LUTs: {', '.join(f'{name} {luts:,}' for luts, name in largest) or 'no layer'}",
            *self.notes,
        ]
        headings = (f"after {ANALYTIC_SYNTH.step}", "low", "estimate", "high", "of")
        return Summary(f"Estimate: {where}", headings, rows, notes)

    @property
    def occupancy(self) -> Occupancy:
        """What the `synth` figures take of the part."""
        whole = not any(layer.at(ANALYTIC_SYNTH).unknown for layer in self.layers)
        return occupancy_of(self.total["synth"], self.target.part, whole)

    @property
    def fits(self) -> bool | None:
        """Whether the `synth` figures stay within every known capacity of the part.

        None if no capacity is known, or if a layer that no model prices might exceed it.
        """
        return self.occupancy.fits

    @property
    def fits_upper(self) -> bool | None:
        """Whether the upper ends of the `synth` ranges also stay within every known capacity; None if `fits` is."""
        return self.occupancy.fits_upper

    @property
    def binding(self) -> Taken | None:
        """The resource nearest to, or furthest beyond, its capacity; None if no capacity is known."""
        return self.occupancy.nearest_limit()

    def largest(self, resource: str) -> str | None:
        """Return the layer that takes most of `resource`."""
        found = max(self.layers, key=lambda layer: layer.uses(resource), default=None)
        return None if found is None else found.name

    @property
    def latency_us(self) -> float:
        """Latency in microseconds at the target's clock."""
        return self.latency_cycles * self.target.clock_ns / 1000.0

    def at(self, stage: Stage) -> Measurement[Figure]:
        """Return the figures of the whole design at the analytic `stage`."""
        return _at(stage, self.total, None, self.latency_cycles, self.interval_cycles)

    def to_json(self) -> dict[str, Any]:
        """Return the whole estimate as JSON data, with the name of the part only."""
        near = self.binding
        derived = {name: getattr(self, name) for name in ("latency_us", "fits", "fits_upper")}
        derived["binding"] = near and {
            "resource": near.resource,
            "layer": self.largest(near.resource),
            "used": near.used,
            "capacity": near.capacity,
            "stage": ANALYTIC_SYNTH.step,
        }
        return {**to_plain(self), **derived, "target": {**asdict(self.target), "part": self.target.part.name}}

    @classmethod
    def from_json(cls, data: Mapping[str, object], target: Target) -> Estimate:
        """Return the estimate that `to_json` gave, for the same target.

        Raises:
            ReportError: the data has another form.
        """
        return from_plain({**data, "target": asdict(target)}, cls, "an estimate")


def _at(
    stage: Stage, used: Mapping[str, Resources[Figure]], layer: str | None, latency: int, interval: int
) -> Measurement[Figure]:
    # Cycles are an estimate of what the HLS report states.
    cycles = Cycles(latency_max=latency, interval_max=interval) if stage == ANALYTIC_CSYNTH else Cycles()
    return Measurement(stage, layer, used[stage.step], cycles)


class VerilogLayerPrice(Struct, frozen=True):
    """One layer of a `VerilogPrice`.

    Attributes:
        layer: name of the layer; empty for what stands between layers.
        kind: class of the layer, as the design states it.
        resources: what open synthesis will count for its module.
        adders: additions of its weighted sums; None where it has none.
        ready_cycles: from the sample's first beat into the network until this layer's last beat leaves.
    """

    layer: str
    kind: str
    resources: Resources[Figure]
    adders: int | None
    ready_cycles: int


class VerilogPrice(Summarised, Struct, frozen=True):
    """What our own Verilog of a design will take, without synthesis.

    Attributes:
        design: name of the design.
        family: device family, as open synthesis calls it.
        resources: of the whole design.
        layers: in the order of the data.
        latency_cycles: from the first beat in to the last beat out.
        interval_cycles: between two samples.
        memories: small memories that are made of LUTs, as an FPGA may have few places for them.
    """

    design: str
    family: str
    resources: Resources[Figure]
    layers: tuple[VerilogLayerPrice, ...]
    latency_cycles: int
    interval_cycles: int
    memories: int = 0

    def _summary(self) -> Summary:
        figures = [(name, figure) for name in ESTIMATED if (figure := self.resources[name]) is not None]
        rows = [(LABELS[name], f"{one.low:,}", f"{one.value:,}", f"{one.high:,}") for name, one in figures]
        cycles = f"latency {self.latency_cycles:,} cycles; a sample {interval_words(self.interval_cycles)}"
        title = f"VerilogPrice: {self.design} as our Verilog on {self.family}"
        return Summary(title, (f"after {ANALYTIC_OPEN_SYNTH.step}", "low", "estimate", "high"), rows, [cycles])

    @property
    def whole(self) -> Measurement[Figure]:
        """The figures of the whole design, with their stage."""
        cycles = Cycles(latency_max=self.latency_cycles, interval_max=self.interval_cycles)
        return Measurement(ANALYTIC_OPEN_SYNTH, None, self.resources, cycles)

    def to_json(self) -> dict[str, Any]:
        """Return the whole price as JSON data, with its stage."""
        return {"stage": ANALYTIC_OPEN_SYNTH, **to_plain(self)}

    @classmethod
    def from_json(cls, data: Mapping[str, object]) -> VerilogPrice:
        """Return the price that `to_json` gave.

        Raises:
            ReportError: the data has another form.
        """
        return from_plain({key: value for key, value in data.items() if key != "stage"}, cls, "a price of Verilog")
