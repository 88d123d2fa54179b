"""Keras layers whose weights and results are rounded as the hardware rounds them.

Each is a layer of Keras with types besides: its weights stay floats and train, and what it computes is what the
hardware computes with the rounded weights. `types` says which, by the role that a `Design` gives them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import keras
from keras import ops

from fpgaprune.quantise.rounding import on_grid, rounded
from fpgaprune.values import FixedType

if TYPE_CHECKING:
    import tensorflow as tf

Types = Mapping[str, FixedType]


def read_types(types: Mapping[str, Any]) -> dict[str, FixedType]:
    """Return the types of `types`, by role; they may be texts."""
    return {role: kind if isinstance(kind, FixedType) else FixedType.parse(kind) for role, kind in types.items()}


def written(types: Types) -> dict[str, str]:
    """Write `types` as `read_types` reads them."""
    return {role: str(kind) for role, kind in types.items()}


@keras.saving.register_keras_serializable(package="fpgaprune")
class Rounded(keras.layers.Layer):  # type: ignore[misc, unused-ignore]
    """Hands on its input as the type `result` holds it."""

    def __init__(self, types: Mapping[str, object], **options: object) -> None:
        """Make a layer with one type, by role, as `{"result": "ufixed<8,1,RND,SAT>"}`."""
        super().__init__(**options)
        self.types = read_types(types)

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """Round `inputs` and bring them into range."""
        return rounded(inputs, self.types["result"])

    def compute_output_shape(self, input_shape: object) -> Any:
        """Return the shape of the output: that of the input."""
        return input_shape

    def get_config(self) -> dict[str, Any]:
        """Return the configuration from which Keras rebuilds the layer."""
        return {**super().get_config(), "types": written(self.types)}


class Typed:
    """A layer of Keras that has types besides, by role."""

    types: dict[str, FixedType]

    def __init__(self, *args: object, types: Mapping[str, object], **options: object) -> None:
        """Make the layer of Keras with its types by role, as `{"result": "fixed<16,5>"}`."""
        super().__init__(*args, **options)
        self.types = read_types(types)

    def get_config(self) -> dict[str, Any]:
        """Return the configuration from which Keras rebuilds the layer."""
        return {**super().get_config(), "types": written(self.types)}  # type: ignore[misc]


class _RoundedPooling(Typed):
    """Averages as hardware divides: the exact sum by the number of values, cut towards zero, then rounded to `result`.

    What is read has `fraction` bits right of the point.
    """

    def __init__(self, *args: object, fraction: int, **options: object) -> None:
        """Make the layer of Keras with its types by role, and the fraction of what it reads."""
        super().__init__(*args, **options)  # type: ignore[arg-type]
        self.fraction = fraction

    def call(self, inputs: tf.Tensor, training: bool | None = None) -> tf.Tensor:
        """Average `inputs`; double precision is near enough to recover what is divided."""
        averages = ops.cast(super().call(inputs if training else ops.cast(inputs, "float64")), "float64")  # type: ignore[misc]
        # At an edge fewer values are averaged. What is cut off is the same, as the fraction of a sum by fewer is less.
        count = float(math.prod(getattr(self, "pool_size", inputs.shape[1:-1])))
        total = on_grid(averages * count, FixedType(48, 48 - self.fraction, True, "RND"))
        raw = on_grid(total * 2.0**self.fraction / count, FixedType(48, 48, True, "TRN_ZERO"))
        return ops.cast(rounded(raw * 2.0**-self.fraction, self.types["result"]), inputs.dtype)

    def get_config(self) -> dict[str, Any]:
        """Return the configuration from which Keras rebuilds the layer."""
        return {**super().get_config(), "fraction": self.fraction}


@keras.saving.register_keras_serializable(package="fpgaprune")
class RoundedAveragePooling1D(_RoundedPooling, keras.layers.AveragePooling1D):  # type: ignore[misc, unused-ignore]
    """`AveragePooling1D` with the type of the hardware's result."""


@keras.saving.register_keras_serializable(package="fpgaprune")
class RoundedAveragePooling2D(_RoundedPooling, keras.layers.AveragePooling2D):  # type: ignore[misc, unused-ignore]
    """`AveragePooling2D` with the type of the hardware's result."""


@keras.saving.register_keras_serializable(package="fpgaprune")
class RoundedGlobalAveragePooling1D(_RoundedPooling, keras.layers.GlobalAveragePooling1D):  # type: ignore[misc, unused-ignore]
    """`GlobalAveragePooling1D` with the type of the hardware's result."""

    def call(self, inputs: tf.Tensor, training: bool | None = None, mask: tf.Tensor | None = None) -> tf.Tensor:
        """Average as the layer of Keras, which is told a mask of steps; no design has one."""
        del mask
        return super().call(inputs, training)


@keras.saving.register_keras_serializable(package="fpgaprune")
class RoundedGlobalAveragePooling2D(_RoundedPooling, keras.layers.GlobalAveragePooling2D):  # type: ignore[misc, unused-ignore]
    """`GlobalAveragePooling2D` with the type of the hardware's result."""


class _RoundedSlopes(Typed):
    """What is not positive times a slope of type `param`, exact, then rounded to `result`."""

    def call(self, inputs: tf.Tensor, training: bool | None = None) -> tf.Tensor:
        """Return the layer of Keras; each step is exact but in training."""
        dtype = inputs.dtype if training else "float64"
        read = ops.cast(inputs, dtype)
        found = ops.where(read > 0, read, self._slopes(dtype) * read)  # type: ignore[attr-defined]
        return ops.cast(rounded(found, self.types["result"]), inputs.dtype)


@keras.saving.register_keras_serializable(package="fpgaprune")
class RoundedLeakyReLU(_RoundedSlopes, keras.layers.LeakyReLU):  # type: ignore[misc, unused-ignore]
    """`LeakyReLU` with the types of the hardware; its slope is a number of type `param`."""

    def _slopes(self, dtype: str) -> tf.Tensor:
        return ops.cast(self.negative_slope, dtype)


@keras.saving.register_keras_serializable(package="fpgaprune")
class RoundedPReLU(_RoundedSlopes, keras.layers.PReLU):  # type: ignore[misc, unused-ignore]
    """`PReLU` with the types of the hardware; its slopes train."""

    def _slopes(self, dtype: str) -> tf.Tensor:
        alpha = ops.cast(ops.convert_to_tensor(self.alpha), dtype)
        return rounded(alpha, self.types["param"], trains=True)


class _RoundedProduct(Typed):
    """What Dense and the convolutions have in common: a kernel, perhaps a bias, and an exact sum.

    `types` has `weight`, `result` and, with a bias, `bias`. Sums are computed in `sum_dtype`, which must hold each.
    While the network trains they have the dtype of the inputs: what a step moves is more than what double precision
    saves, and convolutions in double precision take longer.
    """

    def __init__(self, *args: object, sum_dtype: str = "float64", **options: object) -> None:
        """Make the layer of Keras with its types by role, and the dtype of its sums."""
        super().__init__(*args, **options)  # type: ignore[arg-type]
        self.sum_dtype = sum_dtype

    def call(self, inputs: tf.Tensor, training: bool | None = None) -> tf.Tensor:
        """Return the layer of Keras, its numbers rounded to their types; each step is exact but in training."""
        dtype = inputs.dtype if training else self.sum_dtype
        # A variable is read first: no function with a gradient of its own may read one where layers are called eagerly.
        kernel = ops.cast(self.kernel, dtype)  # type: ignore[attr-defined]
        read = ops.cast(inputs, dtype)
        total = self._product(read, rounded(kernel, self.types["weight"], trains=True))  # type: ignore[attr-defined]
        if self.use_bias:  # type: ignore[attr-defined]
            bias = ops.cast(self.bias, dtype)  # type: ignore[attr-defined]
            total = total + rounded(bias, self.types["bias"], trains=True)
        return ops.cast(_sum_held(total, self.types["result"]), inputs.dtype)

    def get_config(self) -> dict[str, Any]:
        """Return the configuration from which Keras rebuilds the layer."""
        return {**super().get_config(), "sum_dtype": self.sum_dtype}


def _sum_held(total: tf.Tensor, kind: FixedType) -> tf.Tensor:
    """Hold `total` in `kind`, where it never wraps around: the hardware grows with what training makes of the sums."""
    return on_grid(total, kind) if kind.overflow == "WRAP" else rounded(total, kind)


@keras.saving.register_keras_serializable(package="fpgaprune")
class RoundedDense(_RoundedProduct, keras.layers.Dense):  # type: ignore[misc, unused-ignore]
    """`Dense` with the types of the hardware; it is linear."""

    def _product(self, inputs: tf.Tensor, kernel: tf.Tensor) -> tf.Tensor:
        return ops.matmul(inputs, kernel)


class _RoundedConvolution(_RoundedProduct):
    """A convolution of Keras, however many axes it has."""

    def _product(self, inputs: tf.Tensor, kernel: tf.Tensor) -> tf.Tensor:
        return ops.conv(
            inputs,
            kernel,
            strides=list(self.strides),  # type: ignore[attr-defined]
            padding=self.padding,  # type: ignore[attr-defined]
            dilation_rate=self.dilation_rate,  # type: ignore[attr-defined]
            data_format=self.data_format,  # type: ignore[attr-defined]
        )


@keras.saving.register_keras_serializable(package="fpgaprune")
class RoundedConv1D(_RoundedConvolution, keras.layers.Conv1D):  # type: ignore[misc, unused-ignore]
    """`Conv1D` with the types of the hardware; it is linear."""

    def _product(self, inputs: tf.Tensor, kernel: tf.Tensor) -> tf.Tensor:
        if self.padding != "causal":
            return super()._product(inputs, kernel)
        before = self.dilation_rate[0] * (self.kernel_size[0] - 1)
        padded = ops.pad(inputs, [[0, 0], [before, 0], [0, 0]])
        return ops.conv(padded, kernel, list(self.strides), "valid", self.data_format, self.dilation_rate)


@keras.saving.register_keras_serializable(package="fpgaprune")
class RoundedConv2D(_RoundedConvolution, keras.layers.Conv2D):  # type: ignore[misc, unused-ignore]
    """`Conv2D` with the types of the hardware; it is linear."""


class _RoundedDepthwise(_RoundedConvolution):
    """A depthwise convolution of Keras."""

    def _product(self, inputs: tf.Tensor, kernel: tf.Tensor) -> tf.Tensor:
        strides = self.strides[0] if len(set(self.strides)) == 1 else self.strides  # type: ignore[attr-defined]
        return ops.depthwise_conv(
            inputs,
            kernel,
            strides=strides,
            padding=self.padding,  # type: ignore[attr-defined]
            dilation_rate=self.dilation_rate,  # type: ignore[attr-defined]
            data_format=self.data_format,  # type: ignore[attr-defined]
        )


@keras.saving.register_keras_serializable(package="fpgaprune")
class RoundedDepthwiseConv1D(_RoundedDepthwise, keras.layers.DepthwiseConv1D):  # type: ignore[misc, unused-ignore]
    """`DepthwiseConv1D` with the types of the hardware; it is linear."""


@keras.saving.register_keras_serializable(package="fpgaprune")
class RoundedDepthwiseConv2D(_RoundedDepthwise, keras.layers.DepthwiseConv2D):  # type: ignore[misc, unused-ignore]
    """`DepthwiseConv2D` with the types of the hardware; it is linear."""


@keras.saving.register_keras_serializable(package="fpgaprune")
class RoundedBatchNormalization(Typed, keras.layers.BatchNormalization):  # type: ignore[misc, unused-ignore]
    """`BatchNormalization` as hardware computes it: `gamma` times the input plus `beta`, exact, then rounded.

    `types` has `scale`, `bias` and `result`. It holds no statistics but a mean of 0 and a variance of 1, and does not
    train.
    """

    def __init__(self, **options: Any) -> None:
        """Make the layer with its types by role, and what `BatchNormalization` takes; `epsilon` is 0."""
        super().__init__(**{**options, "epsilon": 0.0, "center": True, "scale": True, "trainable": False})

    def call(self, inputs: tf.Tensor, training: bool | None = None, mask: tf.Tensor | None = None) -> tf.Tensor:
        """Scale and shift the last axis of `inputs`; each step is exact but in training."""
        del mask
        dtype = inputs.dtype if training else "float64"
        scale, shift = (ops.cast(ops.convert_to_tensor(weight), dtype) for weight in (self.gamma, self.beta))
        total = ops.cast(inputs, dtype) * rounded(scale, self.types["scale"]) + rounded(shift, self.types["bias"])
        return ops.cast(_sum_held(total, self.types["result"]), inputs.dtype)


class _RoundedMerge(Typed):
    """A sum, a product or an average of two inputs, exact, then rounded to `result`; float32 does not hold each."""

    def call(self, inputs: list[tf.Tensor], training: bool | None = None) -> tf.Tensor:
        """Merge `inputs`; each step is exact but in training."""
        given = inputs[0].dtype
        exact = inputs if training else [ops.cast(each, "float64") for each in inputs]
        merged = super().call(exact)  # type: ignore[misc]
        return ops.cast(rounded(merged, self.types["result"]), given)


@keras.saving.register_keras_serializable(package="fpgaprune")
class RoundedAdd(_RoundedMerge, keras.layers.Add):  # type: ignore[misc, unused-ignore]
    """`Add` with the type of the hardware's result."""


@keras.saving.register_keras_serializable(package="fpgaprune")
class RoundedSubtract(_RoundedMerge, keras.layers.Subtract):  # type: ignore[misc, unused-ignore]
    """`Subtract` with the type of the hardware's result."""


@keras.saving.register_keras_serializable(package="fpgaprune")
class RoundedMultiply(_RoundedMerge, keras.layers.Multiply):  # type: ignore[misc, unused-ignore]
    """`Multiply` with the type of the hardware's result."""


@keras.saving.register_keras_serializable(package="fpgaprune")
class RoundedAverage(_RoundedMerge, keras.layers.Average):  # type: ignore[misc, unused-ignore]
    """`Average` with the type of the hardware's result."""
