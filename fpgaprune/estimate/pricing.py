"""`estimate`: the price of a `Design` on a `Target`."""

from __future__ import annotations

import math
from collections.abc import Sequence

from fpgaprune.design import Design, LayerSpec
from fpgaprune.errors import EstimateError, FpgaPruneError, require_kind
from fpgaprune.estimate.coefficients import Calibration, calibration
from fpgaprune.estimate.compose import Parts, build
from fpgaprune.estimate.digits import Products
from fpgaprune.estimate.families import UNPRICED
from fpgaprune.estimate.features import DesignFeatures, LayerFeatures
from fpgaprune.estimate.from_design import design_features
from fpgaprune.estimate.hardware import Hardware, stage_figures
from fpgaprune.estimate.layer_hardware import RECURRENT_DOUBT
from fpgaprune.estimate.savings import design_notes, zeros_note
from fpgaprune.files import PARSER_ERRORS, in_a_line
from fpgaprune.measure import Estimate, Figure, LayerEstimate, Multiplications, Resources, occupancy_of
from fpgaprune.target import Target, require_target

_ZERO = Figure(0, 0, 0)
_NOTHING: dict[str, Resources[Figure]] = {"csynth": Resources(), "synth": Resources()}
# The interval of a figure that the calibration has none for, because nobody has checked it.
_UNKNOWN = (0.5, 2.0)


def estimate(design: Design, target: Target | None = None, *, calibrated: Calibration | None = None) -> Estimate:
    """Estimate `design` on `target`: resources at two stages with 80 % ranges, latency, and whether it fits.

    The layers keep the design's own strategy, reuse factors and io_type; the target gives part and clock. No vendor
    tool runs: the coefficients were fitted to reports of Vivado HLS 2018.2 to Vitis HLS 2023.2
    (docs/reference/estimates.md has the errors on designs that were left out).

    A layer of a class that no model prices is left out: its figures are unknown, a note names it, and `fits` is None
    unless the other layers alone exceed the part. A reuse factor that hls4ml cannot build is priced as the nearest that
    it can; a note says so.

    Args:
        design: the network as fixed-point data.
        target: part and clock; the design's own unless given.
        calibrated: coefficients to use in place of the shipped ones.

    Raises:
        EstimateError: no layer has a hardware model, the design names no part and no target is given, or the design
            or the part is for our Verilog, which `verilog_price` estimates.

    Examples:
        >>> price = fp.estimate(fp.make_design(model, target, x), target)
        >>> price.fits, price.total["synth"].lut.value > 0
        (True, True)
    """
    require_kind(design, Design, EstimateError, "design", "a Design, as fp.make_design gives")
    if target is None:
        if design.part is None:
            raise EstimateError(f"design {design.name!r} names no part; give a target, as Target.of('xc7z020')")
        target = Target.of(design.part, clock_ns=design.clock_ns, io_type=design.io_type, backend=design.backend)
    require_target(target)
    try:
        return price(design_features(design, target), target, calibrated or calibration(), design.layers)
    except FpgaPruneError:
        raise
    except PARSER_ERRORS as error:
        # A file may hold a design whose sizes contradict one another.
        raise EstimateError(f"design {design.name!r} contradicts itself: {in_a_line(error)}; make it anew") from error


def price(
    design: DesignFeatures, target: Target, calibrated: Calibration, layers_as_made: Sequence[LayerSpec] = ()
) -> Estimate:
    """Estimate a design described by its features; with `layers_as_made`, the notes name kernels."""
    parts = build(design)
    specs: Sequence[LayerSpec | None] = layers_as_made or [None] * len(design.layers)
    layers, zeros = [], []
    for layer, hardware, spec in zip(design.layers, parts.layers, specs, strict=True):
        zeros.append(zeros_note(layer, design, calibrated.rates, spec))
        layers.append(
            LayerEstimate(
                name=layer.name,
                kind=layer.kind,
                multiplications=_multiplications(layer.all_products),
                **(_NOTHING if layer.family == UNPRICED else _resources(hardware, calibrated, _doubt([layer]))),
                latency_cycles=round(hardware.latency_cycles),
                interval_cycles=max(round(hardware.interval_cycles), 1),
            )
        )
    total = _resources(total_hardware(parts), calibrated, _doubt(design.layers))
    whole = all(layer.family != UNPRICED for layer in design.layers)
    return Estimate(
        design=design.name,
        target=target,
        total=total,
        layers=tuple(layers),
        latency_cycles=parts.latency_cycles,
        interval_cycles=parts.interval_cycles,
        notes=design_notes(design, target, zeros, occupancy_of(total["synth"], target.part, whole)),
    )


def total_hardware(parts: Parts) -> Hardware:
    """Return the hardware of the whole design: its layers, and what lies between them."""
    whole = Hardware()
    for hardware in (*parts.layers, parts.between):
        whole.add(hardware)
    return whole


def _doubt(layers: Sequence[LayerFeatures]) -> float:
    """Return the factor by which a range is wider, at either end, than the calibration says."""
    return RECURRENT_DOUBT if any(layer.family == "recurrent" for layer in layers) else 1.0


def _multiplications(products: Products | None) -> Multiplications | None:
    if products is None:
        return None
    return Multiplications(products.total, products.zero, products.power_of_two, products.few, products.many)


def _resources(hardware: Hardware, calibrated: Calibration, doubt: float) -> dict[str, Resources[Figure]]:
    """Return the resources by the step that they estimate."""
    found = {}
    for step, figures in stage_figures(hardware, calibrated.rates).items():
        factors = calibrated.factors.get(step, {})
        ends = {name: factors.get(name, _UNKNOWN) for name in figures}
        found[step] = Resources(
            **{name: _figure(value, (ends[name][0] / doubt, ends[name][1] * doubt)) for name, value in figures.items()}
        )
    return found


def _figure(value: float, factors: tuple[float, float]) -> Figure:
    if not value:
        return _ZERO
    middle = round(value)
    # The ends are rounded outwards: 1.1 times 2 is at most 3.
    return Figure(middle, min(math.floor(value * factors[0]), middle), max(math.ceil(value * factors[1]), middle))
