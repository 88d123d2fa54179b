"""Tells whether an activation computes each number from that number alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fpgaprune.design import FUNCTIONS
from fpgaprune.keras_functions import activation_of


def elementwise_of(activation: Any) -> Callable[[Any], Any] | None:
    """What computes `activation` of a tensor of any dtype; None if a number may depend on others, or on its place."""
    known = activation_of(activation)
    if known is None or known.name not in FUNCTIONS or known.name == "prelu":
        return None
    if activation is None:
        return lambda x: x
    # A layer that is called casts what it reads to its own dtype.
    return getattr(activation, "call", activation)  # type: ignore[no-any-return]
