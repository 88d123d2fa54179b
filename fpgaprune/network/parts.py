"""Layers whose kernel is in parts: Keras computes with LoRA's matrices or with integers beside the stored array."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from fpgaprune.errors import FpgaPruneError
from fpgaprune.network.graph import is_keras_model
from fpgaprune.values import named_weights

if TYPE_CHECKING:
    import keras


def in_parts(layer: keras.Layer) -> str | None:
    """Why no single array is the kernel of `layer`, and what to do: LoRA or Keras's `quantize()`; None if one is."""
    mode = getattr(layer, "quantization_mode", None)
    if mode:
        return f"Keras's quantize({mode!r}) has made other numbers of it; use the model from before quantize()"
    if getattr(layer, "lora_enabled", False):
        return (
            "LoRA adds to it; model.save_weights('merged.weights.h5') merges the two: load that file into the same "
            "network built without LoRA"
        )
    return None


def require_whole(model: keras.Model, paths: Iterable[str], problem: type[FpgaPruneError]) -> None:
    """Check that no layer of the weights `paths` has its kernel in parts.

    Raises:
        problem: LoRA or Keras's `quantize` has split it.
    """
    if not is_keras_model(model):
        return
    weights = named_weights(model)
    split = [layer for layer in model._flatten_layers(include_self=False) if in_parts(layer)]
    owners = {id(variable): layer for layer in split for variable in layer.variables}
    for path in paths:
        layer = owners.get(id(weights[path]))
        if layer is not None:
            raise problem(f"weight {path!r} is not what layer {layer.name!r} computes with: {in_parts(layer)}")
