"""Weights that several layers hold: none of these layers can become smaller alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fpgaprune.errors import RemovalError
from fpgaprune.network.weight_axes import leaf_layers
from fpgaprune.values import named_weights

if TYPE_CHECKING:
    import keras


def require_unshared(model: keras.Model) -> None:
    """Check that each weight of `model` is held by one layer; a layer that is called several times is one.

    Raises:
        RemovalError: two layers share a weight, or one computes with the weight of another.
    """
    holders: dict[int, Any] = {}
    for layer in leaf_layers(model):
        for variable in layer.weights:
            holder = holders.setdefault(id(variable), layer)
            if holder is not layer:
                path = next(path for path, one in named_weights(model).items() if one is variable)
                raise RemovalError(
                    f"layers {holder.name!r} and {layer.name!r} share the weight {path!r}, so neither can lose "
                    "channels alone: give each a weight of its own, or call one layer twice"
                )
