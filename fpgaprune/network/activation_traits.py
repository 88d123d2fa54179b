"""Tells whether an activation maps 0 to 0, and whether it computes each element from that element alone."""

from __future__ import annotations

from typing import Any

from fpgaprune.design import FUNCTIONS
from fpgaprune.network.graph import is_of_keras
from fpgaprune.network.role import Role

_ACROSS_CHANNELS = frozenset({"softmax", "log_softmax", "sparsemax", "sparse_softmax", "glu"})


def activation_name(layer: Any, role: Role | None) -> str:
    """The name of the activation of `layer`; "linear" if it has none, "" if the activation is unknown."""
    if role is Role.POINTWISE and not hasattr(layer, "activation"):
        return "relu" if float(getattr(layer, "threshold", 0.0) or 0.0) >= 0 else ""
    function = getattr(layer, "activation", None)
    if function is None:
        return "linear"
    return getattr(function, "__name__", "") if is_of_keras(function) else ""


def keeps_zero(name: str) -> bool:
    """Whether the activation `name` is known to map 0 to 0."""
    return name in FUNCTIONS and FUNCTIONS[name].at_zero == 0


def mixes_channels(name: str) -> bool:
    """Whether the activation `name` reads several channels at once, or is unknown."""
    return name in _ACROSS_CHANNELS or name == ""


def is_elementwise(function: Any) -> bool:
    """Whether `function` is an element-wise activation of Keras itself; another function may have the same name."""
    import keras

    name = getattr(function, "__name__", "")
    return name in FUNCTIONS and getattr(keras.activations, name, None) is function
