"""Checks which Keras layers become operations of a design that compute the same, and names alternatives to others."""

from __future__ import annotations

import keras

from fpgaprune.design import FUNCTIONS
from fpgaprune.errors import UnsupportedLayerError
from fpgaprune.lowering.classes import class_problem
from fpgaprune.lowering.recurrent_layers import RECURRENT, recurrent_reason
from fpgaprune.network import activation_in, calls_of, count_uses, described, keras_class

_ACTIVATIONS = frozenset({"softmax"} | {function.name for function in FUNCTIONS.values() if function.converts})
_NO_OPERATION = "for which there is no hardware here"


def check_layers(functional: keras.Model) -> None:
    """Check that every layer of `functional` becomes operations that compute the same.

    Raises:
        UnsupportedLayerError: it does not; the message names the first such layer and its alternative.
    """
    for problem in layer_problems(functional):
        raise UnsupportedLayerError(problem)


def check_classes(functional: keras.Model) -> None:
    """Check that the class of every layer of `functional` can be converted with some settings.

    Raises:
        UnsupportedLayerError: one cannot; the message names it and its alternative.
    """
    for layer in functional.layers:
        problem = _class_problem(layer)
        if problem is not None:
            raise UnsupportedLayerError(problem)


def _class_problem(layer: keras.Layer) -> str | None:
    known = keras_class(layer) or type(layer)
    return class_problem(layer.name, known.__name__, known.__module__, nested=hasattr(layer, "layers"))


def layer_problems(functional: keras.Model) -> list[str]:
    """Return one line for each layer of `functional` that cannot be converted: its name, the reason, what to do."""
    problems = []
    # What a mask of steps does to a recurrent layer is said of the layer that makes the mask.
    masked = any(isinstance(layer, keras.layers.Masking) for layer in functional.layers)
    for layer in functional.layers:
        kind = (keras_class(layer) or type(layer)).__name__
        problem = _class_problem(layer)
        if problem is not None:
            problems.append(problem)
            continue
        reason = None if masked and isinstance(layer, RECURRENT) else _reason(layer, kind)
        if reason:
            problems.append(f"layer {layer.name!r} ({kind}) cannot be converted: {reason}")
    uses = count_uses(calls_of(functional))
    return problems + [
        f"layer {layer.name!r} is used {uses[id(layer)]} times; hardware has no shared layers here: make a copy for "
        "each use"
        for layer in functional.layers
        if uses[id(layer)] > 1
    ]


def adds_bias_along_width(layer: keras.Layer) -> bool:
    """Return whether Keras takes the width of the output of `layer` for its channels, of which there are as many."""
    if getattr(layer, "data_format", None) != "channels_first" or not getattr(layer, "use_bias", False):
        return False
    channels, *_, width = layer.output.shape[1:]
    return bool(width == channels)


def _reason(layer: keras.Layer, kind: str) -> str | None:
    """Say why hardware would not compute the same as Keras; None if it would."""
    if getattr(layer, "lora_enabled", False) or getattr(layer, "quantization_mode", None):
        return "LoRA or quantize() has split its weights: replace it by a layer with the whole kernel"
    reason = _activation_reason(layer)
    if reason is not None:
        return reason
    if kind == "TimeDistributed":
        return f"it applies a {type(layer.layer).__name__} to every step, {_NO_OPERATION}: give it the steps themselves"
    if kind == "Bidirectional":
        return (
            f"it wraps {type(layer.forward_layer).__name__} and {type(layer.backward_layer).__name__}; hardware has "
            "GRU, LSTM and SimpleRNN in both directions, which return no states and read none"
        )
    if adds_bias_along_width(layer):
        width = layer.output.shape[-1]
        return (
            f"its output has {width} channels and is {width} wide, where Keras with data_format 'channels_first' "
            "adds the bias along the width: use 'channels_last', or a bias in a BatchNormalization"
        )
    if kind == "EinsumDense":
        return (
            f"its equation is {layer.equation!r}, and hardware has only products along the last axis, as "
            "'abc,cd->abd' with bias_axes 'd': use that, or Dense"
        )
    if kind == "Dot":
        shapes = " and ".join(str(tuple(tensor.shape[1:])) for tensor in layer.input)
        return f"it multiplies {shapes}; hardware has only the product of two vectors, without normalize: use Multiply"
    if kind.endswith("Transpose") and max(layer.dilation_rate) > 1:
        return f"its dilation_rate is {layer.dilation_rate}, {_NO_OPERATION}: use zeros in a larger kernel, locked"
    if kind == "UpSampling2D" and layer.interpolation != "nearest":
        return f"its interpolation is {layer.interpolation!r}, {_NO_OPERATION}: use 'nearest'"
    if isinstance(layer, RECURRENT):
        return recurrent_reason(layer)
    return None


def _activation_reason(layer: keras.Layer) -> str | None:
    """Say why hardware has no activation that computes what that of `layer` does; None if it has one."""
    known = activation_in(layer)
    # What applies the function: the layer itself, if it is nothing else.
    activation = layer if not hasattr(layer, "activation") else layer.activation
    if known is None and isinstance(layer, keras.layers.Softmax):
        # Which axis is the last one depends on what it reads.
        return None
    if known is None:
        return f"its activation is {described(activation)}; fpgaprune knows {', '.join(sorted(_ACTIVATIONS))} of Keras"
    if known.name == "prelu" and activation is not layer:
        return "its activation is a PReLU, whose slopes Keras does not save: put that after it as a layer of its own"
    if known.name not in _ACTIVATIONS | {"thresholded_relu", "prelu"}:
        return f"hardware has no activation {known.name!r} here; it has {', '.join(sorted(_ACTIVATIONS))}"
    return None
