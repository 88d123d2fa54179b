"""`Frozen`: a layer whose parameters are constants."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import keras

if TYPE_CHECKING:
    import tensorflow as tf


@keras.saving.register_keras_serializable(package="fpgaprune")
class Frozen(keras.layers.Wrapper):
    """`layer` with constant parameters: gradients flow to its input but not to its weights.

    The parameters are in no `trainable_variables`, whatever a parent's `trainable` is, and an explicit gradient
    of them is None. `BatchNormalization` inside uses its moving statistics and does not move them. With
    `move_statistics` it works as in training, but its parameters stay constant. Random seeds advance as usual.

    A layer that is also used elsewhere is frozen there too, because it has the same variables.
    """

    def __init__(self, layer: keras.Layer, move_statistics: bool = False, **kwargs: object) -> None:
        """Make a frozen layer.

        Args:
            layer: any Keras layer or model, built or not.
            move_statistics: whether the layer updates its own state (moving statistics, recurrent state).
            **kwargs: as for `keras.layers.Layer`, such as `name`.
        """
        # The layer casts its inputs and parameters itself, by its own policy.
        super().__init__(layer, autocast=False, **kwargs)
        self.move_statistics = move_statistics
        self._freeze()

    @property
    def trainable(self) -> bool:
        """Has no effect: the wrapped layer stays frozen."""
        return bool(self._trainable)

    @trainable.setter
    def trainable(self, value: bool) -> None:
        self._trainable = bool(value)

    def build(self, input_shape: object = None) -> None:
        """Build the wrapped layer, and freeze it."""
        super().build(input_shape)
        self._freeze()

    def call(self, inputs: tf.Tensor, training: bool | None = None) -> tf.Tensor:
        """Return what the wrapped layer computes."""
        frozen = [(variable, keras.ops.stop_gradient(_uncast(variable))) for variable in self.layer.variables]
        with keras.StatelessScope() as scope:
            for variable, constant in frozen:
                scope.add_update((variable, constant))
            outputs = self.layer(inputs, training=training)
        parameters = {id(variable) for variable in self.layer.weights if getattr(_uncast(variable), "trainable", True)}
        statistics = {id(variable) for variable in self.layer.weights} - parameters
        for variable, before in frozen:
            after = scope.get_current_value(variable)
            moves = id(variable) not in parameters and (self.move_statistics or id(variable) not in statistics)
            if moves and after is not before:
                variable.assign(after)
        return outputs

    def compute_output_shape(self, input_shape: object) -> Any:
        """Return the output shape of the wrapped layer."""
        return self.layer.compute_output_shape(input_shape)

    def get_config(self) -> dict[str, Any]:
        """Return the configuration of the wrapped layer, and the options."""
        return {**super().get_config(), "move_statistics": self.move_statistics}

    def _freeze(self) -> None:
        self.layer.trainable = self.move_statistics
        for variable in self.layer.weights:
            variable.trainable = False


def _uncast(variable: keras.Variable) -> Any:
    # Under a mixed policy `variable.value` is cast to the dtype of the wrapper; the layer may use another.
    return variable.value if variable._value is None else variable._value
