"""Replaces operations without a layer in a model, such as `x * 2.0 + 1.0`, by layers.

hls4ml's converter knows layers only and silently skips operations. A scale or a shift by constants, and a `Rescaling`,
becomes a `BatchNormalization` with these constants; several in a row become one. Activations, merges, averages and
reshapings become the layers of these names. Any other operation is refused by its name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import keras
import numpy as np
from numpy.typing import NDArray

from fpgaprune.design import FUNCTIONS
from fpgaprune.errors import UnsupportedLayerError
from fpgaprune.network import calls_of, cloned, copied

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


def operation_problems(functional: Any) -> list[str]:
    """One line for each operation of `functional` that cannot become a layer: its name, and what to do.

    Args:
        functional: a model from `keras.Model(model.inputs, model.outputs)`.
    """
    lacking = (
        call.operation
        for call in calls_of(functional)
        if not _stays(call.operation) and _made(call.operation, call.args, call.kwargs) is None
    )
    return list(dict.fromkeys(map(_problem, lacking)))


def with_layers(functional: Any) -> Any:
    """`functional` with a layer in place of every operation, which computes the same; itself if it has only layers.

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

    def call(operation: Any, *args: Any, **kwargs: Any) -> Any:
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
        made_tensor = _normalization(operation.name, source, scale, shift)
        lines[id(made_tensor)] = (source, scale, shift)
        return made_tensor

    def clone(operation: Any) -> Any:
        return copied(operation) if _stays(operation) else operation

    return cloned(functional, clone, call)


def _stays(operation: Any) -> bool:
    """Whether `operation` is a layer that stays; a `Rescaling` does not, because it becomes a scale and a shift."""
    return isinstance(operation, keras.layers.Layer) and not isinstance(operation, keras.layers.Rescaling)


def _problem(operation: Any) -> str:
    kind = type(operation).__name__
    if isinstance(operation, keras.layers.Layer):
        return (
            f"layer {operation.name!r} ({kind}) cannot be converted: its scale or its offset is neither one number nor "
            "one for each channel, and hls4ml has no templates for it"
        )
    instead = _INSTEAD.get(kind, "layers of Keras that compute the same")
    known = ", ".join(sorted(_ACTIVATIONS))
    return (
        f"operation {operation.name!r} is a {kind} of keras.ops, not a layer, and hls4ml converts layers only: use "
        f"{instead}; these become layers: scale and shift by a constant or by one for each channel, sums and products "
        "of two tensors of one shape, Maximum, Minimum, Concatenate, Reshape, Transpose, Mean and Max over all "
        f"positions, {known}, Softmax"
    )


def _made(operation: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> _Layer | None:
    """A function that makes the output of `operation` with a layer; None if no layer computes the same."""
    kind, name = type(operation).__name__, operation.name
    line = _line(operation, args, kwargs)
    if line is not None:
        return lambda: _normalization(name, *line)
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


def _square(name: str, x: Any) -> _Layer:
    return lambda: keras.layers.Multiply(name=name)([x, x])


def _merged(kind: str, name: str, args: tuple[Any, ...]) -> _Layer | None:
    shapes = {tuple(tensor.shape[1:]) for tensor in args}
    if kind not in _MERGES or len(shapes) != 1:
        return None
    return lambda: _MERGES[kind](name=name)(list(args))


def _unary(operation: Any, kind: str, x: Any) -> _Layer | None:
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


def _output_shape(operation: Any, x: Any) -> tuple[int | None, ...]:
    """The shape of one sample's output; (None,) if an axis of it would hold several samples."""
    shape = tuple(operation.compute_output_spec(x).shape)
    return shape[1:] if len(shape) > 1 and shape[0] == x.shape[0] else (None,)


def _over_positions(axis: Any, rank: int) -> bool:
    axes = [axis] if isinstance(axis, int) else list(axis or [])
    return sorted(one % rank for one in axes) == list(range(1, rank - 1))


def _line(
    operation: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[Any, NDArray[np.float64], NDArray[np.float64]] | None:
    """Tensor, scale and shift, (1,) or (C,), if `operation` computes `scale * tensor + shift`; else None."""
    kind = type(operation).__name__
    if set(kwargs) - {"training"}:
        return None
    if kind == "Rescaling":
        scale, shift = (_per_channel(number, args[0]) for number in (operation.scale, operation.offset))
        return None if scale is None or shift is None else (args[0], scale, shift)
    if kind == "Negative" and len(args) == 1 and _is_tensor(args[0]):
        return args[0], -np.ones(1), np.zeros(1)
    if len(args) != 2 or _is_tensor(args[0]) == _is_tensor(args[1]):
        return None
    tensor, other = args if _is_tensor(args[0]) else args[::-1]
    constant = _per_channel(other, tensor)
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


def _per_channel(constant: Any, tensor: Any) -> NDArray[np.float64] | None:
    """`constant` as one number or as one for each channel of `tensor`; None if it is neither, or not finite."""
    try:
        array = np.asarray(constant, dtype=np.float64)
    except (TypeError, ValueError):
        return None
    channels = tensor.shape[-1]
    single = array.size == 1
    along = array.ndim > 0 and array.size == array.shape[-1] == channels
    if len(tensor.shape) < 2 or array.ndim > len(tensor.shape) or not (single or along) or not np.isfinite(array).all():
        return None
    return array.reshape(-1)


def _normalization(name: str, x: Any, scale: NDArray[np.float64], shift: NDArray[np.float64]) -> Any:
    channels = (x.shape[-1],)
    layer = keras.layers.BatchNormalization(epsilon=0.0, name=name)
    made = layer(x)
    zeros, ones = np.zeros(channels), np.ones(channels)
    layer.set_weights([zeros + scale, zeros + shift, zeros, ones])
    return made


def _is_tensor(value: Any) -> bool:
    return isinstance(value, keras.KerasTensor)
