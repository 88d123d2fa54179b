"""Which hardware model prices which layer class of a calibration row."""

from __future__ import annotations

import re

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
    "Concatenate": "concatenation",
    "Clone": "clone",
    "Transpose": "transpose",
}

# The family of a layer of any other class: it passes its data on, and its hardware is not counted.
UNPRICED = "unpriced"
# A generated project names HGQ's quantiser after its layer.
_QUANTIZER = re.compile(r"h_quantize(_\d+)?|\w+_quantizer|FixedPointQuantizer")


def is_quantizer(kind: str) -> bool:
    """Return whether layer class `kind` is a quantiser of HGQ, which casts every number as a linear activation does."""
    return _QUANTIZER.fullmatch(kind) is not None


def family_of(kind: str) -> str:
    """Return the hardware model that prices layer class `kind`, or `UNPRICED`."""
    return FAMILIES.get(kind) or ("activation" if is_quantizer(kind) else UNPRICED)


def unpriced(kind: str, where: str) -> str:
    """Say why the layer that `where` names is left out of the figures."""
    return f"{where} is a {kind!r}, which no hardware model prices; known classes: {', '.join(FAMILIES)}"
