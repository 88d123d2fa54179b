"""Which rule turns which kind of layer into Verilog."""

from __future__ import annotations

from collections.abc import Mapping

from fpgaprune.rtl import elementwise, moves, pooling, products, softmax
from fpgaprune.rtl.context import Rule

RULES: Mapping[str, Rule] = {
    "Activation": elementwise.activation,
    "BatchNormalization": elementwise.batch_normalization,
    "Clone": moves.copied,
    "Concatenate": elementwise.concatenate,
    "Conv1D": products.convolution,
    "Conv2D": products.convolution,
    "Cropping1D": moves.cropping,
    "Cropping2D": moves.cropping,
    "Dense": products.dense,
    "DepthwiseConv1D": products.depthwise,
    "DepthwiseConv2D": products.depthwise,
    "ELU": elementwise.elu,
    "GlobalPooling1D": pooling.global_pooling,
    "GlobalPooling2D": pooling.global_pooling,
    "HardActivation": elementwise.activation,
    "LeakyReLU": elementwise.leaky_relu,
    "Merge": elementwise.merge,
    "PReLU": elementwise.prelu,
    "ParametrizedActivation": elementwise.activation,
    "PointwiseConv1D": products.convolution,
    "PointwiseConv2D": products.convolution,
    "Pooling1D": pooling.pooling,
    "Pooling2D": pooling.pooling,
    "Repack": moves.repack,
    "Reshape": moves.reshape,
    "Resize": moves.resize,
    "Softmax": softmax.softmax,
    "ThresholdedReLU": elementwise.thresholded_relu,
    "Transpose": moves.transpose,
    "ZeroPadding1D": moves.zero_padding,
    "ZeroPadding2D": moves.zero_padding,
}

# Kinds that compute each value by itself: the pipeline of the products before them does that, and one queue is enough.
FOLLOWING = frozenset(
    {"Activation", "ELU", "HardActivation", "LeakyReLU", "ParametrizedActivation", "PReLU", "ThresholdedReLU"}
)
FOLLOWED = frozenset(kind for kind, rule in RULES.items() if rule.__module__ == products.__name__)

# Kinds that read two streams at once.
PAIRED = ("Concatenate", "Merge")
