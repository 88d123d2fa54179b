"""The vocabulary of measurement: what hardware takes and offers, at which stage, and the results that say so."""

from fpgaprune.measure.advice import (
    COMMAND,
    FLOW,
    MODEL,
    Advice,
    LayerShare,
    Prediction,
    Shortage,
    Suggestion,
)
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
    "COMMAND",
    "COSIM",
    "CSYNTH",
    "ESTIMATED",
    "FLOW",
    "LABELS",
    "MODEL",
    "OPEN_SYNTH",
    "PRICED",
    "RESOURCES",
    "ROUTE",
    "ROUTE_ECP5",
    "STAGES",
    "SYNTH",
    "Advice",
    "Binding",
    "Cycles",
    "Estimate",
    "Figure",
    "LayerEstimate",
    "LayerShare",
    "Measurement",
    "Multiplications",
    "Prediction",
    "Resources",
    "Shortage",
    "Stage",
    "Suggestion",
    "add",
    "capacity_of",
    "from_plain",
    "to_plain",
]
