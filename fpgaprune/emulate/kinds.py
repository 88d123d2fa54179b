"""`RULES`: operation -> the function that emulates it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import fpgaprune.design as op
from fpgaprune.backends import faults_of, unknown_of
from fpgaprune.design import Design
from fpgaprune.emulate import activations, elementwise, moves, pooling, products, recurrent, softmax, tables
from fpgaprune.emulate.exact import Exact
from fpgaprune.emulate.step import Step
from fpgaprune.errors import DesignError, UnsupportedLayerError

Rule = Callable[..., Exact]

RULES: Mapping[type[op.Operation], Rule] = {
    op.Concatenate: moves.concatenate,
    op.Convolution: products.convolution,
    op.Copy: moves.copied,
    op.Crop: moves.cropping,
    op.Dense: products.dense,
    op.LookUp: tables.look_up,
    op.Map: activations.mapped,
    op.Merge: elementwise.merge,
    op.Pad: moves.zero_padding,
    op.Pooling: pooling.pooling,
    op.Quantise: activations.quantised,
    op.Recurrent: recurrent.recurrent,
    op.Reshape: moves.reshape,
    op.Resize: moves.resize,
    op.Reverse: moves.reverse,
    op.Scale: elementwise.batch_normalization,
    op.Softmax: softmax.softmax,
    op.Transpose: moves.transpose,
}

# Checks of the operations that have variants without an emulation.
_CHECKS: Mapping[type[op.Operation], Callable[[Step], None]] = {
    op.LookUp: activations.check,
    op.Map: activations.check,
    op.Merge: elementwise.check,
    op.Recurrent: recurrent.check,
}


def computed(step: Step, *values: Exact) -> Exact:
    """Return what a layer makes of its inputs (N, ...)."""
    return RULES[type(step.layer.operation)](step, *values)


def steps_of(design: Design) -> tuple[Step, ...]:
    """Return a step for every layer of `design` except its inputs; each has a rule.

    Raises:
        UnsupportedLayerError: a layer or its variant has no emulation; the message names it.
        DesignError: the design does not state what a layer computes, or its project computes something else.
    """
    by_name = {layer.name: layer for layer in design.layers}
    steps = []
    for layer in design.layers:
        unknown = unknown_of(layer, design)
        if unknown:
            raise UnsupportedLayerError(f"layer {layer.name!r} ({layer.kind}): {unknown}")
        step = Step(layer, tuple(by_name[name] for name in layer.inputs))
        try:
            kind = type(layer.operation)
            if kind in _CHECKS:
                _CHECKS[kind](step)
        except UnsupportedLayerError as error:
            raise UnsupportedLayerError(f"layer {layer.name!r}: {error}") from error
        except DesignError as error:
            raise DesignError(f"layer {layer.name!r} ({layer.kind}): {error}") from error
        if kind in RULES:
            steps.append(step)
        elif kind is not op.Input:
            raise UnsupportedLayerError(
                f"layer {layer.name!r} is a {layer.kind}, which has no emulation; those that have: "
                f"{', '.join(kind.__name__ for kind in RULES)}"
            )
    for fault in faults_of(design):
        raise DesignError(fault)
    return tuple(steps)
