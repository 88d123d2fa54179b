"""`estimate`: the price of a `Design` on a `Target`."""

from __future__ import annotations

import math
from collections.abc import Sequence

from fpgaprune.design import Design, LayerSpec
from fpgaprune.errors import EstimateError, FpgaPruneError
from fpgaprune.estimate.coefficients import Calibration, calibration
from fpgaprune.estimate.compose import Parts, build
from fpgaprune.estimate.digits import Products
from fpgaprune.estimate.features import DesignFeatures, LayerFeatures
from fpgaprune.estimate.from_design import design_features
from fpgaprune.estimate.hardware import Hardware
from fpgaprune.estimate.recurrent import RECURRENT_DOUBT
from fpgaprune.estimate.savings import design_notes, zeros_note
from fpgaprune.estimate.stages import stage_figures
from fpgaprune.measure import Binding, Estimate, Figure, LayerEstimate, Multiplications, Resources, capacity_of
from fpgaprune.parser_errors import PARSER_ERRORS, in_a_line
from fpgaprune.target import Target

_ZERO = Figure(0, 0, 0)
# The factors of a figure for which the calibration has no interval: nobody has checked it.
_UNKNOWN = (0.5, 2.0)


def estimate(design: Design, target: Target | None = None, *, calibrated: Calibration | None = None) -> Estimate:
    """`design` is priced for `target`: resources at two stages with 80 % intervals, latency, and whether it fits.

    The layers keep the strategy, reuse and io_type that the design was made with; the target gives part and clock.
    Without a target, the design's own part and clock count. No vendor tool runs; the coefficients were fitted to vendor
    reports of Vivado HLS 2018.2 to Vitis HLS 2023.2 (see docs/estimate.md for the errors on designs left out).

    Args:
        design: the network as fixed-point data.
        target: part and clock, or None.
        calibrated: coefficients to use instead of those that ship with the package.

    Raises:
        EstimateError: a layer has no hardware model, or the design names no part and no target is given.
    """
    if target is None:
        if design.part is None:
            raise EstimateError(f"design {design.name!r} names no part; give a target, as Target.of('xc7z020')")
        target = Target.of(design.part, clock_ns=design.clock_ns, io_type=design.io_type, backend=design.backend)
    try:
        return price(design_features(design, target), target, calibrated or calibration(), design.layers)
    except FpgaPruneError:
        raise
    except PARSER_ERRORS as error:
        # A file may hold a design whose sizes contradict one another; no converter makes such a design.
        raise EstimateError(f"design {design.name!r} contradicts itself: {in_a_line(error)}; make it anew") from error


def price(
    design: DesignFeatures, target: Target, calibrated: Calibration, layers_as_made: Sequence[LayerSpec] = ()
) -> Estimate:
    """The estimate of a design that is known by its features; with its layers, the notes can name kernels."""
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
                **_resources(hardware, calibrated, _doubt([layer])),
                latency_cycles=round(hardware.latency_cycles),
                interval_cycles=max(round(hardware.interval_cycles), 1),
            )
        )
    total = _resources(total_hardware(parts), calibrated, _doubt(design.layers))
    binding, fits = _binding(total["synth"], layers, target)
    return Estimate(
        design=design.name,
        target=target,
        total=total,
        layers=tuple(layers),
        latency_cycles=parts.latency_cycles,
        interval_cycles=parts.interval_cycles,
        fits=fits,
        binding=binding,
        notes=design_notes(design, target, zeros, total["synth"], fits),
    )


def total_hardware(parts: Parts) -> Hardware:
    """Everything in the design, layers and what lies between them."""
    whole = Hardware()
    for hardware in (*parts.layers, parts.between):
        whole.add(hardware)
    return whole


def _doubt(layers: Sequence[LayerFeatures]) -> float:
    """The factor by which the ends of an interval lie further out than the calibration says."""
    return RECURRENT_DOUBT if any(layer.family == "recurrent" for layer in layers) else 1.0


def _multiplications(products: Products | None) -> Multiplications | None:
    if products is None:
        return None
    return Multiplications(products.total, products.zero, products.power_of_two, products.few, products.many)


def _resources(hardware: Hardware, calibrated: Calibration, doubt: float) -> dict[str, Resources[Figure]]:
    """The resources by the step that they are an estimate of."""
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
    # The ends are rounded outwards: a count of 2 with a factor of 1.1 may be 3.
    return Figure(middle, min(math.floor(value * factors[0]), middle), max(math.ceil(value * factors[1]), middle))


def _binding(
    used: Resources[Figure], layers: Sequence[LayerEstimate], target: Target
) -> tuple[Binding | None, bool | None]:
    known = {name: (count.value, there) for name, count, there in used.against(capacity_of(target.part)) if there}
    if not known:
        return None, None
    name = max(known, key=lambda each: known[each][0] / known[each][1])
    largest = max(layers, key=lambda layer: layer.uses(name), default=None)
    fits = all(count <= there for count, there in known.values())
    return Binding(name, largest.name if largest else None, *known[name]), fits
