"""Functions that hardware reads from tables: the entry that the emulator reads, with the gradient of the function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import keras
from keras import ops

from fpgaprune.design import CENTRED, FUNCTIONS, RECTIFIED, ScalarFunction
from fpgaprune.emulate import entries, table_of
from fpgaprune.network import activation_of
from fpgaprune.quantise.layers import Typed
from fpgaprune.quantise.rounding import rounded
from fpgaprune.values import FixedType

if TYPE_CHECKING:
    import tensorflow as tf


def looked_up(
    x: tf.Tensor, exact: tf.Tensor, function: ScalarFunction, size: int, kind: FixedType, factor: float = 1.0
) -> tf.Tensor:
    """Return what a table of `size` entries of type `kind` makes of `x`.

    Args:
        x: what is looked up.
        exact: `function` of `x`, through which gradients pass.
        function: the function.
        size: the number of entries.
        kind: the type of the entries.
        factor: of a table for what is negative: by what `elu` multiplies its entries, and `selu` the other numbers.
    """
    table = table_of(function)
    given = ops.cast(entries(function, size, kind).values(), x.dtype)

    def entry(place: tf.Tensor) -> tf.Tensor:
        return ops.take(given, ops.cast(ops.clip(place, 0, size - 1), "int32"))

    each = size / table.span
    if table.form == CENTRED:
        found = entry(ops.trunc(x * each) + size // 2)
    elif table.form == RECTIFIED:
        found = ops.maximum(x, 0) + entry(ops.trunc(ops.abs(x) * each))
    else:
        below, above = (factor, 1.0) if function.name == "elu" else (1.0, factor)
        found = ops.where(x < 0, below * entry(ops.trunc(ops.maximum(-x, 0) * each)), above * x)
    return instead(exact, found)


def instead(exact: tf.Tensor, found: tf.Tensor) -> tf.Tensor:
    """Return `found`, with the gradient of `exact`."""

    @keras.ops.custom_gradient  # type: ignore[untyped-decorator, unused-ignore]
    def held(exact: tf.Tensor, found: tf.Tensor) -> tf.Tensor:
        del exact
        return found, lambda *upstream: (upstream[0], None)

    return held(exact, found)


class LookUp(Typed):
    """A function read from a table of `table_size` entries of type `table`, then rounded to `result`."""

    def __init__(self, *args: object, table_size: int, factor: float = 1.0, **options: object) -> None:
        """Make the layer of Keras with its types by role, and what `looked_up` takes."""
        super().__init__(*args, **options)  # type: ignore[arg-type]
        self.table_size, self.factor = table_size, factor

    def call(self, inputs: tf.Tensor, training: bool | None = None) -> tf.Tensor:
        """Look `inputs` up; each step is exact but in training."""
        read = ops.cast(inputs, inputs.dtype if training else "float64")
        exact, function = super().call(read), self._function()  # type: ignore[misc, attr-defined]
        found = looked_up(read, exact, function, self.table_size, self.types["table"], self.factor)
        return ops.cast(rounded(found, self.types["result"]), inputs.dtype)

    def get_config(self) -> dict[str, Any]:
        """Return the configuration from which Keras rebuilds the layer."""
        return {**super().get_config(), "table_size": self.table_size, "factor": self.factor}


@keras.saving.register_keras_serializable(package="fpgaprune")
class RoundedActivation(LookUp, keras.layers.Activation):  # type: ignore[misc, unused-ignore]
    """`Activation` of a function that hardware reads from a table."""

    def _function(self) -> ScalarFunction:
        known = activation_of(self.activation)
        return FUNCTIONS[known.name if known is not None else ""]


@keras.saving.register_keras_serializable(package="fpgaprune")
class RoundedELU(LookUp, keras.layers.ELU):  # type: ignore[misc, unused-ignore]
    """`ELU` with the table of the hardware, whose entries it multiplies by its factor."""

    def _function(self) -> ScalarFunction:
        return FUNCTIONS["elu"]

    def get_config(self) -> dict[str, Any]:
        """Return the configuration from which Keras rebuilds the layer, with the `alpha` that `ELU` leaves out."""
        return {**super().get_config(), "alpha": self.alpha}
