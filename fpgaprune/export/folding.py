"""A model without the BatchNorms that the layer before them takes in, as the hardware has it too."""

from __future__ import annotations

from typing import Any

import keras

from fpgaprune.network import find_folds, folded_weights


def fold_batch_norms(model: Any) -> tuple[Any, dict[str, str]]:
    """The model as it computes at inference with fewer layers, and what each kernel that changed took in.

    Each BatchNorm that alone reads a linear convolution or Dense layer is folded into it in float64 and rounded once,
    the way `to_hls` does, so that the file and the hardware hold the same bits. `model` is unchanged. Models that hold
    layers of others than Keras, or models, are returned as they are: these cannot be copied without their help.

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
