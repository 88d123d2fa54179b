"""`verilog_price`: what our own Verilog of a design will take, from its layout and the digits of its weights."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fpgaprune.design import Design, VerilogLayout
from fpgaprune.estimate.verilog.beats import Timed, timed
from fpgaprune.estimate.verilog.datapaths import Counts
from fpgaprune.estimate.verilog.fabrics import Fabric, find_fabric
from fpgaprune.estimate.verilog.layer_counts import adders_of, count_layer
from fpgaprune.estimate.verilog.sharing import DigitCounter
from fpgaprune.measure import Figure, Resources, VerilogLayerPrice, VerilogPrice
from fpgaprune.rtl import DesignHardware, LayerHardware, plan_verilog


def verilog_price(
    design: Design, family: str = "xc7", *, layout: VerilogLayout | None = None, **changes: Any
) -> VerilogPrice:
    """Estimate what open synthesis counts for the Verilog of `design`, with 80 % ranges, latency and interval.

    The layers are laid out as `to_verilog` lays them out. Adders are counted from the digits of the weights, and
    searched for where bit by bit and at once cost about the same; all else, and every cycle, is as in the Verilog.

    Args:
        design: what is to be computed.
        family: device family of open synthesis: `xc7`, `xcup`, `ecp5`, `nexus`, `gowin`, `ice40` or `ice40up`.
        layout: how it is laid out; the defaults unless given.
        **changes: single fields of `VerilogLayout`, as `interval=4000`.

    Raises:
        EstimateError: nothing was fitted for the family.
        UnsupportedLayerError, DesignError, RtlError: as for `fpgaprune.to_verilog`.

    Examples:
        >>> price = fp.verilog_price(fp.make_design(model, target, x), "ecp5")
        >>> price.resources.lut.low <= price.resources.lut.value
        True
    """
    fabric = find_fabric(family)
    chosen = replace(layout or VerilogLayout(), **changes)
    hardware = plan_verilog(design, chosen, DigitCounter.of(design, chosen))
    return price_hardware(design, hardware, fabric)


def price_hardware(design: Design, hardware: DesignHardware, fabric: Fabric) -> VerilogPrice:
    """Return the price of `hardware`, which computes `design`, on `fabric`."""
    found = timed(hardware)
    total, between = Counts(), Counts()
    layers = []
    for layer in hardware.layers:
        counts = count_layer(layer)
        total.more(counts)
        if layer.layer:
            layers.append(_layer(design, layer, figures(counts, fabric, fabric.layer_ranges), found))
        else:
            between.more(counts)
    # Each part is reset a cycle after the one before it.
    resets = {"register": len(hardware.layers) + 2.0}
    total.more(resets)
    between.more(resets)
    rest = figures(between, fabric, fabric.layer_ranges)
    return VerilogPrice(
        design=design.name,
        family=fabric.name,
        resources=figures(total, fabric, fabric.ranges),
        layers=(*layers, VerilogLayerPrice("", "", rest, None, found.latency)),
        latency_cycles=found.latency,
        interval_cycles=found.interval,
        memories=fabric.memories(total),
    )


def figures(counts: Counts, fabric: Fabric, ranges: Mapping[str, tuple[float, float]]) -> Resources[Figure]:
    """Return what `counts` take on `fabric`, with 80 % ranges."""
    return Resources(**{name: _figure(value, *ranges[name]) for name, value in fabric.resources(counts).items()})


def _layer(design: Design, layer: LayerHardware, priced: Resources[Figure], found: Timed) -> VerilogLayerPrice:
    kind, ready = design[layer.layer].kind, found.ready[layer.layer]
    return VerilogLayerPrice(layer.layer, kind, priced, adders_of(layer), ready)


def _figure(value: float, low: float, high: float) -> Figure:
    return Figure(round(value), math.floor(value * low), math.ceil(value * high))
