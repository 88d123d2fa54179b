"""Gradients of locked elements set to zero, before anything is computed from them."""

from __future__ import annotations

from typing import Any

import tensorflow as tf


def zero_locked(gradient: Any, mask: Any) -> Any:
    """`gradient` where `mask` is True, +0.0 where it is False, whatever stood there (NaN too).

    Args:
        gradient: a tensor of the weight's shape, or `tf.IndexedSlices` over its first axis.
        mask: bool tensor of the weight's shape, True = free.
    """
    if isinstance(gradient, tf.IndexedSlices):
        rows = tf.gather(mask, gradient.indices)
        kept = tf.where(rows, gradient.values, tf.zeros_like(gradient.values))
        return tf.IndexedSlices(kept, gradient.indices, gradient.dense_shape)
    return tf.where(mask, gradient, tf.zeros_like(gradient))
