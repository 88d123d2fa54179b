"""The vocabulary of measurement: what hardware takes and offers, at which stage, and the results that say so."""

from fpgaprune.measure.estimate import PRICED, Binding, Estimate, LayerEstimate, Multiplications
from fpgaprune.measure.measurement import Cycles, Measurement
from fpgaprune.measure.plain import from_plain, to_plain
from fpgaprune.measure.resources import ESTIMATED, LABELS, RESOURCES, Figure, Resources, add, capacity_of
from fpgaprune.measure.stage import (
    ANALYTIC_CSYNTH,
    ANALYTIC_SYNTH,
    COSIM,
    CSYNTH,
    OPEN_SYNTH,
    ROUTE,
    ROUTE_ECP5,
    STAGES,
    SYNTH,
    Stage,
)

__all__ = [
    "ANALYTIC_CSYNTH",
    "ANALYTIC_SYNTH",
    "COSIM",
    "CSYNTH",
    "ESTIMATED",
    "LABELS",
    "OPEN_SYNTH",
    "PRICED",
    "RESOURCES",
    "ROUTE",
    "ROUTE_ECP5",
    "STAGES",
    "SYNTH",
    "Binding",
    "Cycles",
    "Estimate",
    "Figure",
    "LayerEstimate",
    "Measurement",
    "Multiplications",
    "Resources",
    "Stage",
    "add",
    "capacity_of",
    "from_plain",
    "to_plain",
]
