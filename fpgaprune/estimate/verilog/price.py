"""`verilog_price`: what our own Verilog of a design will take, from its layout and the digits of its weights."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from fpgaprune.design import Design, VerilogLayout
from fpgaprune.estimate.verilog.beats import Timed, timed
from fpgaprune.estimate.verilog.counts import Counts
from fpgaprune.estimate.verilog.fabrics import PRICED_RESOURCES, Fabric, find_fabric
from fpgaprune.estimate.verilog.layers import adders_of, count_layer
from fpgaprune.estimate.verilog.sharing import DigitCounter
from fpgaprune.measure import Figure, Resources, VerilogLayerPrice, VerilogPrice
from fpgaprune.rtl import Hardware, LayerHardware, plan_verilog


def verilog_price(
    design: Design, family: str = "xc7", *, layout: VerilogLayout | None = None, **changes: Any
) -> VerilogPrice:
    """What open synthesis will count for the Verilog of `design`, with 80 % ranges, and its latency and interval.

    The layers are laid out as `to_verilog` lays them out. Adders are not searched for but counted from the digits of
    the weights; everything else, and every cycle, is as in the Verilog.

    Args:
        design: what is to be computed.
        family: device family of open synthesis: `xc7` or `ecp5`.
        layout: how it is laid out; the defaults unless given.
        **changes: single fields of `VerilogLayout`, as `interval=4000`.

    Raises:
        EstimateError: nothing was fitted for the family.
        UnsupportedLayerError, DesignError, RtlError: as for `fpgaprune.to_verilog`.
    """
    fabric = find_fabric(family)
    hardware = plan_verilog(design, replace(layout or VerilogLayout(), **changes), DigitCounter())
    return price_hardware(design, hardware, fabric)


def price_hardware(design: Design, hardware: Hardware, fabric: Fabric) -> VerilogPrice:
    """The price of `hardware`, which computes `design`, on `fabric`."""
    found = timed(hardware)
    layers = [_layer(design, layer, fabric, found) for layer in hardware.layers if layer.layer]
    between = Counts()
    for layer in hardware.layers:
        if not layer.layer:
            between.more(count_layer(layer))
    # Each part is reset a cycle after the one before it.
    between["register"] += len(hardware.layers) + 2
    rest = VerilogLayerPrice("", "", figures(between, fabric), None, found.interval, found.latency)
    every = (*layers, rest)
    return VerilogPrice(
        design=design.name,
        family=fabric.name,
        resources=_summed([layer.resources for layer in every]),
        layers=every,
        latency_cycles=found.latency,
        interval_cycles=found.interval,
    )


def figures(counts: Counts, fabric: Fabric) -> Resources[Figure]:
    """What `counts` take on `fabric`, with 80 % ranges."""
    return Resources(**{name: _figure(value, *fabric.ranges[name]) for name, value in fabric.resources(counts).items()})


def _layer(design: Design, layer: LayerHardware, fabric: Fabric, found: Timed) -> VerilogLayerPrice:
    return VerilogLayerPrice(
        layer=layer.layer,
        kind=design[layer.layer].kind,
        resources=figures(count_layer(layer), fabric),
        adders=adders_of(layer),
        interval_cycles=found.interval,
        ready_cycles=found.ready[layer.layer],
    )


def _figure(value: float, low: float, high: float) -> Figure:
    return Figure(round(value), int(value * low), -int(-value * high // 1))


def _summed(parts: Iterable[Resources[Figure]]) -> Resources[Figure]:
    listed = list(parts)
    found = {}
    for name in PRICED_RESOURCES:
        each = [part[name] for part in listed]
        known = [one for one in each if one is not None]
        found[name] = Figure(*(sum(getattr(one, end) for one in known) for end in ("value", "low", "high")))
    return Resources(**found)
