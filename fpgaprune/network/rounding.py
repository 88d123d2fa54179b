"""How far the outputs of a network may move because floats round: Monte Carlo arithmetic in float64.

Two programs that compute a network in float32 add in other orders, so their outputs differ, and by how much depends on
the sizes of the values inside: pixels of 0..255 and sums that cancel lose more digits than the outputs show. No
constant knows that. Bounds that multiply absolute weights do, but grow with the depth until they allow anything.

So every operation is computed in float64, and what float32 would lose in it is added at random (Parker, Monte Carlo
Arithmetic, 1997): a sum of n terms loses the roundings of its n partial sums, each a random share of a unit in the last
place (Higham and Mary, A New Approach to Probabilistic Rounding Error Analysis, 2019). What arrives at the outputs is
what rounding explains.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fpgaprune.network.functions import activation_in
from fpgaprune.network.graph import Call, calls_of, graph_of, nested_graph, unconnected, value_of
from fpgaprune.network.weight_axes import Weight
from fpgaprune.values import Array

if TYPE_CHECKING:
    import keras

# Half a unit in the last place, relative to the number.
UNIT = 2.0**-24
_UNITS = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float64": 2.0**-53}
# Two programs differ by at most this many times the largest draw: both of them round, and only a few are drawn. On
# thirty networks they differed by 0.5 times at most.
TIMES = 4.0
# They differ by as many units at least: exp and tanh of two programs do, and few draws need not show it. A softmax
# behind a GRU differed by nine.
_LEAST = 16
_DRAWS = 3
_SAMPLES = 32
# The smallest float32 of full precision; runtimes differ in what they keep below.
_TINY = 2.0**-126
# These activations keep the digits of small results; others add or take away a 1 somewhere.
_KEEP_DIGITS = frozenset({"leaky_relu", "linear", "prelu", "relu", "relu6", "softmax", "tanh", "thresholded_relu"})
_LOSE_DIGITS = frozenset({"celu", "elu", "gelu", "logsigmoid", "mish", "selu", "sigmoid", "silu", "softplus"})


def unit_of(dtype: str | None) -> float:
    """Return the relative rounding error of `dtype`: half a unit in the last place; float32's for any other dtype."""
    return _UNITS.get(dtype or "", UNIT)


def rounding_noise(model: keras.Model, inputs: Sequence[Array], seed: int = 0) -> list[NDArray[np.float64]]:
    """Return for each output of `model` how far rounding moves it from its exact value, in each of a few draws.

    Each layer rounds as its own precision does; one of float64 as float32, so that the noise of a copy in float64 is
    that of the original.

    Args:
        model: a functional or Sequential keras model.
        inputs: one array (N, ...) for each input.
        seed: seed of the draws.

    Returns:
        One array (draws, N, ...) for each output.

    Raises:
        RemovalError: the graph cannot be read.
    """
    graph = graph_of(model)
    given = [_in_float64(array, tensor.dtype) for array, tensor in zip(inputs, graph.inputs, strict=True)]
    exact = _outputs(graph, given, None)
    draws = [_outputs(graph, given, _Rounding(np.random.default_rng([seed, k]), k)) for k in range(_DRAWS)]
    return [np.stack([value_of(y) - value_of(x) for y in drawn]) for x, *drawn in zip(exact, *draws, strict=True)]


def largest_difference(
    model: keras.Model, inputs: Sequence[Array], wanted: Sequence[Array], found: Sequence[Array]
) -> tuple[float, float]:
    """Return the difference of `found` from `wanted` that rounding explains least, and what rounding explains there.

    Each channel (last axis) of each output is judged by itself: its largest difference, and the rounding of `model` for
    the samples that differ most and for the first ones. A NaN is an infinite difference.

    Args:
        model: a functional or Sequential keras model.
        inputs: one array (N, ...) for each input.
        wanted: for each output the array (N, ...) that `model` gave.
        found: what another program gave.
    """
    gaps = [_gap(a, b) for a, b in zip(wanted, found, strict=True)]
    errors = [gap.max(axis=(0, 1), initial=0.0) for gap in gaps]
    # Whatever the network is, its results are rounded, and this needs no draws.
    least = [_LEAST * UNIT * np.abs(_by_channel(array)).max(axis=(0, 1), initial=0.0) + _TINY for array in wanted]
    if all((error <= few).all() for error, few in zip(errors, least, strict=True)):
        return _worst(errors, least)
    worst = np.concatenate([gap.max(axis=1).argmax(axis=0) for gap in gaps])
    samples = np.unique([*worst[:_SAMPLES], *range(min(_SAMPLES, len(gaps[0])))])
    noise = rounding_noise(model, [np.asarray(array)[samples] for array in inputs])
    drawn = [np.abs(_by_channel(np.concatenate(list(one)))).max(axis=(0, 1), initial=0.0) for one in noise]
    return _worst(errors, [np.maximum(TIMES * one, few) for one, few in zip(drawn, least, strict=True)])


def _worst(errors: Sequence[Array], allowed: Sequence[Array]) -> tuple[float, float]:
    error, limit = np.concatenate(errors), np.concatenate(allowed)
    place = int((error / limit).argmax())
    return float(error[place]), float(limit[place])


def _gap(first: Array, second: Array) -> NDArray[np.float64]:
    a, b = _by_channel(first), _by_channel(second)
    with np.errstate(invalid="ignore"):
        gap = np.where(a == b, 0.0, np.abs(a - b))
    return np.where(np.isnan(gap), np.inf, gap)


def _by_channel(array: Array) -> NDArray[np.float64]:
    """Return `array` (N, ..., C) as (N, positions, C)."""
    whole = np.asarray(array).astype(np.float64)
    return whole.reshape(len(whole), -1, whole.shape[-1] if whole.ndim > 1 else 1)


class _Rounding:
    """Draws what each operation of one pass through the network loses."""

    def __init__(self, rng: np.random.Generator, number: int) -> None:
        self._rng, self._number = rng, number

    def moved(self, operation: keras.Operation, args: Any, kwargs: Any, exact: Sequence[Any]) -> list[Any]:
        """Return the results of `operation` on these arguments with its roundings; `exact` are those without."""
        import keras
        import tensorflow as tf

        # A copy in float64 stands for a network of float32.
        unit = max(unit_of(getattr(operation, "compute_dtype", None)), UNIT)

        def nudge(value: Any) -> Any:
            return _like(value * (1 + unit * self._signs(value.shape)), value) if _is_float(value) else value

        nudged_args, nudged_kwargs = keras.tree.map_structure(nudge, (args, kwargs))
        other = _results(operation, nudged_args, nudged_kwargs, self._weights(operation, unit))
        read = sum(math.prod(x.shape) for x in keras.tree.flatten((args, kwargs)) if tf.is_tensor(x))
        made = sum(math.prod(y.shape) for y in exact)
        relative = 2 * unit * math.sqrt(max(1.0, read / max(made, 1)))
        found = []
        for y, z in zip(exact, other, strict=True):
            if not _is_float(y):
                found.append(y)
                continue
            size = tf.abs(z - y) + relative * tf.abs(y)
            if _loses_digits(operation):
                size += unit * tf.maximum(tf.reduce_max(tf.abs(y)), 1.0)
            # A weight that was folded is rounded alike for all positions; a sum is rounded at each position anew.
            found.append(_like(z + self._signs(y.shape) * size, y))
        return found

    def _weights(self, operation: object, unit: float) -> dict[int, tuple[Any, NDArray[np.float64]]]:
        """Return the weights of `operation`, each moved as the roundings of the sum that it is in move its term."""
        found = {}
        for holder in getattr(operation, "_flatten_layers", list)():
            for variable in holder.variables:
                value = value_of(variable, np.float64) if "float" in str(variable.dtype) else None
                if value is not None:
                    terms = self._terms(Weight(f"{holder.name}/{variable.name}", holder, value.ndim), value.shape)
                    found[id(variable)] = variable, value * (1 + unit * terms)
        return found

    def _terms(self, weight: Weight, shape: tuple[int, ...]) -> NDArray[np.float64]:
        """Return what happens to each term: the roundings of all partial sums from there on, in units."""
        if len(shape) < 2 or weight.name == "embeddings":
            return 2 * self._rng.standard_normal(shape)
        outputs = [axis % len(shape) for axis in weight.axes.outputs]
        summed = [axis for axis in range(len(shape)) if axis not in outputs]
        # Another program may add the channels before the positions, or in any order.
        summed = summed[::-1] if self._number % 2 else summed
        order = [*summed, *outputs]
        sizes = [shape[axis] for axis in order]
        steps = self._rng.standard_normal((math.prod(sizes[: len(summed)]), math.prod(sizes[len(summed) :])))
        walk = np.cumsum(steps, axis=0)
        return np.asarray(np.transpose(walk.reshape(sizes), np.argsort(order)), np.float64)

    def _signs(self, shape: Any) -> NDArray[np.float64]:
        return np.asarray(self._rng.integers(0, 2, size=tuple(shape)) * 2.0 - 1.0, np.float64)


def _outputs(graph: Any, inputs: Sequence[Any], rounding: _Rounding | None) -> list[Any]:
    """Return the outputs of `graph`, exact or with what `rounding` draws."""
    found = {id(tensor): value for tensor, value in zip(graph.inputs, inputs, strict=True)}
    for call in calls_of(graph):
        for tensor, value in zip(call.outputs, _called(call, found, rounding), strict=True):
            found[id(tensor)] = value
    return [found[id(tensor)] for tensor in graph.outputs]


def _called(call: Call, found: dict[int, Any], rounding: _Rounding | None) -> list[Any]:
    import keras

    inner = nested_graph(call)
    if inner is not None:
        return _outputs(inner, [found[id(tensor)] for tensor in call.inputs], rounding)
    args, kwargs = keras.tree.map_structure(lambda leaf: found.get(id(leaf), leaf), (call.args, dict(call.kwargs)))
    exact = _results(call.operation, args, kwargs, {})
    return exact if rounding is None else rounding.moved(call.operation, args, kwargs, exact)


def _results(operation: keras.Operation, args: Any, kwargs: Any, weights: dict[int, tuple[Any, Any]]) -> list[Any]:
    """Compute `operation` in float64 with other values of some weights; in its own precision if it has no other."""
    import keras
    import tensorflow as tf

    twin = operation
    if isinstance(operation, keras.Layer):
        twin = unconnected(operation)
        twin.dtype_policy = "float64"
    values = [(variable, tf.constant(value)) for variable, value in weights.values()]
    try:
        with keras.StatelessScope(state_mapping=values):
            made = twin(*args, **kwargs)
    except (TypeError, ValueError, tf.errors.OpError):
        # Such as a Lambda that multiplies by a tensor of float32.
        narrow = keras.tree.map_structure(lambda x: tf.cast(x, tf.float32) if _is_float(x) else x, (args, kwargs))
        with keras.StatelessScope(state_mapping=[(variable, tf.cast(v, variable.dtype)) for variable, v in values]):
            made = operation(*narrow[0], **narrow[1])
    return [_like(tf.cast(y, tf.float64), y) if _is_float(y) else y for y in keras.tree.flatten(made)]


def _in_float64(array: Array, kind: str) -> Any:
    """Return `array` as an input of dtype `kind` takes it, and in float64 if that is a float."""
    import tensorflow as tf

    given = tf.cast(array, kind)
    return tf.cast(given, tf.float64) if _is_float(given) else given


def _is_float(value: Any) -> bool:
    import tensorflow as tf

    return bool(tf.is_tensor(value) and value.dtype.is_floating)


def _like(value: Any, old: Any) -> Any:
    """Return `value` with the mask that Keras keeps on `old`."""
    mask = getattr(old, "_keras_mask", None)
    if mask is not None:
        value._keras_mask = mask
    return value


def _loses_digits(operation: object) -> bool:
    import keras

    if not isinstance(operation, keras.Layer):
        return type(operation).__name__.lower() in _LOSE_DIGITS
    known = activation_in(operation)
    return known is None or known.name not in _KEEP_DIGITS
