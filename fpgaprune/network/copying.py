"""`copied` makes a layer anew: of the same class, with the same settings and the very same activations.

Keras writes a function into a layer's configuration by its name alone. Made from it, a layer with a function of the
user's own called `tanh` computes Keras's `tanh`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from fpgaprune.errors import UnsupportedLayerError
from fpgaprune.keras_classes import keras_class
from fpgaprune.keras_functions import OwnFunction, described, own_functions

if TYPE_CHECKING:
    import keras


def copied(layer: keras.Layer, revise: Callable[[Any], Any] = dict, /, **changes: object) -> Any:
    """A new layer with the settings of `layer`, but for `changes`, and without its weights.

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
    """Within the block, `layer` has no activation at `places`: Keras cannot write each of them."""
    import keras

    parts = _parts(layer)
    try:
        for place in places:
            object.__setattr__(parts[place.part], place.name, keras.activations.linear)
        yield
    finally:
        for place in places:
            object.__setattr__(parts[place.part], place.name, place.function)
