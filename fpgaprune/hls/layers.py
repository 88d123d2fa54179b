"""Which Keras layers can go to hls4ml, and what to use in place of the others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras

from fpgaprune.errors import UnsupportedLayerError
from fpgaprune.hls.backends import Backend
from fpgaprune.hls.recurrent import RECURRENT, recurrent_reason

# hls4ml 1.3.0 converts these from Keras 3, and the types of each are settled here.
SUPPORTED = frozenset(
    {
        *("InputLayer", "Dense", "Conv1D", "Conv2D", "DepthwiseConv1D", "DepthwiseConv2D", "BatchNormalization"),
        *("SeparableConv1D", "SeparableConv2D"),  # by `split_separable`
        *("Activation", "ReLU", "LeakyReLU", "PReLU", "ELU", "Softmax"),
        *("MaxPooling1D", "MaxPooling2D", "AveragePooling1D", "AveragePooling2D"),
        *("GlobalMaxPooling1D", "GlobalMaxPooling2D", "GlobalAveragePooling1D", "GlobalAveragePooling2D"),
        *("Add", "Subtract", "Multiply", "Average", "Maximum", "Minimum", "Concatenate"),
        *("Flatten", "Reshape", "Permute", "ZeroPadding1D", "ZeroPadding2D", "Cropping1D", "Cropping2D"),
        *("UpSampling1D", "UpSampling2D", "Dropout", "SpatialDropout1D", "SpatialDropout2D"),
        *("GaussianNoise", "GaussianDropout", "ActivityRegularization"),
        *("GRU", "LSTM"),
    }
)
_MERGES = frozenset({"Add", "Subtract", "Multiply", "Average", "Maximum", "Minimum", "Concatenate"})
_ACTIVATIONS = frozenset(
    {
        *("linear", "relu", "relu6", "leaky_relu", "elu", "selu"),
        *("sigmoid", "tanh", "softplus", "softsign", "softmax"),
    }
)
_INSTEAD: Mapping[str, str] = {
    "Conv3D": "Conv2D layers",
    "Conv1DTranspose": "UpSampling1D and Conv1D",
    "Conv2DTranspose": "UpSampling2D and Conv2D",
    "LayerNormalization": "BatchNormalization",
    "GroupNormalization": "BatchNormalization",
    "UnitNormalization": "BatchNormalization",
    "Rescaling": "data that are scaled before they reach the network",
    "Normalization": "data that are normalised before they reach the network, or BatchNormalization",
    "Lambda": "layers of Keras that compute the same",
    "Dot": "Dense layers",
    "MultiHeadAttention": "convolutions and Dense layers",
    "Embedding": "data that are encoded before they reach the network",
    "SimpleRNN": "GRU",
    "Bidirectional": "GRU or LSTM, which read the steps in one direction",
}
# hls4ml 1.3.0 has converters and templates for these; what they compute with is not settled here.
_UNSETTLED = frozenset({"Bidirectional", "LayerNormalization"})
_NO_TEMPLATE = "hls4ml has no templates for it"


def check_layers(functional: Any) -> None:
    """Every layer of `functional` is one that hls4ml converts with the meaning that it has in Keras.

    Raises:
        UnsupportedLayerError: the first that is not; the message names the alternative.
    """
    for layer in functional.layers:
        kind = type(layer).__name__
        if kind not in SUPPORTED:
            near = _INSTEAD.get(kind)
            instead = f"use {near}" if near else f"it converts {', '.join(sorted(SUPPORTED))}"
            why = (
                "whose types this fpgaprune does not settle yet"
                if kind in _UNSETTLED
                else "which hls4ml cannot convert"
            )
            raise UnsupportedLayerError(f"layer {layer.name!r} is a {kind}, {why}; {instead}")
        reason = _reason(layer, kind)
        if reason:
            raise UnsupportedLayerError(f"layer {layer.name!r} ({kind}) cannot be converted: {reason}")
    uses: dict[str, int] = {}
    for node in (node for level in functional._nodes_by_depth.values() for node in level):
        uses[node.operation.name] = uses.get(node.operation.name, 0) + 1
    for name, count in uses.items():
        if count > 1:
            raise UnsupportedLayerError(
                f"layer {name!r} is used {count} times; hardware has no shared layers here: make a copy for each use"
            )


def check_kinds(functional: Any, backend: Backend, io_type: str, strategy: str) -> None:
    """`backend` has templates for every layer of `functional`.

    Raises:
        UnsupportedLayerError: it lacks one; the message names the layer and what to change.
    """
    kinds = {layer.name: type(layer).__name__ for layer in functional.layers}
    for name, kind in kinds.items():
        if backend.kinds is not None and kind not in backend.kinds:
            raise UnsupportedLayerError(
                f"layer {name!r} is a {kind}; backend {backend.name} has templates for "
                f"{', '.join(sorted(backend.kinds))} only: choose another backend"
            )
        layer = functional.get_layer(name)
        if (
            io_type == "io_stream"
            and kind in ("Conv2D", "DepthwiseConv2D")
            and layer.kernel_size[0] == 1 < layer.strides[0]
            and layer.kernel_size != (1, 1)
        ):
            raise UnsupportedLayerError(
                f"layer {name!r} is a {kind} with a kernel of height 1 and a vertical stride, which hls4ml ignores in "
                "io_stream: choose io_parallel"
            )
        if kind in backend.wrong:
            raise UnsupportedLayerError(
                f"layer {name!r} is a {kind}, with which backend {backend.name} {backend.wrong[kind]}; another backend "
                "('Vitis') builds it"
            )
        if kind in backend.unsettled:
            raise UnsupportedLayerError(
                f"layer {name!r} is a {kind}, which hls4ml builds for backend {backend.name} with other templates, for "
                "which this fpgaprune does not settle the types yet: choose backend 'Vitis' or 'Vivado'"
            )
        if io_type == "io_stream" and kind in backend.unstreamed:
            raise UnsupportedLayerError(
                f"layer {name!r} is a {kind}, whose io_stream template of backend {backend.name} does not compile: "
                "choose io_parallel"
            )
        depthwise = kind.startswith("Depthwise") and strategy == "resource"
        if depthwise and (io_type == "io_parallel" or backend.name == "Catapult"):
            raise UnsupportedLayerError(
                f"layer {name!r} is a {kind}, for which strategy 'resource' has no template in {io_type} of backend "
                f"{backend.name}: choose strategy 'latency'{'' if io_type == 'io_stream' else ', or io_stream'}"
            )
    if io_type == "io_parallel" and {"DepthwiseConv1D", "DepthwiseConv2D"} <= set(kinds.values()):
        raise UnsupportedLayerError(
            "a project for io_parallel cannot hold a DepthwiseConv1D and a DepthwiseConv2D, for their headers share an "
            "include guard in hls4ml: choose io_stream"
        )


def _reason(layer: Any, kind: str) -> str | None:
    """Why hls4ml would not compute what Keras does; None where it does."""
    activation = getattr(layer, "activation", None)
    if activation is not None:
        name = getattr(activation, "__name__", str(activation))
        if name == "hard_sigmoid":
            return "hls4ml's hard_sigmoid is x / 5 + 1 / 2, that of Keras x / 6 + 1 / 2: use 'sigmoid'"
        if name not in _ACTIVATIONS:
            return f"it knows no activation {name!r}; it knows {', '.join(sorted(_ACTIVATIONS))}"
    if getattr(layer, "data_format", None) == "channels_first":
        return "its data_format is 'channels_first'; only 'channels_last' has templates"
    rate = getattr(layer, "dilation_rate", 1)
    if any(r != 1 for r in (rate if isinstance(rate, tuple | list) else (rate,))):
        return f"it is dilated by {rate}, and {_NO_TEMPLATE}: widen the kernel with zeros instead"
    if getattr(layer, "groups", 1) != 1:
        return f"it has {layer.groups} groups, and {_NO_TEMPLATE}: split it with fp.split_groups first"
    if kind.startswith(("Depthwise", "Separable")) and layer.depth_multiplier != 1:
        return f"its depth multiplier is {layer.depth_multiplier}, and {_NO_TEMPLATE}: use 1"
    if kind == "UpSampling2D" and layer.interpolation != "nearest":
        return f"its interpolation is {layer.interpolation!r}, and {_NO_TEMPLATE}: use 'nearest'"
    if kind == "ReLU" and layer.max_value not in (None, 6.0):
        return f"its max_value is {layer.max_value}, and {_NO_TEMPLATE}: use none, or 6"
    if kind == "ReLU" and layer.max_value is not None and (layer.negative_slope or layer.threshold):
        return "it has a max_value together with a slope or a threshold; use one of them"
    if kind == "PReLU" and layer.shared_axes:
        return f"it shares its slopes along axes {layer.shared_axes}, and {_NO_TEMPLATE}: use LeakyReLU, or share none"
    if isinstance(layer, RECURRENT):
        return recurrent_reason(layer)
    if isinstance(layer.input, list) and len(layer.input) > 2 and kind in _MERGES:
        return f"it merges {len(layer.input)} tensors, and {_NO_TEMPLATE}: merge two at a time"
    return None


INFERENCE_NO_OPS = (
    *(keras.layers.Dropout, keras.layers.SpatialDropout1D, keras.layers.SpatialDropout2D),
    *(keras.layers.GaussianNoise, keras.layers.GaussianDropout, keras.layers.ActivityRegularization),
)
