"""`RoundedChannels`: values rounded to a type for each channel, as channel 3 to `fixed<5,2,RND>`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import keras
import numpy as np
from keras import ops

from fpgaprune.errors import HlsError
from fpgaprune.network import AxisChannels, Channels, LayerRule, Role, Site
from fpgaprune.quantise.rounding import rounded_between
from fpgaprune.values import OVERFLOW_MODES, ROUNDING_MODES, FixedType

if TYPE_CHECKING:
    import tensorflow as tf

_VARIABLES = ("width", "integer", "signed")


def _through(site: Site) -> Channels:
    """Round a constant as its channel is rounded; a channel without bits is the constant 0."""
    layer, channels = site.layer, site.inputs[0]
    if layer.each_value and len(channels.varying) > 1:
        site.hold(channels.ids, "layout")
        return channels.unknown()
    axis = channels.varying[0] if layer.each_value and channels.varying else len(channels.shape) - 1
    line = site.line(axis)
    shape = [int(size or 1) for size in site.shape]
    along = np.broadcast_to(channels.ids, shape).reshape(-1) if layer.each_value else line.ids
    for variable in (layer.width, layer.integer, layer.signed):
        site.weight(variable, along)
    width = np.asarray(layer.width).reshape(shape if layer.each_value else [-1])
    silent = (np.moveaxis(width, axis if layer.each_value else 0, -1).reshape(-1, line.ids.size) == 0).all(axis=0)
    if layer.each_value:
        # Types differ from place to place, so that only zero is surely one constant.
        return AxisChannels(line.ids, silent | (line.known & (line.value == 0)), np.zeros(line.ids.shape)).over(
            site.shape, axis
        )
    value = np.array(
        [
            float(kind.to_float(kind.to_raw(at))) if kind else 0.0
            for kind, at in zip(layer.types(), line.value, strict=True)
        ]
    )
    return AxisChannels(line.ids, silent | line.known, value).over(site.shape, axis)


@keras.saving.register_keras_serializable(package="fpgaprune")
class RoundedChannels(keras.layers.Layer):  # type: ignore[misc, unused-ignore]
    """Hands on its input, each channel as a type of its own holds it.

    The types are weights that never train, `width`, `integer` and `signed`, (C,): as in `FixedType`, and 0 bits of
    width for a channel that is always zero. With `each_value` every value of a sample has a type of its own, in the
    order of its values.
    """

    channel_rule = LayerRule(_through, Role.POINTWISE)
    # Whether a project is made of it that takes one pixel after another.
    streamed = False

    def __init__(
        self, rounding: str = "TRN", overflow: str = "WRAP", each_value: bool = False, **options: object
    ) -> None:
        """Make a layer whose types share their modes of rounding and overflow, which are those of `FixedType`.

        Raises:
            HlsError: there is no such mode.
        """
        if rounding not in ROUNDING_MODES or overflow not in OVERFLOW_MODES:
            raise HlsError(
                f"modes are {rounding!r} and {overflow!r}; wanted one of {', '.join(ROUNDING_MODES)}, and one of "
                f"{', '.join(OVERFLOW_MODES)}"
            )
        super().__init__(**options)
        self.rounding, self.overflow, self.each_value = rounding, overflow, each_value

    def build(self, input_shape: Any) -> None:
        """Make the types; until they are set every channel is zero."""
        shape = (math.prod(input_shape[1:]) if self.each_value else input_shape[-1],)
        self.width, self.integer, self.signed = (
            self.add_weight(name=name, shape=shape, initializer="zeros", trainable=False) for name in _VARIABLES
        )

    def call(self, inputs: tf.Tensor) -> tf.Tensor:
        """Round `inputs` and bring them into range."""
        shape = inputs.shape[1:] if self.each_value else inputs.shape[-1:]
        width, integer, signed = (
            ops.reshape(ops.cast(part, inputs.dtype), shape) for part in (self.width, self.integer, self.signed)
        )
        low = -signed * 2.0 ** (width - 1)
        high = low + 2.0**width - 1
        if self.overflow == "SAT_SYM":
            low = low + signed
        found = rounded_between(inputs, 2.0 ** (integer - width), low, high, self.rounding, self.overflow)
        return ops.where(width > 0, found, ops.zeros_like(found))

    def compute_output_shape(self, input_shape: object) -> Any:
        """Return the shape of the output: that of the input."""
        return input_shape

    def types(self) -> tuple[FixedType | None, ...]:
        """Return the type of each channel, or of each value of a sample in order; None where it is always zero."""
        parts = (
            np.asarray(part).astype(np.int64).reshape(-1).tolist() for part in (self.width, self.integer, self.signed)
        )
        return tuple(
            FixedType(width, integer, bool(signed), self.rounding, self.overflow) if width else None
            for width, integer, signed in zip(*parts, strict=True)
        )

    def widest(self) -> FixedType:
        """Return the narrowest type that holds every number of every channel.

        Raises:
            DesignError: it has more than 64 bits.
        """
        known = [kind for kind in self.types() if kind is not None]
        if not known:
            return FixedType(1, 1, signed=False)
        signed = any(kind.signed for kind in known)
        integer = max(kind.integer + int(signed and not kind.signed) for kind in known)
        return FixedType(integer + max(kind.fraction for kind in known), integer, signed)

    def get_config(self) -> dict[str, Any]:
        """Return the configuration from which Keras rebuilds the layer; its types are weights."""
        own = {"rounding": self.rounding, "overflow": self.overflow, "each_value": self.each_value}
        return {**super().get_config(), **own}


def rounds_channels(model: keras.Model) -> bool:
    """Return whether `model` has a layer that rounds to a type for each channel, so that all its data have types."""
    return any(isinstance(layer, RoundedChannels) for layer in model.layers)


def exact_type(values: object) -> FixedType:
    """Return the narrowest type that holds each of `values` exactly, signed if one is negative.

    Raises:
        DesignError: it has more than 64 bits.
    """
    array = np.unique(np.abs(np.asarray(values, dtype=np.float64)))
    array = array[array > 0]
    signed = bool((np.asarray(values) < 0).any())
    if not array.size:
        return FixedType(2, 2, signed)
    # A float is an odd whole number times a power of two.
    mantissas, exponents = np.frexp(array)
    whole = np.ldexp(mantissas, 53).astype(np.int64)
    zeros = np.array([(int(number) & -int(number)).bit_length() - 1 for number in whole])
    fraction = int((53 - zeros - exponents).max())
    integer = math.floor(math.log2(array[-1])) + 1 + int(signed)
    return FixedType(max(integer + fraction, 2), integer, signed)
