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
from fpgaprune.measure import Estimate, StagedCounts, VerilogPrice, occupancy_of
from fpgaprune.target import Part, Target

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
        interval: cycles for each sample, as its pixels take if 0. Unless given, the network of a run that was measured
            is estimated in the layout of the measurement.

    Raises:
        RunError: neither a part nor a family is known, or open synthesis does not know the part's family.
        EstimateError: the family has no price.
        RtlError, UnsupportedLayerError, DesignError: as for `to_verilog`.
    """
    found = {}
    run = RunDirectory.existing(source) if (source / MANIFEST).is_file() else None
    measured = None if run is None or interval is not None else measured_fields(run)
    for side, design in load_designs(source).items():
        own = family or family_of(target_of(design, part).part)
        if own is None:
            raise RunError(f"open synthesis does not know the part of design {design.name!r}; give --family")
        pruned = side == _PRUNED
        fields = measured if measured and pruned else {"interval": (measured or {}).get("interval", interval or 0)}
        made = verilog_price(design, family or priced_as(own), **fields)
        found[side] = (made, staged_counts(run if pruned else None, made, own, fields))
    return found


def verilog_on(design: Design, part: Part, measured: Mapping[str, Any] | None = None) -> VerilogPrice:
    """Estimate the Verilog of `design` in the layout `measured`, fields of `VerilogLayout`, if they are given.

    Else in its usual layout, or in one chosen for `part` if that does not fit.

    Raises:
        EstimateError: open synthesis does not know the part's family, or has no price for it.
        RtlError, UnsupportedLayerError: as for `to_verilog`.
    """
    if measured is not None:
        return verilog_price(design, require_family(part), **measured)
    usual = verilog_price(design, require_family(part))
    if not fits_as_usual(usual, part):
        with suppress(EstimateError):
            return choose_layout(design, part).price
    return usual


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
