"""Which rule turns which operation into Verilog."""

from __future__ import annotations

from collections.abc import Mapping

import fpgaprune.design as op
from fpgaprune.rtl import elementwise, moves, pooling, products, softmax
from fpgaprune.rtl.solve import Rule

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
    op.Reshape: moves.reshape,
    op.Resize: moves.resize,
    op.Scale: elementwise.batch_normalization,
    op.Softmax: softmax.softmax,
    op.Transpose: moves.transpose,
}

# Operations on single values: the module of what is computed before them computes them, so that one queue serves both.
FOLLOWING = (op.LookUp, op.Map, op.Quantise)
FOLLOWED = (op.Convolution, op.Dense, op.Merge, op.Scale, *FOLLOWING)

# Operations that can read a stream whose values have different widths.
READS_PACKED = (op.Dense, op.Convolution)

# Operations that read two streams at once.
PAIRED = (op.Concatenate, op.Merge)
