"""`shorten_steps`: an optimizer that takes shorter steps for some variables."""

from __future__ import annotations

from typing import Any

import keras

from fpgaprune.train.places import place_of

# The size of their steps is that of the gradients; that of others is the rate, whatever the gradients are.
_BY_GRADIENTS = (keras.optimizers.SGD,)


def shorten_steps(model: keras.Model, factors: dict[str, float]) -> None:
    """Let the optimizer of the compiled `model` train the kernel of a layer as if it were 1 / factor times as large.

    Args:
        model: its optimizer changes.
        factors: layer to factor, 0..1; layers that `model` lacks do not matter.
    """
    optimizer, layers = model.optimizer, {layer.name: layer for layer in model.layers}
    power = 2 if isinstance(optimizer, _BY_GRADIENTS) else 1
    shorter = {
        place_of(layers[name].kernel): factor**power
        for name, factor in factors.items()
        if getattr(layers.get(name), "kernel", None) is not None
    }
    if not shorter:
        return
    step = optimizer.update_step

    def update_step(gradient: Any, variable: Any, learning_rate: Any) -> None:
        step(gradient, variable, learning_rate * shorter.get(place_of(variable), 1.0))

    optimizer.update_step = update_step
