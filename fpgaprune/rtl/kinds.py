"""Which rule turns which operation into Verilog."""

from __future__ import annotations

from collections.abc import Mapping

from fpgaprune.design import (
    Concatenate,
    Convolution,
    Copy,
    Crop,
    Dense,
    LookUp,
    Map,
    Merge,
    Operation,
    Pad,
    Pooling,
    Quantise,
    Reshape,
    Resize,
    Scale,
    Softmax,
    Transpose,
)
from fpgaprune.rtl import elementwise, moves, pooling, products, softmax
from fpgaprune.rtl.solve import Rule

RULES: Mapping[type[Operation], Rule] = {
    Concatenate: elementwise.concatenate,
    Convolution: products.convolution,
    Copy: moves.copied,
    Crop: moves.cropping,
    Dense: products.dense,
    LookUp: elementwise.look_up_each,
    Map: elementwise.map_each,
    Merge: elementwise.merge,
    Pad: moves.zero_padding,
    Pooling: pooling.pooling,
    Quantise: elementwise.quantise,
    Reshape: moves.reshape,
    Resize: moves.resize,
    Scale: elementwise.batch_normalization,
    Softmax: softmax.softmax,
    Transpose: moves.transpose,
}

# Operations on single values: the module of the products before them computes them, so that one queue serves both.
FOLLOWING = (LookUp, Map, Quantise)
FOLLOWED = (Dense, Convolution, *FOLLOWING)

# Operations that can read a stream whose values have different widths.
READS_PACKED = (Dense, Convolution)

# Operations that read two streams at once.
PAIRED = (Concatenate, Merge)
