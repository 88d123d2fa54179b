"""Which rule turns which operation into Verilog, and what to do without one."""

from __future__ import annotations

from collections.abc import Mapping

import fpgaprune.design as op
from fpgaprune.errors import FpgaPruneError, UnsupportedLayerError
from fpgaprune.rtl import elementwise, moves, pooling, products, recurrent, tables
from fpgaprune.rtl.solve import Rule
from fpgaprune.target import find_part

RULES: Mapping[type[op.Operation], Rule] = {
    op.Concatenate: elementwise.concatenate,
    op.Convolution: products.convolution,
    op.Copy: moves.copied,
    op.Crop: moves.cropping,
    op.Dense: products.dense,
    op.LookUp: elementwise.look_up_each,
    op.Map: elementwise.map_each,
    op.Merge: elementwise.merge,
    op.Pad: moves.zero_padding,
    op.Pooling: pooling.pooling,
    op.Quantise: elementwise.quantise,
    op.Recurrent: recurrent.recurrent,
    op.Reshape: moves.reshape,
    op.Resize: moves.resize,
    op.Reverse: moves.reverse,
    op.Scale: elementwise.batch_normalization,
    op.Softmax: tables.softmax,
    op.Transpose: moves.transpose,
}

# Operations on single values: the module of what is computed before them computes them, so that one queue serves both.
FOLLOWING = (op.LookUp, op.Map, op.Quantise)
FOLLOWED = (op.Convolution, op.Dense, op.Merge, op.Scale, *FOLLOWING)

# Operations that can read a stream whose values have different widths.
READS_PACKED = (op.Dense, op.Convolution)

# Operations that read two streams at once.
PAIRED = (op.Concatenate, op.Merge)


def require_kinds(design: op.Design) -> None:
    """Check that each layer of `design` has a rule.

    Raises:
        UnsupportedLayerError: one has none; the message says what to do instead.
    """
    for layer in design.layers:
        if not isinstance(layer.operation, (op.Input, *RULES)):
            raise UnsupportedLayerError(
                f"layer {layer.name!r} is a {layer.kind}, which has no Verilog; those that have: "
                f"{', '.join(kind.__name__ for kind in RULES)}: {_instead(design)}"
            )


def _instead(design: op.Design) -> str:
    """Return what to do with a design that has no Verilog."""
    try:
        compiles = design.part is None or find_part(design.part).compiles_hls
    except FpgaPruneError:
        compiles = True
    if compiles:
        return "take the hls4ml project (fit: --route hls)"
    return f"replace it; no tool for {design.part} builds an hls4ml project of it either, those of other vendors do"
