"""Folds the BatchNorms of a model into the layers before them, as the hardware does."""

from __future__ import annotations

from typing import Any

import keras

from fpgaprune.network import cloned, find_folds, folded_weights


def fold_batch_norms(model: Any) -> tuple[Any, dict[str, str]]:
    """A model that computes the same at inference with its BatchNorms folded, and where each was folded.

    A BatchNorm that is the only reader of a linear convolution or Dense layer is folded into it in float64 and rounded
    once, as in `to_hls`, so that file and hardware hold the same bits. A layer of mixed precision, whose weights are
    float32, computes in float32, because ONNX would hold them as float16. `model` is unchanged. A model that contains
    other models, or layers that are not Keras's own, is returned without folds, because it cannot be copied layer by
    layer.

    Returns:
        The model, and layer name to the name of the BatchNorm folded into it.
    """
    functional = keras.Model(model.inputs, model.outputs, name=model.name)
    if not all(type(layer).__module__.startswith("keras.") and not hasattr(layer, "layers") for layer in model.layers):
        return functional, {}
    folds = {
        name: bn
        for name, bn in find_folds(functional).items()
        if str(functional.get_layer(name).kernel.dtype) == "float32"
    }
    mixed = {layer.name for layer in functional.layers if layer.variable_dtype == "float32" != layer.compute_dtype}
    if not folds and not mixed:
        return functional, {}
    folded = {layer: bn.name for layer, bn in folds.items()}

    def clone(layer: Any) -> Any:
        more = {"use_bias": True} if layer.name in folds else {}
        return type(layer).from_config(
            layer.get_config() | more | ({"dtype": "float32"} if layer.name in mixed else {})
        )

    def call(layer: Any, *args: Any, **kwargs: Any) -> Any:
        return args[0] if layer.name in folded.values() else layer(*args, **kwargs)

    weights = {name: folded_weights(functional.get_layer(name), bn) for name, bn in folds.items()}
    return cloned(functional, clone, call, weights), folded
