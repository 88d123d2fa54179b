"""Fine-tunes a model under a lock, and checks the lock at the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np

from fpgaprune.errors import LockError
from fpgaprune.train.locked_optimizer import LockedGradients
from fpgaprune.train.locking import lock, locked_optimizer, relock, unlock
from fpgaprune.train.values import Values, read
from fpgaprune.values import MaskSet, named_weights


def finetune(
    model: keras.Model,
    masks: MaskSet | Mapping[str, Any],
    x: object,
    y: object = None,
    *,
    epochs: int = 1,
    batch_size: int | None = None,
    validation_data: object = None,
    callbacks: Sequence[object] = (),
    seed: int | None = None,
    verbose: int = 0,
    values: Values = "zero",
    locked_gradients: LockedGradients = "zero",
    **fit_options: object,
) -> keras.callbacks.History:
    """Train `model` with every locked element at its exact value, and check this afterwards, bit for bit.

    An unlocked model is unlocked again at the end, with its own optimizer; a locked model stays locked to `masks`.

    Args:
        model: a compiled and built Keras model.
        masks: weight path to bool array, True = free, False = locked.
        x: training data, as `model.fit` takes them.
        y: labels, as `model.fit` takes them.
        epochs: passes over the data.
        batch_size: samples in a step.
        validation_data: as `model.fit` takes them.
        callbacks: Keras callbacks.
        seed: seed of Python, NumPy and Keras (`keras.utils.set_random_seed`), set first; the same seed gives the same
            weights if TensorFlow's operations are deterministic (`tf.config.experimental.enable_op_determinism`).
        verbose: as `model.fit` takes it.
        values: values of locked elements, as in `lock`.
        locked_gradients: as in `lock`.
        **fit_options: further arguments of `model.fit`.

    Returns:
        The Keras `History` of the training.

    Raises:
        LockError: the model cannot be locked, or something moved a locked element.
        MaskError: a mask does not fit the model.

    Examples:
        >>> masks = fp.select(model, 0.5)
        >>> history = fp.finetune(model, masks, x, y, epochs=2)
        >>> fp.certify(model, masks).ok
        True
    """
    masks = MaskSet(masks).fitted(model)
    was_locked = locked_optimizer(model) is not None
    if was_locked:
        relock(model, masks, values)
    else:
        lock(model, masks, values, locked_gradients=locked_gradients)
    try:
        wanted = {path: _bits(model, path, mask) for path, mask in masks.items()}
        if seed is not None:
            keras.utils.set_random_seed(seed)
        history = model.fit(
            x,
            y,
            epochs=epochs,
            batch_size=batch_size,
            validation_data=validation_data,
            callbacks=list(callbacks),
            verbose=verbose,
            **fit_options,
        )
        for path, bits in wanted.items():
            if _bits(model, path, masks[path]) != bits:
                raise LockError(
                    f"locked elements of {path!r} moved during fit, although the optimizer holds them; "
                    "a callback or the model itself must have assigned them after the last step"
                )
    finally:
        if not was_locked:
            unlock(model)
    return history


def _bits(model: keras.Model, path: str, mask: Any) -> bytes:
    return np.ascontiguousarray(read(named_weights(model)[path])[~mask]).tobytes()
