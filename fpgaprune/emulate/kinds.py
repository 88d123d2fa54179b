"""Which function computes which kind of layer."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from fpgaprune.design import Design
from fpgaprune.emulate import activations, elementwise, moves, pooling, products, recurrent, softmax, tables
from fpgaprune.emulate.backends import check_backend, is_streamed
from fpgaprune.emulate.exact import Exact
from fpgaprune.emulate.step import Step
from fpgaprune.errors import UnsupportedLayerError

Rule = Callable[..., Exact]

RULES: Mapping[str, Rule] = {
    "Activation": activations.activation,
    "BatchNormalization": elementwise.batch_normalization,
    "Clone": moves.copied,
    "Concatenate": moves.concatenate,
    "Conv1D": products.convolution,
    "Conv2D": products.convolution,
    "Cropping1D": moves.cropping,
    "Cropping2D": moves.cropping,
    "Dense": products.dense,
    "DepthwiseConv1D": products.depthwise,
    "DepthwiseConv2D": products.depthwise,
    "ELU": tables.elu,
    "GRU": recurrent.gru,
    "GlobalPooling1D": pooling.global_pooling,
    "GlobalPooling2D": pooling.global_pooling,
    "HardActivation": activations.activation,
    "LSTM": recurrent.lstm,
    "LeakyReLU": activations.leaky_relu,
    "Merge": elementwise.merge,
    "PReLU": activations.prelu,
    "ParametrizedActivation": activations.activation,
    "PointwiseConv1D": products.convolution,
    "PointwiseConv2D": products.convolution,
    "Pooling1D": pooling.pooling,
    "Pooling2D": pooling.pooling,
    "Repack": moves.repack,
    "Reshape": moves.reshape,
    "Resize": moves.resize,
    "Softmax": softmax.softmax,
    "ThresholdedReLU": activations.thresholded_relu,
    "Transpose": moves.transpose,
    "ZeroPadding1D": moves.zero_padding,
    "ZeroPadding2D": moves.zero_padding,
}

# Kinds of which each layer chooses its function by an attribute.
_CHOOSERS: Mapping[str, Callable[[Step], Rule]] = {
    "Activation": activations.rule,
    "GRU": recurrent.rule,
    "HardActivation": activations.rule,
    "LSTM": recurrent.rule,
    "Merge": elementwise.rule,
    "ParametrizedActivation": activations.rule,
    "Softmax": softmax.rule,
}


def steps_of(design: Design) -> tuple[Step, ...]:
    """Every layer of `design` but its inputs, each with a rule.

    Raises:
        UnsupportedLayerError: a layer, its variant or the backend has no emulation; the message names it.
    """
    check_backend(design)
    by_name = {layer.name: layer for layer in design.layers}
    steps = []
    for layer in design.layers:
        if layer.kind == "Input":
            continue
        step = Step(
            layer,
            tuple(by_name[name] for name in layer.inputs),
            is_streamed(design),
            design.backend,
            design.io_type == "io_stream",
        )
        if layer.kind not in RULES:
            raise UnsupportedLayerError(
                f"layer {layer.name!r} is a {layer.kind}, which has no emulation; those that have: {', '.join(RULES)}"
            )
        if layer.kind in _CHOOSERS:
            try:
                _CHOOSERS[layer.kind](step)
            except UnsupportedLayerError as error:
                raise UnsupportedLayerError(f"layer {layer.name!r}: {error}") from error
        steps.append(step)
    return tuple(steps)
