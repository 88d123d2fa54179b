"""Recurrent layers that compute in Keras what their hardware does: rounded weights, gates from tables, a typed state.

Products and their sum are exact; what becomes of them has the types of `fpgaprune.emulate.recurrent`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import keras
from keras import ops

from fpgaprune.design import FUNCTIONS
from fpgaprune.network import activation_of
from fpgaprune.quantise.layers import Typed
from fpgaprune.quantise.rounding import on_grid, rounded
from fpgaprune.quantise.tables import looked_up
from fpgaprune.values import FixedType

if TYPE_CHECKING:
    import tensorflow as tf


class _RoundedRecurrent(Typed):
    """A recurrent layer that begins with zeros and reads its steps in order.

    `types` has `weight`, `recurrent_weight`, with biases `bias` and `recurrent_bias`, `table` and `result`, the type of
    the state. Steps have the dtype of the inputs in training, and none is dropped out; else double precision.
    """

    def __init__(self, *args: object, accum: FixedType | str, table_size: int, **options: object) -> None:
        """Make the layer of Keras with types by role, the type of sums and gates, and the size of tables."""
        super().__init__(*args, **options)  # type: ignore[arg-type]
        self.accum = accum if isinstance(accum, FixedType) else FixedType.parse(accum)
        self.table_size = table_size

    def inner_loop(self, sequences: tf.Tensor, initial_state: Any, mask: object, training: bool = False) -> Any:
        """Return what Keras asks for: the last output, the output after every step, and the last states."""
        del mask
        dtype = sequences.dtype if training else "float64"
        kernel, recurrent, biases = self._weights(dtype)
        products = ops.matmul(ops.cast(sequences, dtype), kernel) + biases[0]

        def step(states: Sequence[tf.Tensor], product: tf.Tensor) -> Any:
            after = self._step(product, ops.matmul(states[0], recurrent) + biases[1], states)  # type: ignore[attr-defined]
            return after, after

        begin = [ops.cast(state, dtype) for state in keras.tree.flatten(initial_state)]
        last, seen = ops.scan(step, begin, ops.moveaxis(products, 1, 0), length=sequences.shape[1])
        return last[0], ops.moveaxis(seen[0], 0, 1), last

    def _weights(self, dtype: str) -> tuple[tf.Tensor, tf.Tensor, list[tf.Tensor]]:
        """Return kernel, recurrent kernel and their biases, rounded."""
        cell = self.cell  # type: ignore[attr-defined]
        # A variable is read first: no function with a gradient of its own may read one where layers are called eagerly.
        kernel, recurrent = (
            ops.cast(ops.convert_to_tensor(each), dtype) for each in (cell.kernel, cell.recurrent_kernel)
        )
        biases = [ops.zeros(kernel.shape[-1:], dtype)] * 2
        if cell.use_bias:
            given = ops.reshape(ops.cast(ops.convert_to_tensor(cell.bias), dtype), (-1, kernel.shape[-1]))
            for place, role in enumerate(("bias", "recurrent_bias")[: given.shape[0]]):
                biases[place] = rounded(given[place], self.types[role], trains=True)
        kernels = [(kernel, "weight"), (recurrent, "recurrent_weight")]
        kernel, recurrent = (rounded(each, self.types[role], trains=True) for each, role in kernels)
        return kernel, recurrent, biases

    def _gate(self, x: tf.Tensor) -> tf.Tensor:
        return self._applied(self.recurrent_activation, x)  # type: ignore[attr-defined]

    def _function(self, x: tf.Tensor) -> tf.Tensor:
        return self._applied(self.activation, x)  # type: ignore[attr-defined]

    def _applied(self, function: Any, x: tf.Tensor) -> tf.Tensor:
        known = activation_of(function)
        table = FUNCTIONS[known.name] if known is not None else None
        if table is None or table.table is None:
            return on_grid(function(x), self.accum)
        return looked_up(x, function(x), table, self.table_size, self.types["table"])

    def get_config(self) -> dict[str, Any]:
        """Return the configuration from which Keras rebuilds the layer."""
        return {**super().get_config(), "accum": str(self.accum), "table_size": self.table_size}


@keras.saving.register_keras_serializable(package="fpgaprune")
class RoundedGRU(_RoundedRecurrent, keras.layers.GRU):  # type: ignore[misc, unused-ignore]
    """`GRU` with the types of the hardware; its reset gate acts after the product."""

    def _step(self, inputs: tf.Tensor, recurrent: tf.Tensor, states: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        read, kept = ops.split(inputs, 3, axis=-1), ops.split(recurrent, 3, axis=-1)
        update, reset = (self._gate(read[place] + kept[place]) for place in (0, 1))
        proposal = self._function(read[2] + on_grid(reset * kept[2], self.accum))
        return [rounded(proposal * (1 - update) + states[0] * update, self.types["result"])]


@keras.saving.register_keras_serializable(package="fpgaprune")
class RoundedLSTM(_RoundedRecurrent, keras.layers.LSTM):  # type: ignore[misc, unused-ignore]
    """`LSTM` with the types of the hardware; its cell state has the type of its output."""

    def _step(self, inputs: tf.Tensor, recurrent: tf.Tensor, states: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        take, forget, proposed, out = ops.split(inputs + recurrent, 4, axis=-1)
        cell = self._function(proposed) * self._gate(take) + states[1] * self._gate(forget)
        cell = rounded(cell, self.types["result"])
        return [rounded(self._gate(out) * self._function(cell), self.types["result"]), cell]


@keras.saving.register_keras_serializable(package="fpgaprune")
class RoundedSimpleRNN(_RoundedRecurrent, keras.layers.SimpleRNN):  # type: ignore[misc, unused-ignore]
    """`SimpleRNN` with the types of the hardware; its state is its activation."""

    def _step(self, inputs: tf.Tensor, recurrent: tf.Tensor, states: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        del states
        return [rounded(self._function(inputs + recurrent), self.types["result"])]
