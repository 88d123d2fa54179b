"""Folds the BatchNorms of a model into the layers before them, as the hardware does."""

from __future__ import annotations

from typing import Any

import keras

from fpgaprune.keras_classes import keras_class
from fpgaprune.network import cloned, copied, find_folds, folded_weights, unconnected


def fold_batch_norms(model: keras.Model) -> tuple[Any, dict[str, str]]:
    """A model that computes the same at inference with its BatchNorms folded, and where each was folded.

    A BatchNorm that is the only reader of a linear convolution or Dense layer is folded into it in float64 and rounded
    once, as in `to_hls`, so that file and hardware hold the same bits. A layer of another precision (float64, bfloat16,
    mixed_float16) is made again in float32, which onnxruntime computes in. Layers that are not Keras's own stay as they
    are, and so does a model that contains other models. `model` is unchanged.

    Returns:
        The model, and layer name to the name of the BatchNorm folded into it.
    """
    functional = keras.Model(model.inputs, model.outputs, name=model.name)
    if any(hasattr(layer, "layers") for layer in model.layers):
        return functional, {}
    known = {layer.name: layer for layer in functional.layers if keras_class(layer) is not None}
    folds = {name: bn for name, bn in find_folds(functional).items() if name in known and bn.name in known}
    other = {name for name, layer in known.items() if _is_of_other_precision(layer)}
    if not folds and not other:
        return functional, {}
    folded = {layer: bn.name for layer, bn in folds.items()}

    def clone(layer: keras.Layer) -> Any:
        if layer.name not in folds and (layer.name not in other or not layer.weights):
            twin = unconnected(layer)
            if layer.name in other:
                twin.dtype_policy = "float32"
            return twin
        more = {"use_bias": True} if layer.name in folds else {}
        return copied(layer, **more, **({"dtype": "float32"} if layer.name in other else {}))

    def call(layer: keras.Layer, *args: object, **kwargs: object) -> Any:
        return args[0] if layer.name in folded.values() else layer(*args, **kwargs)

    weights = {name: folded_weights(known[name], bn) for name, bn in folds.items()}
    return cloned(functional, clone, call, weights, float_inputs="float32"), folded


def _is_of_other_precision(layer: keras.Layer) -> bool:
    """Whether `layer` computes with floats other than float32, or keeps such weights."""
    kinds = {layer.compute_dtype, layer.variable_dtype}
    return any(kind and "float" in kind for kind in kinds) and kinds != {"float32"}
