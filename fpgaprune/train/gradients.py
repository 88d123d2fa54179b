"""Sets gradients of locked elements to zero before anything is computed from them."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

_ELEMENTWISE = frozenset(
    {
        keras.optimizers.SGD,
        keras.optimizers.RMSprop,
        keras.optimizers.Adam,
        keras.optimizers.AdamW,
        keras.optimizers.Adamax,
        keras.optimizers.Nadam,
        keras.optimizers.Adagrad,
        keras.optimizers.Adadelta,
        keras.optimizers.Ftrl,
        keras.optimizers.Lion,
        keras.optimizers.ScheduleFreeAdamW,
        keras.optimizers.MultiOptimizer,
    }
)


def is_elementwise(optimizer: keras.optimizers.Optimizer) -> bool:
    """Whether each element's update, apart from clipping, is known to depend on that element alone.

    False for Lamb (trust ratio), Adafactor (factors), Muon (orthogonal update) and any class that is not Keras's own.
    """
    return type(optimizer) in _ELEMENTWISE


def clips_by_norm(optimizer: keras.optimizers.Optimizer) -> bool:
    """Whether a large gradient of one element makes the updates of the others smaller."""
    return bool(optimizer.clipnorm or optimizer.global_clipnorm)


def divides_by_gradients(optimizer: keras.optimizers.Optimizer) -> bool:
    """Whether a row or column of zero gradients makes the whole weight NaN, as in Keras's Adafactor (0 / 0)."""
    return isinstance(optimizer, keras.optimizers.Adafactor)


def zero_locked(gradient: object, mask: object) -> Any:
    """`gradient` where `mask` is True, and +0.0 where it is False, even in place of NaN.

    Args:
        gradient: a tensor of the weight's shape, or `tf.IndexedSlices` over its first axis.
        mask: bool tensor of the weight's shape, True = free.
    """
    if isinstance(gradient, tf.IndexedSlices):
        rows = tf.gather(mask, gradient.indices)
        kept = tf.where(rows, gradient.values, tf.zeros_like(gradient.values))
        return tf.IndexedSlices(kept, gradient.indices, gradient.dense_shape)
    return tf.where(mask, gradient, tf.zeros_like(gradient))
