"""A softmax that gives in Keras what its hardware gives: exponentials, and the inverse of their sum, from tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import keras
from keras import ops

from fpgaprune.design import LayerSpec, Softmax
from fpgaprune.emulate import Exact, Step, difference_type, exponentials_of, inverses_of, sum_type_of
from fpgaprune.quantise.layers import Typed, read_types, written
from fpgaprune.quantise.rounding import rounded
from fpgaprune.quantise.tables import instead
from fpgaprune.values import FixedType

if TYPE_CHECKING:
    import tensorflow as tf


@keras.saving.register_keras_serializable(package="fpgaprune")
class RoundedSoftmax(Typed, keras.layers.Softmax):  # type: ignore[misc, unused-ignore]
    """`Softmax` over the last axis with the tables of the hardware; gradients pass as through an exact one."""

    def __init__(self, *args: object, tables: Mapping[str, Any], sizes: Mapping[str, Any], **options: object) -> None:
        """Make the layer of Keras with its type `result`, the types of its tables and input, and the tables' sizes."""
        super().__init__(*args, **options)  # type: ignore[arg-type]
        self.tables, self.sizes = read_types(tables), dict(sizes)

    def call(self, inputs: tf.Tensor, mask: tf.Tensor | None = None) -> tf.Tensor:
        """Return the probabilities, as `fpgaprune.emulate` computes them."""
        del mask
        read = ops.cast(inputs, "float64")
        source = LayerSpec("source", (), (1,), {"result": self.tables["input"]})
        layer = LayerSpec(self.name, ("source",), (1,), {**self.tables, **self.types}, operation=Softmax(**self.sizes))
        step = Step(layer, (source,))
        accum, norm, sum_type = self.tables["accum"], difference_type(step), sum_type_of(step)
        below = rounded(ops.max(read, axis=-1, keepdims=True) - read, norm)
        powers = rounded(_entry(exponentials_of(step), below, norm), accum)
        total = rounded(rounded(ops.sum(powers, axis=-1, keepdims=True), accum), sum_type)
        found = rounded(powers * _entry(inverses_of(step), total, sum_type), self.types["result"])
        return ops.cast(instead(ops.softmax(read), found), inputs.dtype)

    def get_config(self) -> dict[str, Any]:
        """Return the configuration from which Keras rebuilds the layer."""
        return {**super().get_config(), "tables": written(self.tables), "sizes": self.sizes}


def _entry(table: Exact, x: tf.Tensor, kind: FixedType) -> tf.Tensor:
    """Return what `table` holds where the highest bits of `x`, numbers of type `kind`, say."""
    size = table.raw.size
    place = ops.floor(x * (2.0**kind.fraction * size / 2.0**kind.width))
    return ops.take(ops.cast(table.values(), x.dtype), ops.cast(ops.mod(place, size), "int32"))
