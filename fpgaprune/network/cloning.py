"""`cloned` copies a functional model, with changes of its layers, calls and weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fpgaprune.network.graph import producer
from fpgaprune.values import Array

if TYPE_CHECKING:
    import keras


def cloned(
    functional: keras.Model,
    clone: Callable[[Any], Any],
    call: Callable[..., Any] | None = None,
    weights: Mapping[str, Sequence[Array]] | None = None,
    names: Mapping[str, str] | None = None,
    float_inputs: str | None = None,
) -> Any:
    """A copy of `functional` with the weights of its layers; layers that the copy does not have are left out.

    Args:
        functional: a functional model; it is not changed.
        clone: makes the copy of an operation.
        call: calls the copy of an operation, as `call_function` of `keras.models.clone_model`.
        weights: layer name to other weights than those of the layer.
        names: layer name to its name in the copy, for inputs and layers that `clone` renames.
        float_inputs: dtype of the copy's inputs of floats; None keeps each one's.
    """
    import keras

    names = names or {}
    # What `call` puts into `weights` counts.
    weights = {} if weights is None else weights
    inputs = [
        keras.Input(
            batch_shape=tensor.shape,
            dtype=float_inputs if float_inputs and "float" in tensor.dtype else tensor.dtype,
            name=names.get(name, name),
        )
        for tensor, name in ((tensor, producer(tensor).name) for tensor in functional.inputs)
    ]
    copy = keras.models.clone_model(functional, inputs, clone_function=clone, call_function=call)
    kept = {layer.name: layer for layer in copy.layers}
    for layer in functional.layers:
        twin = kept.get(names.get(layer.name, layer.name))
        if twin is not None and layer.weights:
            set_weights(twin, weights.get(layer.name) or layer.get_weights())
    return copy


def set_weights(layer: keras.Layer, weights: Sequence[Array]) -> None:
    """Let `layer` compute with `weights`, also if it is an adapted `Normalization`, which computes with copies."""
    layer.set_weights(weights)
    if hasattr(layer, "finalize_state"):
        layer.finalize_state()
