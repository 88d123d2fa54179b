"""`price` estimates the designs of a run folder, a saved design or an hls4ml project, from files alone."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from fpgaprune.design import Design
from fpgaprune.errors import EstimateError, RunError
from fpgaprune.estimate import Calibration, estimate, read_project, verilog_price
from fpgaprune.fabric import family_of, priced_as
from fpgaprune.flow.run.run_directory import MANIFEST, RunDirectory
from fpgaprune.flow.run.verilog_of_run import measured_fields, staged_counts
from fpgaprune.layout import choose_layout, require_family
from fpgaprune.measure import ChosenLayout, Estimate, StagedCounts, VerilogPrice, occupancy_of
from fpgaprune.target import Part, Target, find_part

# The network of a run before and after pruning.
_TRAINED, _PRUNED = "before", "after"
_SIDES = {_TRAINED: "design_trained.json", _PRUNED: "design.json"}


def price(
    source: Path, part: str | None = None, calibrated: Calibration | None = None, clock_ns: float | None = None
) -> dict[str, Estimate]:
    """Estimate each side (`before`, `after`, or the design's name); arguments as in `load_designs` and `target_of`.

    Raises:
        RunError: a run folder has no design yet.
        DesignError: the file is no design.
        TargetError: the part is unknown, or the clock period is not above 0.
    """
    return {
        side: estimate(design, target_of(design, part, clock_ns), calibrated=calibrated)
        for side, design in load_designs(source).items()
    }


def price_verilog(
    source: Path, part: str | None = None, family: str | None = None, interval: int | None = None
) -> dict[str, tuple[VerilogPrice, StagedCounts]]:
    """Map side to the estimate of its design's Verilog, without synthesis, and to the counts of all stages.

    Args:
        source: as for `load_designs`.
        part: whose family of open synthesis counts; the design's own unless given.
        family: the family itself.
        interval: cycles for each sample, as its pixels take if 0. Unless given, or a family is, the layout is that of
            the run's answer: as it was measured, as its flow asks, or as chosen for the part. The network before
            pruning then takes as many cycles.

    Raises:
        RunError: neither a part nor a family is known, or open synthesis does not know the part's family.
        EstimateError: the family has no price.
        RtlError, UnsupportedLayerError, DesignError: as for `to_verilog`.
    """
    found = {}
    run = RunDirectory.existing(source) if (source / MANIFEST).is_file() else None
    measured = None if run is None or interval is not None else measured_fields(run)
    asked = {} if run is None else run.manifest["config"].get("measure", {})
    cycles = interval
    # The network before pruning is estimated at the interval of the one after.
    for side, design in sorted(load_designs(source).items()):
        target = None if family is not None and design.part is None else target_of(design, part)
        own = family or (None if target is None else family_of(target.part))
        if own is None:
            raise RunError(f"open synthesis does not know the part of design {design.name!r}; give --family")
        priced = family or priced_as(own)
        fields = {"interval": cycles or 0} if measured is None or side == _TRAINED else measured
        if cycles is None and family is None and target is not None:
            made, fields = verilog_on(design, target.part, measured, asked if part is None else {})
            cycles = made.interval_cycles
        else:
            made = verilog_price(design, priced, **fields)
        found[side] = (made, staged_counts(None if side == _TRAINED else run, made, own, fields))
    return found


def verilog_on(
    design: Design, part: Part, measured: Mapping[str, Any] | None = None, asked: Mapping[str, Any] | None = None
) -> tuple[VerilogPrice, dict[str, Any]]:
    """Estimate the Verilog of `design` in the layout of a run's answer; return its fields of `VerilogLayout`, too.

    Args:
        design: the network.
        part: where it must fit.
        measured: the fields of the layout that was measured; then it is that.
        asked: `[measure]` of the flow, whose `interval` or `part` and `share` say the layout. Else it is the usual
            one, or one chosen for `part` if that does not fit.

    Raises:
        EstimateError: open synthesis does not know the part's family, or has no price for it.
        RtlError, UnsupportedLayerError: as for `to_verilog`.
    """
    asked = asked or {}
    family, interval = require_family(part), asked.get("interval") or None
    fields: dict[str, Any] = {"interval": interval or 0} if measured is None else dict(measured)
    if measured is None and asked.get("part"):
        with suppress(EstimateError):
            return _chosen(choose_layout(design, find_part(asked["part"]), share=asked["share"], interval=interval))
    usual = verilog_price(design, family, **fields)
    if measured is None and interval is None and not fits_as_usual(usual, part):
        with suppress(EstimateError):
            return _chosen(choose_layout(design, part))
    return usual, fields


def _chosen(found: ChosenLayout) -> tuple[VerilogPrice, dict[str, Any]]:
    return found.price, found.settings


def fits_as_usual(usual: VerilogPrice, part: Part) -> bool:
    """Return whether `part` takes a design's Verilog in its `usual` layout, or nobody knows; else one is chosen."""
    return occupancy_of(usual.resources, part).fits is not False


def load_designs(source: Path) -> dict[str, Design]:
    """Load the design of each side (`before`, `after`, or the design's name).

    Args:
        source: a run folder, a `design.json`, or any hls4ml project (release 0.6 or later).

    Raises:
        RunError: a run folder has no design yet.
        DesignError: the file is no design.
    """
    if (source / "firmware").is_dir():
        design = read_project(source)
        return {design.name: design}
    if not source.is_dir():
        design = Design.load(source)
        return {design.name: design}
    designs = {side: source / name for side, name in _SIDES.items() if (source / name).exists()}
    if not designs:
        raise RunError(f"{source} holds neither a design nor an hls4ml project; run the flow up to its hls stage")
    return {side: Design.load(path) for side, path in designs.items()}


def target_of(design: Design, part: str | None = None, clock_ns: float | None = None) -> Target:
    """Return the target of `design`, with another `part` (name or order number) and clock period if given."""
    order_number = part or design.part
    if order_number is None:
        raise RunError(f"design {design.name!r} names no part; give one with --part")
    products = [layer for layer in design.layers if layer.strategy is not None]
    period = design.clock_ns if clock_ns is None else clock_ns
    target = Target.of(order_number, clock_ns=period, io_type=design.io_type, backend=design.backend)
    if not products:
        return target
    return replace(target, strategy=str(products[0].strategy), reuse_factor=products[0].reuse_factor)
