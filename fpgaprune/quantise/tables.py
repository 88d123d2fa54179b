"""Functions that hardware reads from tables: the entry that the emulator reads, with the gradient of the function."""

from __future__ import annotations

from typing import TYPE_CHECKING

import keras
from keras import ops

from fpgaprune.design import ScalarFunction
from fpgaprune.emulate import entries, table_of
from fpgaprune.values import FixedType

if TYPE_CHECKING:
    import tensorflow as tf


def centred(x: tf.Tensor, exact: tf.Tensor, function: ScalarFunction, size: int, kind: FixedType) -> tf.Tensor:
    """The entry for each of `x` in a table around zero of `size` entries of type `kind`; outside, its ends.

    Args:
        x: what is looked up.
        exact: `function` of `x`, through which gradients pass.
        function: the function.
        size: the number of entries.
        kind: the type of the entries.
    """
    table = ops.cast(entries(function, size, kind).values(), x.dtype)
    place = ops.trunc(x * (size / table_of(function).span)) + size // 2
    return _instead(exact, ops.take(table, ops.cast(ops.clip(place, 0, size - 1), "int32")))


def _instead(exact: tf.Tensor, found: tf.Tensor) -> tf.Tensor:
    """`found`, with the gradient of `exact`."""

    @keras.ops.custom_gradient  # type: ignore[untyped-decorator, unused-ignore]
    def held(exact: tf.Tensor, found: tf.Tensor) -> tf.Tensor:
        del exact
        return found, lambda *upstream: (upstream[0], None)

    return held(exact, found)
