"""`VerilogPrice`: what our own Verilog of a design will take, without synthesis."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from fpgaprune.measure.measurement import Cycles, Measurement
from fpgaprune.measure.plain import from_plain, to_plain
from fpgaprune.measure.resources import Figure, Resources
from fpgaprune.measure.stage import ANALYTIC_OPEN_SYNTH


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


class VerilogPrice(Struct, frozen=True):
    """What our own Verilog of a design will take, without synthesis.

    Attributes:
        design: name of the design.
        family: device family, as open synthesis calls it.
        resources: of the whole design.
        layers: in the order of the data.
        latency_cycles: from the first beat in to the last beat out.
        interval_cycles: between two samples.
    """

    design: str
    family: str
    resources: Resources[Figure]
    layers: tuple[VerilogLayerPrice, ...]
    latency_cycles: int
    interval_cycles: int

    @property
    def whole(self) -> Measurement[Figure]:
        """The figures of the whole design, with their stage."""
        cycles = Cycles(latency_max=self.latency_cycles, interval_max=self.interval_cycles)
        return Measurement(ANALYTIC_OPEN_SYNTH, None, self.resources, cycles)

    def to_json(self) -> dict[str, Any]:
        """The whole price as JSON data, with its stage."""
        return {"stage": ANALYTIC_OPEN_SYNTH, **to_plain(self)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> VerilogPrice:
        """The price that `to_json` gave.

        Raises:
            ReportError: the data has another form.
        """
        return from_plain({key: value for key, value in data.items() if key != "stage"}, cls, "a price of Verilog")
