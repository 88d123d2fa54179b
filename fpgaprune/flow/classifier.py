"""The flow's idea of a task: class numbers, and the share of held-out samples that get theirs."""

from __future__ import annotations

from typing import Any

from fpgaprune.flow.data import Dataset


def compile_classifier(model: Any, learning_rate: float, steps: int, *, restarts: bool = False) -> None:
    """`model` is compiled for class numbers and Adam; the rate falls as a cosine over `steps`, anew if it restarts."""
    import keras

    last = model.layers[-1]
    gives_probabilities = isinstance(last, keras.layers.Softmax) or (
        getattr(last, "activation", None) is keras.activations.softmax
    )
    schedules = keras.optimizers.schedules
    rate = (
        schedules.CosineDecayRestarts(learning_rate, steps, t_mul=1.0)
        if restarts
        else schedules.CosineDecay(learning_rate, steps)
    )
    model.compile(
        optimizer=keras.optimizers.Adam(rate),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=not gives_probabilities),
        metrics=["accuracy"],
    )


def predict(model: Any, x: Any) -> Any:
    """What `model` gives for `x`, in one pass over batches."""
    return model.predict(x, batch_size=256, verbose=0)


def accuracy(model: Any, data: Dataset) -> float:
    """Share of held-out samples whose largest output is their class."""
    return float((predict(model, data.x_test).argmax(axis=-1) == data.y_test).mean())
