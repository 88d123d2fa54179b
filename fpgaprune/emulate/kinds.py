"""`RULES`: operation -> the function that emulates it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from fpgaprune.backends import faults_of, unknown_of
from fpgaprune.design import (
    Concatenate,
    Convolution,
    Copy,
    Crop,
    Dense,
    Design,
    Input,
    LookUp,
    Map,
    Merge,
    Operation,
    Pad,
    Pooling,
    Quantise,
    Recurrent,
    Reshape,
    Resize,
    Scale,
    Softmax,
    Transpose,
)
from fpgaprune.emulate import activations, elementwise, moves, pooling, products, recurrent, softmax, tables
from fpgaprune.emulate.exact import Exact
from fpgaprune.emulate.step import Step
from fpgaprune.errors import DesignError, UnsupportedLayerError

Rule = Callable[..., Exact]

RULES: Mapping[type[Operation], Rule] = {
    Concatenate: moves.concatenate,
    Convolution: products.convolution,
    Copy: moves.copied,
    Crop: moves.cropping,
    Dense: products.dense,
    LookUp: tables.look_up,
    Map: activations.mapped,
    Merge: elementwise.merge,
    Pad: moves.zero_padding,
    Pooling: pooling.pooling,
    Quantise: activations.quantised,
    Recurrent: recurrent.recurrent,
    Reshape: moves.reshape,
    Resize: moves.resize,
    Scale: elementwise.batch_normalization,
    Softmax: softmax.softmax,
    Transpose: moves.transpose,
}

# Checks of the operations that have variants without an emulation.
_CHECKS: Mapping[type[Operation], Callable[[Step], None]] = {
    LookUp: activations.check,
    Map: activations.check,
    Merge: elementwise.check,
    Recurrent: recurrent.check,
    Softmax: softmax.check,
}


def steps_of(design: Design) -> tuple[Step, ...]:
    """A step for every layer of `design` except its inputs; each has a rule.

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
        elif kind is not Input:
            raise UnsupportedLayerError(
                f"layer {layer.name!r} is a {layer.kind}, which has no emulation; those that have: "
                f"{', '.join(kind.__name__ for kind in RULES)}"
            )
    for fault in faults_of(design):
        raise DesignError(fault)
    return tuple(steps)
