"""Replaces operations without a layer in a model, such as `x * 2.0 + 1.0`, by layers.

A design is made of layers. A scale or a shift by constants, a `Rescaling` and a
`Normalization` become a `BatchNormalization` with these constants; several in a row become one. If the constants differ
within a channel, each element is a channel of its own, between two `Reshape`. Activations, merges, averages and
reshapings become the layers of these names. Any other operation is refused by its name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import keras
import numpy as np
from numpy.typing import NDArray

from fpgaprune.design import FUNCTIONS
from fpgaprune.errors import UnsupportedLayerError
from fpgaprune.network import calls_of, cloned, copied, keras_class, normalization

_MERGES: Mapping[str, Any] = {
    "Add": keras.layers.Add,
    "Subtract": keras.layers.Subtract,
    "Multiply": keras.layers.Multiply,
    "Maximum": keras.layers.Maximum,
    "Minimum": keras.layers.Minimum,
}
_ACTIVATIONS = {function.operation: function.name for function in FUNCTIONS.values() if function.converts}
_GLOBAL = {
    ("Mean", 3): keras.layers.GlobalAveragePooling1D,
    ("Mean", 4): keras.layers.GlobalAveragePooling2D,
    ("Max", 3): keras.layers.GlobalMaxPooling1D,
    ("Max", 4): keras.layers.GlobalMaxPooling2D,
}
# The operations of which a mask of steps is made.
_MASKING = ("NotEqual", "Any", "All", "LogicalAnd", "LogicalOr")
_SCALES = (keras.layers.Rescaling, keras.layers.Normalization)
_INSTEAD = {
    "GetItem": "a Cropping layer, or two inputs",
    "Split": "Cropping layers, or several inputs",
    "Stack": "Concatenate and Reshape",
    "ExpandDims": "Reshape",
    "Squeeze": "Reshape",
    "Pad": "ZeroPadding1D or ZeroPadding2D",
    "Clip": "ReLU, or an activation type that saturates",
    "Matmul": "Dense, with a kernel that is a weight",
    "Dot": "Dense, with a kernel that is a weight",
    "Einsum": "Dense or a convolution of one point",
    "Absolute": "the Maximum of x and -x",
    "Sum": "GlobalAveragePooling1D or GlobalAveragePooling2D, whose result the next layer scales",
    "Conv": "Conv1D or Conv2D",
    "DepthwiseConv": "DepthwiseConv1D or DepthwiseConv2D",
    "MaxPool": "MaxPooling1D or MaxPooling2D",
    "AveragePool": "AveragePooling1D or AveragePooling2D",
    "Resize": "UpSampling2D",
}
_Layer = Callable[..., Any]


def operation_problems(functional: keras.Model) -> list[str]:
    """Return one line for each operation of `functional` that cannot become a layer: its name, and what to do.

    Args:
        functional: a model from `keras.Model(model.inputs, model.outputs)`.
    """
    # A mask of steps comes from a layer, which is refused by its name.
    ignored = _MASKING if any(isinstance(layer, keras.layers.Masking) for layer in functional.layers) else ()
    lacking = (
        call.operation
        for call in calls_of(functional)
        if not _stays(call.operation)
        and type(call.operation).__name__ not in ignored
        and _made(call.operation, call.args, call.kwargs) is None
    )
    return list(dict.fromkeys(map(_problem, lacking)))


def with_layers(functional: keras.Model) -> keras.Model:
    """Put a layer in place of every operation of `functional`, which computes the same; itself if it has only layers.

    Args:
        functional: a model from `keras.Model(model.inputs, model.outputs)`; it is not changed.

    Raises:
        UnsupportedLayerError: an operation has no layer that computes the same; the message names it.
    """
    if all(_stays(call.operation) for call in calls_of(functional)):
        return functional
    for problem in operation_problems(functional):
        raise UnsupportedLayerError(problem)
    # Id of a tensor made by a scale and a shift, to the tensor that it was made of, the scale and the shift.
    lines: dict[int, tuple[Any, NDArray[np.float64], NDArray[np.float64]]] = {}
    # The weights of the layers that stand for a scale and a shift.
    scales: dict[str, Any] = {}

    def call(operation: keras.Operation, *args: object, **kwargs: object) -> keras.KerasTensor:
        if _stays(operation):
            return operation(*args, **kwargs)
        line = _line(operation, args, kwargs)
        if line is None:
            made = _made(operation, args, kwargs)
            return made() if made is not None else operation(*args, **kwargs)
        source, scale, shift = line
        if id(source) in lines:
            source, first_scale, first_shift = lines[id(source)]
            scale, shift = scale * first_scale, scale * first_shift + shift
        layer, made_tensor = scaled_and_shifted(operation.name, source, scale, shift)
        scales[operation.name] = layer.get_weights()
        lines[id(made_tensor)] = (source, scale, shift)
        return made_tensor

    def clone(operation: keras.Operation) -> keras.Operation:
        return copied(operation) if _stays(operation) else operation

    return cloned(functional, clone, call, scales)


def _stays(operation: keras.Operation) -> bool:
    """Return whether `operation` is a layer that stays; one of `_SCALES` does not."""
    return isinstance(operation, keras.layers.Layer) and keras_class(operation) not in _SCALES


def _problem(operation: keras.Operation) -> str:
    kind = type(operation).__name__
    if isinstance(operation, keras.layers.Layer):
        return (
            f"layer {operation.name!r} ({kind}) cannot be converted: its scale or its offset does not fit the shape of "
            "its input, or is not finite"
        )
    instead = _INSTEAD.get(kind, "layers of Keras that compute the same")
    known = ", ".join(sorted(_ACTIVATIONS))
    return (
        f"operation {operation.name!r} is a {kind} of keras.ops, and no layer: use "
        f"{instead}; these become layers: scale and shift by a constant or by one for each channel, sums and products "
        "of two tensors, Maximum, Minimum, Concatenate, Reshape, Transpose, Mean and Max over all "
        f"positions, {known}, Softmax"
    )


def _made(operation: keras.Operation, args: tuple[Any, ...], kwargs: Mapping[str, object]) -> _Layer | None:
    """Return a function that makes the output of `operation` with a layer; None if no layer computes the same."""
    kind, name = type(operation).__name__, operation.name
    line = _line(operation, args, kwargs)
    if line is not None:
        return lambda: scaled_and_shifted(name, *line)[1]
    if set(kwargs) - {"training"} or not args:
        return None
    if kind == "Concatenate" and isinstance(args[0], list | tuple) and all(map(_is_tensor, args[0])):
        return lambda: keras.layers.Concatenate(axis=operation.axis, name=name)(list(args[0]))
    if kind == "Power" and len(args) == 2 and _is_tensor(args[0]) and not _is_tensor(args[1]):
        return _square(name, args[0]) if np.ndim(args[1]) == 0 and args[1] == 2 else None
    if not all(map(_is_tensor, args)):
        return None
    if len(args) == 2:
        return _merged(kind, name, args)
    return _unary(operation, kind, args[0]) if len(args) == 1 else None


def _square(name: str, x: object) -> _Layer:
    return lambda: keras.layers.Multiply(name=name)([x, x])


def _merged(kind: str, name: str, args: tuple[Any, ...]) -> _Layer | None:
    # Keras's operation and its layer spread tensors of different numbers of axes in different ways.
    if kind not in _MERGES or len({len(tensor.shape) for tensor in args}) != 1:
        return None
    return lambda: _MERGES[kind](name=name)(list(args))


def _unary(operation: keras.Operation, kind: str, x: Any) -> _Layer | None:
    layer: Any = None
    if kind == "Elu":
        layer = keras.layers.ELU(operation.alpha, name=operation.name)
    elif kind == "LeakyRelu":
        layer = keras.layers.LeakyReLU(operation.negative_slope, name=operation.name)
    elif kind in _ACTIVATIONS and not getattr(operation, "approximate", False):
        layer = keras.layers.Activation(_ACTIVATIONS[kind], name=operation.name)
    elif kind == "Softmax" and operation.axis is not None:
        layer = keras.layers.Softmax(operation.axis, name=operation.name)
    elif kind == "Square":
        return _square(operation.name, x)
    elif kind in ("Reshape", "ExpandDims", "Squeeze", "Ravel") and None not in (shape := _output_shape(operation, x)):
        layer = keras.layers.Reshape(shape, name=operation.name)
    elif kind == "Transpose" and operation.axes is not None and operation.axes[0] == 0:
        layer = keras.layers.Permute(tuple(operation.axes)[1:], name=operation.name)
    elif (kind, len(x.shape)) in _GLOBAL and _over_positions(operation.axis, len(x.shape)):
        layer = _GLOBAL[kind, len(x.shape)](keepdims=bool(operation.keepdims), name=operation.name)
    return None if layer is None else lambda: layer(x)


def _output_shape(operation: keras.Operation, x: Any) -> tuple[int | None, ...]:
    """Return the shape of one sample's output; (None,) if an axis of it would hold several samples."""
    shape = tuple(operation.compute_output_spec(x).shape)
    return shape[1:] if len(shape) > 1 and shape[0] == x.shape[0] else (None,)


def _over_positions(axis: Any, rank: int) -> bool:
    axes = [axis] if isinstance(axis, int) else list(axis or [])
    return sorted(one % rank for one in axes) == list(range(1, rank - 1))


def _line(
    operation: keras.Operation, args: tuple[Any, ...], kwargs: Mapping[str, object]
) -> tuple[Any, NDArray[np.float64], NDArray[np.float64]] | None:
    """Return tensor, scale and shift, if `operation` computes `scale * tensor + shift`; else None.

    Scale and shift are (1,), (C,), or of the shape of a sample.
    """
    kind = type(operation).__name__
    if set(kwargs) - {"training"}:
        return None
    if keras_class(operation) in _SCALES:
        numbers = (
            normalization(operation)
            if isinstance(operation, keras.layers.Normalization)
            else (operation.scale, operation.offset)
        )
        scale, shift = (_spread(number, args[0]) for number in numbers)
        return None if scale is None or shift is None else (args[0], scale, shift)
    if kind == "Negative" and len(args) == 1 and _is_tensor(args[0]):
        return args[0], -np.ones(1), np.zeros(1)
    if len(args) != 2 or _is_tensor(args[0]) == _is_tensor(args[1]):
        return None
    tensor, other = args if _is_tensor(args[0]) else args[::-1]
    constant = _spread(other, tensor)
    if constant is None:
        return None
    zero, one = np.zeros_like(constant), np.ones_like(constant)
    if kind == "Add":
        return tensor, one, constant
    if kind == "Subtract":
        return (tensor, one, -constant) if tensor is args[0] else (tensor, -one, constant)
    if kind == "Multiply":
        return tensor, constant, zero
    if kind in ("Divide", "TrueDivide") and tensor is args[0] and (constant != 0).all():
        return tensor, 1.0 / constant, zero
    return None


def _spread(constant: object, tensor: keras.KerasTensor) -> NDArray[np.float64] | None:
    """Return `constant` as one number, as one for each channel of `tensor`, or as one for each element of a sample.

    None if it is no array that Keras broadcasts to every sample in the same way, or if it is not finite.
    """
    shape = tuple(tensor.shape[1:])
    try:
        array = np.asarray(constant, dtype=np.float64)
        whole: NDArray[np.float64] = np.broadcast_to(array, (1, *(size or 1 for size in shape)))[0]
    except (TypeError, ValueError):
        return None
    if not shape or not np.isfinite(array).all():
        return None
    rows = whole.reshape(-1, shape[-1])
    first: NDArray[np.float64] = rows[0]
    if (rows == first[0]).all():
        return first[:1]
    if (rows == first).all():
        return first
    return None if None in shape else whole


def scaled_and_shifted(name: str, x: Any, scale: NDArray[np.float64], shift: NDArray[np.float64]) -> tuple[Any, Any]:
    """Return a layer that computes `scale * x + shift`, and its output."""
    shape = tuple(x.shape[1:])
    each = max(scale.ndim, shift.ndim) > 1
    channels = math.prod(shape) if each else shape[-1]
    if each:
        scale, shift = (np.broadcast_to(array, shape).reshape(-1) for array in (scale, shift))
        x = keras.layers.Reshape((channels,), name=f"{name}_elements")(x)
    layer = keras.layers.BatchNormalization(epsilon=0.0, name=name)
    made = layer(x)
    zeros, ones = np.zeros(channels), np.ones(channels)
    layer.set_weights([zeros + scale, zeros + shift, zeros, ones])
    return layer, keras.layers.Reshape(shape, name=f"{name}_shape")(made) if each else made


def _is_tensor(value: object) -> bool:
    return isinstance(value, keras.KerasTensor)
