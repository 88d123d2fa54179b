"""`recalibrate`: fits the coefficients to a user's own reports, beginning with the shipped values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from fpgaprune.errors import EstimateError
from fpgaprune.estimate.coefficients import Calibration, Coefficient
from fpgaprune.estimate.compose import build
from fpgaprune.estimate.features import DesignFeatures
from fpgaprune.estimate.fit import Equation, fit, left_of
from fpgaprune.estimate.hardware import CALIBRATED, stage_figures
from fpgaprune.estimate.pricing import total_hardware

Figures = Mapping[str, float]
# A coefficient of 0 could never move, so it starts at this fraction of its textbook value.
_AWAKE = 0.05
# The weight of a shipped value against the report of one design: two designs say little of thirty coefficients. At this
# weight they helped other designs of their repository most (tests/benchmarks/bench_calibrate.py tries it).
_STRENGTH = 0.6


@dataclass(frozen=True)
class ReportedDesign:
    """A design and what a vendor tool reported of it.

    Attributes:
        design: its features.
        csynth: `lut` and `ff` of the whole design in the HLS report; empty without such a report.
        synth: `lut` and `ff` of the whole design after logic synthesis; empty without such a report.
        layers: layer name -> `lut` and `ff` in the HLS report, of the layers whose row is certain.
    """

    design: DesignFeatures
    csynth: Figures
    synth: Figures
    layers: Mapping[str, Figures]


def recalibrate(measured: Sequence[ReportedDesign], start: Calibration) -> Calibration:
    """Fit the LUT and flip-flop coefficients of `start` to `measured`; its intervals stay.

    A design is one equation; if only rows of its layers are known, each of them is one. A coefficient that no report
    shows keeps its value.

    Raises:
        EstimateError: no design has a figure.
    """
    if not any(found.csynth or found.synth or found.layers for found in measured):
        raise EstimateError("no design has a vendor report with LUTs or flip-flops; nothing to calibrate with")
    priors = {
        name: replace(c, prior=max(c.value, _AWAKE * c.prior) or c.prior) for name, c in start.coefficients.items()
    }
    values = {name: c.value for name, c in start.coefficients.items()}
    for resource in CALIBRATED:
        found = [equation for one in measured for equation in _equations(one, resource)]
        values |= fit(found, priors, resource, _STRENGTH) if found else {}
    shares = [equation for one in measured for equation in _shares(one, values)]
    values |= fit(shares, priors, "synth", _STRENGTH) if shares else {}
    return Calibration(
        {name: replace(c, value=values[name]) for name, c in start.coefficients.items()}, start.intervals
    )


def recalibration_errors(measured: Sequence[ReportedDesign], calibrated: Calibration) -> dict[str, dict[str, float]]:
    """Return the relative errors of LUTs and flip-flops, by figure, as `csynth.lut`, and then by design."""
    found: dict[str, dict[str, float]] = {}
    for one in measured:
        figures = stage_figures(total_hardware(build(one.design)), calibrated.rates)
        for stage, actual in (("csynth", one.csynth), ("synth", one.synth)):
            for resource, value in actual.items():
                if value:
                    error = abs(figures[stage][resource] - value) / value
                    found.setdefault(f"{stage}.{resource}", {})[one.design.name] = error
    return found


def errors_of_left_out(measured: Sequence[ReportedDesign], start: Calibration) -> dict[str, dict[str, float]]:
    """Return `recalibration_errors` of each design calibrated with the others alone; empty for fewer than two."""
    found: dict[str, dict[str, float]] = {}
    for at, one in enumerate(measured):
        others = [*measured[:at], *measured[at + 1 :]]
        if not others:
            break
        for figure, by_design in recalibration_errors([one], recalibrate(others, start)).items():
            found.setdefault(figure, {}).update(by_design)
    return found


def _equations(one: ReportedDesign, resource: str) -> list[Equation]:
    """Return the equation of the whole design, which counts what lies between layers too; else those of its layers."""
    parts = build(one.design)
    if one.csynth.get(resource) is not None:
        return [Equation(one.design.name, "whole", getattr(total_hardware(parts), resource), one.csynth[resource])]
    return [
        Equation(one.design.name, layer.name, getattr(hardware, resource), one.layers[layer.name][resource])
        for layer, hardware in zip(one.design.layers, parts.layers, strict=True)
        if one.layers.get(layer.name, {}).get(resource) is not None
    ]


def _shares(one: ReportedDesign, values: Mapping[str, float]) -> list[Equation]:
    whole = total_hardware(build(one.design))
    return [
        left_of(one.design.name, one.design.name, whole, resource, values, one.csynth[resource], one.synth[resource])
        for resource in CALIBRATED
        if resource in one.csynth and resource in one.synth
    ]


def coefficient_changes(start: Mapping[str, Coefficient], fitted: Mapping[str, Coefficient]) -> list[Coefficient]:
    """Return the fitted coefficients that moved by more than a thousandth."""
    return [
        c for name, c in fitted.items() if abs(c.value - start[name].value) > 1e-3 * max(c.value, start[name].value)
    ]
