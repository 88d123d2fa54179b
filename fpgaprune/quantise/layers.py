"""Keras layers whose weights and results are rounded as the hardware rounds them.

Each is a layer of Keras with types besides: its weights stay floats and train, and what it computes is what the
hardware computes with the rounded weights. `types` says which, by the role that a `Design` gives them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import keras
from keras import ops

from fpgaprune.quantise.rounding import on_grid, rounded
from fpgaprune.values import FixedType

if TYPE_CHECKING:
    import tensorflow as tf

Types = Mapping[str, FixedType]


def _read_types(types: Mapping[str, Any]) -> dict[str, FixedType]:
    return {role: kind if isinstance(kind, FixedType) else FixedType.parse(kind) for role, kind in types.items()}


def _written(types: Types) -> dict[str, str]:
    return {role: str(kind) for role, kind in types.items()}


@keras.saving.register_keras_serializable(package="fpgaprune")
class Rounded(keras.layers.Layer):  # type: ignore[misc, unused-ignore]
    """Hands on its input as the type `result` holds it."""

    def __init__(self, types: Mapping[str, object], **options: object) -> None:
        """A layer with one type, by role, as `{"result": "ufixed<8,1,RND,SAT>"}`."""
        super().__init__(**options)
        self.types = _read_types(types)

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """`inputs`, rounded and brought into range."""
        return rounded(inputs, self.types["result"])

    def compute_output_shape(self, input_shape: object) -> Any:
        """Shape of the output: that of the input."""
        return input_shape

    def get_config(self) -> dict[str, Any]:
        """Configuration from which Keras rebuilds the layer."""
        return {**super().get_config(), "types": _written(self.types)}


@keras.saving.register_keras_serializable(package="fpgaprune")
class RoundedAverage(Rounded):
    """Hands on averages as hardware divides: the exact sum by its count, cut towards zero, then rounded."""

    def __init__(self, types: Mapping[str, object], count: int, fraction: int, **options: object) -> None:
        """Averages of `count` values that have `fraction` bits right of the point."""
        super().__init__(types, **options)
        self.count, self.fraction = count, fraction

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """Round averages `inputs`; they are near enough to recover the exact sum."""
        averages = ops.cast(inputs, "float64")
        total = rounded(averages * float(self.count), FixedType(48, 48 - self.fraction, True, "RND"))
        raw = rounded(total * 2.0**self.fraction / float(self.count), FixedType(48, 48, True, "TRN_ZERO"))
        return ops.cast(rounded(raw * 2.0**-self.fraction, self.types["result"]), inputs.dtype)

    def get_config(self) -> dict[str, Any]:
        """Configuration from which Keras rebuilds the layer."""
        return {**super().get_config(), "count": self.count, "fraction": self.fraction}


@keras.saving.register_keras_serializable(package="fpgaprune")
class RoundedLeakyReLU(Rounded):
    """Hands on what a `LeakyReLU` gave as hardware computes it: the exact product with the slope, rounded."""

    def __init__(self, types: Mapping[str, object], slope: float, incoming: FixedType | str, **options: object) -> None:
        """What a layer of this slope, above 0, gave for numbers of type `incoming`."""
        super().__init__(types, **options)
        self.slope = slope
        self.incoming = incoming if isinstance(incoming, FixedType) else FixedType.parse(incoming)

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """Round products `inputs`; they are near enough to recover the factors that the layer read."""
        given = ops.cast(inputs, "float64")
        read = on_grid(ops.where(given > 0, given, given / self.slope), replace(self.incoming, rounding="RND"))
        product = ops.where(given > 0, read, read * self.slope)
        return ops.cast(rounded(product, self.types["result"]), inputs.dtype)

    def get_config(self) -> dict[str, Any]:
        """Configuration from which Keras rebuilds the layer."""
        return {**super().get_config(), "slope": self.slope, "incoming": str(self.incoming)}


class _RoundedProduct:
    """What Dense and the convolutions have in common: a kernel, perhaps a bias, and an exact sum.

    `types` has `weight`, `result` and, with a bias, `bias`. Sums are computed in `sum_dtype`, which must hold each.
    While the network trains they have the dtype of the inputs: what a step moves is more than what double precision
    saves, and convolutions in double precision take longer.
    """

    types: dict[str, FixedType]
    sum_dtype: str

    def __init__(
        self, *args: object, types: Mapping[str, object], sum_dtype: str = "float64", **options: object
    ) -> None:
        """As the layer of Keras, its types by role, and the dtype of its sums."""
        super().__init__(*args, **options)
        self.types, self.sum_dtype = _read_types(types), sum_dtype

    def call(self, inputs: tf.Tensor, training: bool | None = None) -> tf.Tensor:
        """The layer of Keras, its numbers rounded to their types; each step is exact but in training."""
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
        """Configuration from which Keras rebuilds the layer."""
        own = {"types": _written(self.types), "sum_dtype": self.sum_dtype}
        return {**super().get_config(), **own}  # type: ignore[misc]


def _sum_held(total: tf.Tensor, kind: FixedType) -> tf.Tensor:
    """`total` as `kind` holds it, which never wraps around: its hardware grows with what training makes of the sums."""
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
class RoundedBatchNormalization(keras.layers.BatchNormalization):  # type: ignore[misc, unused-ignore]
    """`BatchNormalization` as hardware computes it: `gamma` times the input plus `beta`, exact, then rounded.

    `types` has `scale`, `bias` and `result`. It holds no statistics but a mean of 0 and a variance of 1, and does not
    train.
    """

    def __init__(self, types: Mapping[str, object], **options: object) -> None:
        """The types by role, and what `BatchNormalization` takes; `epsilon` is 0."""
        super().__init__(**{**options, "epsilon": 0.0, "center": True, "scale": True, "trainable": False})
        self.types = _read_types(types)

    def call(self, inputs: tf.Tensor, training: bool | None = None, mask: tf.Tensor | None = None) -> tf.Tensor:
        """Scale and shift the last axis of `inputs`; each step is exact but in training."""
        del mask
        dtype = inputs.dtype if training else "float64"
        scale, shift = (ops.cast(ops.convert_to_tensor(weight), dtype) for weight in (self.gamma, self.beta))
        total = ops.cast(inputs, dtype) * rounded(scale, self.types["scale"]) + rounded(shift, self.types["bias"])
        return ops.cast(_sum_held(total, self.types["result"]), inputs.dtype)

    def get_config(self) -> dict[str, Any]:
        """Configuration from which Keras rebuilds the layer."""
        return {**super().get_config(), "types": _written(self.types)}


class _RoundedMerge:
    """A sum or a product of two inputs, exact, then rounded to `result`; float32 does not hold each."""

    def __init__(self, types: Mapping[str, object], **options: object) -> None:
        """One type by role, as `{"result": "fixed<16,5>"}`."""
        super().__init__(**options)
        self.types = _read_types(types)

    def call(self, inputs: list[tf.Tensor], training: bool | None = None) -> tf.Tensor:
        """Merge `inputs`; each step is exact but in training."""
        given = inputs[0].dtype
        exact = inputs if training else [ops.cast(each, "float64") for each in inputs]
        merged = super().call(exact)  # type: ignore[misc]
        return ops.cast(rounded(merged, self.types["result"]), given)

    def get_config(self) -> dict[str, Any]:
        """Configuration from which Keras rebuilds the layer."""
        return {**super().get_config(), "types": _written(self.types)}  # type: ignore[misc]


@keras.saving.register_keras_serializable(package="fpgaprune")
class RoundedAdd(_RoundedMerge, keras.layers.Add):  # type: ignore[misc, unused-ignore]
    """`Add` with the type of the hardware's result."""


@keras.saving.register_keras_serializable(package="fpgaprune")
class RoundedSubtract(_RoundedMerge, keras.layers.Subtract):  # type: ignore[misc, unused-ignore]
    """`Subtract` with the type of the hardware's result."""


@keras.saving.register_keras_serializable(package="fpgaprune")
class RoundedMultiply(_RoundedMerge, keras.layers.Multiply):  # type: ignore[misc, unused-ignore]
    """`Multiply` with the type of the hardware's result."""


PLAIN: Mapping[type, Any] = {
    RoundedDense: keras.layers.Dense,
    RoundedConv1D: keras.layers.Conv1D,
    RoundedConv2D: keras.layers.Conv2D,
    RoundedDepthwiseConv1D: keras.layers.DepthwiseConv1D,
    RoundedDepthwiseConv2D: keras.layers.DepthwiseConv2D,
    RoundedBatchNormalization: keras.layers.BatchNormalization,
    RoundedAdd: keras.layers.Add,
    RoundedSubtract: keras.layers.Subtract,
    RoundedMultiply: keras.layers.Multiply,
}
ROUNDED: Mapping[type, Any] = {plain: own for own, plain in PLAIN.items()}
