"""A Keras model as hls4ml converts it exactly: BatchNorm folded, no-ops gone, weights on their grid.

Measured on hls4ml 1.3.0: a `ReLU` layer becomes a `ThresholdedReLU`; `n_zeros` and the multiplier
limit are counted on the weights before quantisation; and BatchNorm is folded only while the type of
the layer before it is left open. Folding and quantising here, before conversion, settles all three.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras
import numpy as np
from numpy.typing import NDArray

from fpgaprune.errors import HlsError
from fpgaprune.fixed import FixedType
from fpgaprune.hls.layers import INFERENCE_NO_OPS, check_layers
from fpgaprune.hls.split import split_separable

DEPTHWISE = (keras.layers.DepthwiseConv1D, keras.layers.DepthwiseConv2D)
FOLDABLE = (keras.layers.Conv1D, keras.layers.Conv2D, keras.layers.Dense, *DEPTHWISE)


def fold(model: Any) -> Any:
    """A new functional or Sequential model, equal over the reals at inference, that hls4ml can convert.

    Each BatchNorm that alone reads a linear convolution or Dense layer is folded into it (float64, then cast);
    Dropout is gone; `ReLU()` is `Activation("relu")`; the activation of a convolution or Dense layer is a layer of
    its own, `NAME_relu`, so that both get a type. A separable convolution is two layers. Layer names stay, but for
    those that hls4ml keeps for itself, which end in `_layer`.

    Raises:
        HlsError: a weight is NaN or infinite.
        UnsupportedLayerError: hls4ml cannot convert a layer, or one that is used twice; the message names it.
    """
    for variable in model.variables:
        if np.issubdtype(np.dtype(variable.dtype), np.floating) and not np.isfinite(variable.numpy()).all():
            raise HlsError(f"weight {variable.path!r} holds NaN or infinity; hls4ml would write it as it is: retrain")
    # Sequential takes no call_function, and the layers to skip must leave the graph.
    functional = keras.Model(model.inputs, model.outputs, name=model.name)
    check_layers(functional)
    functional = split_separable(functional)
    folds = _folds(functional)
    folded_names = {bn.name for bn in folds.values()}
    originals = {layer.name: layer for layer in functional.layers}
    activations = {
        name: layer.activation
        for name, layer in originals.items()
        if isinstance(layer, FOLDABLE) and layer.activation is not keras.activations.linear
    }

    def clone(layer: Any) -> Any:
        config = layer.get_config() | {"name": allowed_name(layer.name)}
        if layer.name in folds:
            config["use_bias"] = True
        if layer.name in activations:
            config["activation"] = "linear"
        if type(layer) is keras.layers.ReLU and layer.negative_slope == 0 and layer.threshold == 0:
            return keras.layers.Activation("relu" if layer.max_value is None else "relu6", name=config["name"])
        if getattr(layer, "activation", None) is keras.activations.softmax and len(layer.output.shape) > 2:
            # As an activation of several axes it would be taken over all of them.
            return keras.layers.Softmax(name=config["name"])
        return type(layer).from_config(config)

    def call(layer: Any, *args: Any, **kwargs: Any) -> Any:
        if layer.name in folded_names or isinstance(layer, INFERENCE_NO_OPS):
            return args[0]
        output = layer(*args, **kwargs)
        if layer.name not in activations:
            return output
        activation = activations[layer.name]
        return keras.layers.Activation(activation, name=f"{layer.name}_{activation.__name__}")(output)

    inputs = [
        keras.Input(batch_shape=tensor.shape, dtype=tensor.dtype, name=allowed_name(tensor.name))
        for tensor in functional.inputs
    ]
    copy = keras.models.clone_model(functional, inputs, clone_function=clone, call_function=call)
    for name, original in originals.items():
        if name in folds:
            copy.get_layer(allowed_name(name)).set_weights(_folded(original, folds[name]))
        elif original.weights and name not in folded_names and not isinstance(original, INFERENCE_NO_OPS):
            copy.get_layer(allowed_name(name)).set_weights(original.get_weights())
    return copy


def quantise_weights(folded: Any, types: Mapping[str, Mapping[str, FixedType]]) -> dict[str, dict[str, NDArray[Any]]]:
    """`folded` holds exactly the values of its weights in `types`; the raw integers are returned.

    Args:
        folded: what `fold` returned; changed in place.
        types: layer name to role (`weight`, `bias`, `scale`) to type.
    """
    raws: dict[str, dict[str, NDArray[Any]]] = {}
    for layer in folded.layers:
        roles = types.get(layer.name, {})
        if not isinstance(layer, FOLDABLE) or "weight" not in roles:
            continue
        named = dict(zip(("weight", "bias"), layer.get_weights(), strict=False))
        raws[layer.name] = {role: roles[role].to_raw(value) for role, value in named.items()}
        layer.set_weights([roles[role].to_float(raw).astype("float32") for role, raw in raws[layer.name].items()])
    return raws


def _folds(functional: Any) -> dict[str, Any]:
    """Layer name to the BatchNorm that alone reads it, for linear layers that can take it in."""
    readers: dict[str, list[Any]] = {}
    for node in (node for level in functional._nodes_by_depth.values() for node in level):
        for tensor in node.input_tensors:
            readers.setdefault(tensor._keras_history.operation.name, []).append(node.operation)
    leaving = {tensor._keras_history.operation.name for tensor in functional.outputs}
    folds = {}
    for layer in functional.layers:
        reader = readers.get(layer.name, [])
        if not isinstance(layer, FOLDABLE) or layer.activation is not keras.activations.linear or len(reader) != 1:
            continue
        if type(reader[0]) is keras.layers.BatchNormalization and layer.name not in leaving:
            last = len(layer.output.shape) - 1
            if reader[0].axis in (-1, last):
                folds[layer.name] = reader[0]
    return folds


def batch_norm_scale_and_shift(bn: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What a BatchNorm multiplies by and then adds at inference, per channel, in float64."""
    mean = np.asarray(bn.moving_mean, dtype=np.float64)
    gamma = np.asarray(bn.gamma, dtype=np.float64) if bn.scale else np.ones_like(mean)
    beta = np.asarray(bn.beta, dtype=np.float64) if bn.center else np.zeros_like(mean)
    scale = gamma / np.sqrt(np.asarray(bn.moving_variance, dtype=np.float64) + bn.epsilon)
    return scale, beta - mean * scale


def _folded(layer: Any, bn: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    scale, shift = batch_norm_scale_and_shift(bn)
    # A depthwise kernel is (..., C, 1): its outputs are on the last axis but one.
    kernel = np.asarray(layer.kernel, dtype=np.float64) * (scale[:, None] if isinstance(layer, DEPTHWISE) else scale)
    bias = shift + (np.asarray(layer.bias, dtype=np.float64) * scale if layer.use_bias else 0.0)
    # + 0.0 turns the negative zeros of a negative scale into plain ones.
    return (kernel + 0.0).astype("float32"), (bias + 0.0).astype("float32")


def allowed_name(name: str) -> str:
    """`name`, or `NAME_layer` where hls4ml would rename the layer."""
    # It keeps 'input' for itself, and by a slip each of its letters.
    return f"{name}_layer" if name in ("input", *"input") else name
