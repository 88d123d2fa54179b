"""A model whose BatchNorms are folded into the layer before them, as in hardware."""

from __future__ import annotations

from typing import Any

import keras

from fpgaprune.network import find_folds, folded_weights


def fold_batch_norms(model: Any) -> tuple[Any, dict[str, str]]:
    """The same function at inference with fewer layers, and which BatchNorm each changed kernel took in.

    Each BatchNorm that alone reads a linear convolution or Dense layer is folded into it in float64 and rounded once,
    as `to_hls` does it, so that file and hardware hold the same bits. `model` is unchanged. A model that holds
    other models, or layers that are not Keras's own, is returned as it is: it cannot be copied layer by layer.

    Returns:
        The model, and the name of the BatchNorm by the name of the layer that took it in.
    """
    functional = keras.Model(model.inputs, model.outputs, name=model.name)
    if not all(type(layer).__module__.startswith("keras.") and not hasattr(layer, "layers") for layer in model.layers):
        return functional, {}
    folds = {name: bn for name, bn in find_folds(functional).items() if _is_float32(functional.get_layer(name))}
    if not folds:
        return functional, {}
    gone = {bn.name for bn in folds.values()}

    def clone(layer: Any) -> Any:
        config = layer.get_config()
        return type(layer).from_config(config | {"use_bias": True} if layer.name in folds else config)

    def call(layer: Any, *args: Any, **kwargs: Any) -> Any:
        return args[0] if layer.name in gone else layer(*args, **kwargs)

    inputs = [keras.Input(batch_shape=tensor.shape, dtype=tensor.dtype) for tensor in functional.inputs]
    copy = keras.models.clone_model(functional, inputs, clone_function=clone, call_function=call)
    for layer in functional.layers:
        if layer.name in folds:
            copy.get_layer(layer.name).set_weights(folded_weights(layer, folds[layer.name]))
        elif layer.weights and layer.name not in gone:
            copy.get_layer(layer.name).set_weights(layer.get_weights())
    return copy, {name: bn.name for name, bn in folds.items()}


def _is_float32(layer: Any) -> bool:
    return str(layer.kernel.dtype) == "float32"
