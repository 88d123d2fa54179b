"""Which hardware model prices which layer class, under the names of hls4ml and of calibration rows."""

from __future__ import annotations

import re

from fpgaprune.errors import EstimateError

FAMILIES: dict[str, str] = {
    "Input": "input",
    "InputLayer": "input",
    "Constant": "input",
    "Reshape": "reshape",
    "Repack": "reshape",
    "Flatten": "reshape",
    "Dense": "dense",
    "EinsumDense": "dense",
    "Conv1D": "conv",
    "Conv2D": "conv",
    "PointwiseConv1D": "conv",
    "PointwiseConv2D": "conv",
    "DepthwiseConv1D": "depthwise",
    "DepthwiseConv2D": "depthwise",
    "GRU": "recurrent",
    "LSTM": "recurrent",
    "BatchNorm": "scale",
    "BatchNormalization": "scale",
    "ApplyAlpha": "scale",
    "Activation": "activation",
    "ParametrizedActivation": "activation",
    "HardActivation": "activation",
    "PReLU": "activation",
    "Softmax": "softmax",
    "Pooling": "pooling",
    "Pooling1D": "pooling",
    "Pooling2D": "pooling",
    "GlobalPooling": "global_pooling",
    "GlobalPooling1D": "global_pooling",
    "GlobalPooling2D": "global_pooling",
    "ZeroPadding": "padding",
    "ZeroPadding1D": "padding",
    "ZeroPadding2D": "padding",
    "Cropping1D": "padding",
    "Cropping2D": "padding",
    "Upsampling": "resize",
    "Resize": "resize",
    "Merge": "merge",
    "Concatenate": "merge",
    "Clone": "clone",
    "Transpose": "transpose",
}

# HGQ's quantiser has no class of its own in a generated project; it is a function that bears its layer's name.
_QUANTIZER = re.compile(r"h_quantize(_\d+)?|\w+_quantizer|FixedPointQuantizer")


def is_known(kind: object) -> bool:
    """Whether a hardware model prices layer class `kind`."""
    return isinstance(kind, str) and (kind in FAMILIES or _QUANTIZER.fullmatch(kind) is not None)


def family_of(kind: str, where: str) -> str:
    """The hardware model for layer class `kind`; `where` names the layer in the message.

    Raises:
        EstimateError: no model prices that class.
    """
    if not is_known(kind):
        raise EstimateError(
            f"{where} is a {kind!r}, which no hardware model prices; known classes: {', '.join(FAMILIES)}"
        )
    # A quantiser casts every number, as a linear activation does.
    return FAMILIES.get(kind, "activation")
