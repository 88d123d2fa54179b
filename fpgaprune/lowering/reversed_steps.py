"""`ReversedSteps`, and recurrent layers that read backwards or in both directions as ones that read forwards.

Hardware reads steps as they come. So a layer with `go_backwards` reads them through a `ReversedSteps`, and a
`Bidirectional` becomes its two layers, one of them such a one, and the layer that merges what both give.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import keras
from keras import ops

from fpgaprune.lowering.recurrent_layers import RECURRENT
from fpgaprune.network import Call, Channels, LayerRule, Role, Site, keras_class

if TYPE_CHECKING:
    import tensorflow as tf

_MERGED: dict[str | None, Any] = {
    None: lambda **_: list,
    "concat": keras.layers.Concatenate,
    "sum": keras.layers.Add,
    "mul": keras.layers.Multiply,
    "ave": keras.layers.Average,
}


def _reversed(site: Site) -> Channels:
    """Reverse what is known of each step, where that differs from step to step."""
    x = site.inputs[0]
    return replace(x, ids=x.ids[::-1], known=x.known[::-1], value=x.value[::-1])


@keras.saving.register_keras_serializable(package="fpgaprune")
class ReversedSteps(keras.layers.Layer):  # type: ignore[misc, unused-ignore]
    """Hands on the steps of its input (N, T, ...) from the last to the first."""

    channel_rule = LayerRule(_reversed, Role.POSITIONS)

    def call(self, x: tf.Tensor) -> tf.Tensor:
        """Return `x` with its second axis reversed."""
        return ops.flip(x, axis=1)

    def compute_output_shape(self, input_shape: Any) -> Any:
        """Return the shape of the input."""
        return input_shape


def wrapped_layers(call: Call) -> dict[str, Any]:
    """Map path to layer, for the two layers of a `Bidirectional` that can be split; empty for any other call."""
    layer: Any = call.operation
    if keras_class(layer) is not keras.layers.Bidirectional or len(call.inputs) > 1:
        return {}
    halves = (layer.forward_layer, layer.backward_layer)
    plain = all(keras_class(half) in RECURRENT and not half.return_state for half in halves)
    return {f"{call.path}/{half.name}": half for half in halves} if plain else {}


def reads_otherwise(call: Call) -> bool:
    """Return whether a layer reads its only input from the last step to the first, or in both directions."""
    layer: Any = call.operation
    backwards = keras_class(layer) in RECURRENT and layer.go_backwards and len(call.inputs) == 1
    return backwards or bool(wrapped_layers(call))


def with_steps_forward(
    call: Call, names: Mapping[str, str], x: keras.KerasTensor, copy: Callable[..., Any], free: Callable[[str], str]
) -> Any:
    """Return what layers that read forwards make of `x`, which is what the layer that is called makes of it.

    Args:
        call: a call that `reads_otherwise`.
        names: path of each layer to its name in the network that is made.
        x: (N, T, C).
        copy: makes a copy of a layer with a name and other settings.
        free: makes a name that no layer has from a wanted one.
    """

    def forwards(one: keras.Layer, name: str) -> keras.KerasTensor:
        read = ReversedSteps(name=free(f"{names[call.path]}_reversed"))(x) if one.go_backwards else x
        return copy(one, name, go_backwards=False)(read)

    layer, name = call.operation, names[call.path]
    halves = wrapped_layers(call)
    if not halves:
        return forwards(layer, name)
    one, two = (forwards(half, names[path]) for path, half in halves.items())
    if layer.return_sequences:
        two = ReversedSteps(name=free(f"{name}_in_order"))(two)
    return _MERGED[layer.merge_mode](name=name)([one, two])
