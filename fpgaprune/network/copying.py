"""Copies layers, and functional models with changes of their layers, calls and weights.

Keras writes a function into a layer's configuration by its name alone. Made from it, a layer with a function of the
user's own called `tanh` computes Keras's `tanh`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from fpgaprune.errors import UnsupportedLayerError
from fpgaprune.network.functions import OwnFunction, described, keras_class, own_functions
from fpgaprune.network.graph import producer
from fpgaprune.values import Array

if TYPE_CHECKING:
    import keras


def copied(layer: keras.Layer, revise: Callable[[Any], Any] = dict, /, **changes: object) -> keras.Layer:
    """Return a new layer with the settings of `layer`, but for `changes`, and without its weights.

    A layer of a subclass that computes what its parent of Keras computes becomes one of that parent.

    Args:
        layer: a Keras layer; it is not changed.
        revise: makes another configuration of that of `layer`.
        changes: entries of its configuration.

    Raises:
        UnsupportedLayerError: it applies a function that cannot be given to a copy.
    """
    plain: Any = keras_class(layer) or type(layer)
    own = own_functions(layer)
    with _written_as_linear(layer, own):
        config = plain.get_config(layer)
    twin = plain.from_config({**revise(config), **changes})
    parts = _parts(twin)
    for place in own:
        if not place.part and place.name in changes:
            continue
        if place.part >= len(parts) or not hasattr(parts[place.part], place.name):
            raise UnsupportedLayerError(
                f"layer {layer.name!r} ({type(layer).__name__}) cannot be made anew with its {place.name}, "
                f"{described(place.function)}: register the function with keras.saving.register_keras_serializable"
            )
        setattr(parts[place.part], place.name, place.function)
    return twin


def _parts(layer: keras.Layer) -> list[Any]:
    return list(layer._flatten_layers())


@contextmanager
def _written_as_linear(layer: keras.Layer, places: list[OwnFunction]) -> Iterator[None]:
    """Replace the activations at `places` of `layer` by linear within the block; Keras cannot save all functions."""
    import keras

    parts = _parts(layer)
    try:
        for place in places:
            object.__setattr__(parts[place.part], place.name, keras.activations.linear)
        yield
    finally:
        for place in places:
            object.__setattr__(parts[place.part], place.name, place.function)


def cloned(
    functional: keras.Model,
    clone: Callable[[Any], Any],
    call: Callable[..., Any] | None = None,
    weights: Mapping[str, Sequence[Array]] | None = None,
    names: Mapping[str, str] | None = None,
    float_inputs: str | None = None,
) -> keras.Model:
    """Return a copy of `functional` with the weights of its layers; layers that the copy does not have are left out.

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
