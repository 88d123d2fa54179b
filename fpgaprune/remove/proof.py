"""`equivalence` runs two models on the same inputs and compares their outputs element by element."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from fpgaprune.errors import EquivalenceError
from fpgaprune.measure import Equivalence
from fpgaprune.network import TIMES, UNIT, graph_of, is_model, rounding_noise, structures, unit_of, value_of
from fpgaprune.remove.rebuilding import rebuild, squashing_functions
from fpgaprune.values import Array

_BATCH = 32
# Tracing a model takes as long as running a few batches without tracing.
TRACED_FROM = 4 * _BATCH
# In float64, differences below this are far below any that a weight of float32 could make.
_LEAST = 1e-9


def equivalence(
    first: keras.Model,
    second: keras.Model,
    inputs: object = None,
    *,
    tolerance: float | None = None,
    dtype: str | None = "float64",
    bare: bool = True,
    seed: int = 0,
) -> Equivalence:
    """Compare the outputs of two models on `inputs`; `.require()` of the result raises if they differ too much.

    Args:
        first: a keras model; its outputs give the scale of the comparison.
        second: another model with the same inputs and outputs.
        inputs: an array, or arrays nested as the model's inputs, with a batch axis; None for `edge_inputs`.
        tolerance: largest relative error that passes, see `Equivalence`; 0 needs equal values. None: what the roundings
            of `dtype` explain in this network for these inputs, but at least 1e-9 in float64.
        dtype: both models are copied and run in this precision; None runs them as they are.
        bare: with a `dtype`, compare the inputs of a softmax or sigmoid at an output instead of its outputs, because
            it hides differences where it saturates. Equal logits make equal outputs, but not the other way round.
            Models that end in different functions are compared at their outputs.
        seed: seed of the random inputs, used if `inputs` is None.

    Raises:
        EquivalenceError: inputs or outputs of the two differ in number or shape, there is no sample, or a layer keeps a
            state.

    Examples:
        >>> exact = fp.apply_removal(model, fp.plan_removal(model), dtype="float64")
        >>> fp.equivalence(model, exact, x, tolerance=1e-9).require().ok
        True
    """
    return Reference(first, inputs, dtype=dtype, bare=bare, seed=seed).compare(second, tolerance=tolerance)


class Reference:
    """A model and its outputs, computed once, with which other models are compared."""

    def __init__(
        self,
        model: keras.Model,
        inputs: object = None,
        *,
        dtype: str | None = "float64",
        bare: bool = True,
        seed: int = 0,
    ) -> None:
        """Run `model` on `inputs`; arguments and errors are those of `equivalence`."""
        arrays = [
            np.asarray(x) for x in keras.tree.flatten(edge_inputs(model, seed=seed) if inputs is None else inputs)
        ]
        if not arrays or any(len(array) != len(arrays[0]) or not len(array) for array in arrays):
            raise EquivalenceError(
                f"inputs have shapes {[array.shape for array in arrays]}; wanted one or more samples, as many in each"
            )
        self._model = model
        self._arrays = arrays
        self._dtype = dtype
        self._bare = bare
        self._batches = [[x[start : start + _BATCH] for x in arrays] for start in range(0, len(arrays[0]), _BATCH)]
        self._copy = self._copied(model)
        self._outputs = self._run(self._copy)

    def compare(self, second: Any, *, tolerance: float | None = None, rounded: str | None = None) -> Equivalence:
        """Compare the outputs of `second` with this model's; arguments and errors are those of `equivalence`.

        With `rounded`, such as "float32", no `tolerance` means what it explains that weights of `second` were rounded
        to this dtype once.
        """
        if self._dtype and self._bare and squashing_functions(self._model) != squashing_functions(second):
            outputs = Reference(self._model, self._arrays, dtype=self._dtype, bare=False)
            return outputs.compare(second, tolerance=tolerance, rounded=rounded)
        finding = _Finding(np.dtype(self._dtype or "float32"))
        for mine, other in zip(self._outputs, self._run(self._copied(second)), strict=True):
            finding.add(mine, other)
        errors, scales = finding.per_sample()
        relative = errors / np.where(scales > 0, scales, 1.0)
        allowed = (
            np.full(len(relative), tolerance)
            if tolerance is not None
            else self._explained(relative, scales, rounded or self._dtype or "float32")
        )
        output = int((relative.max(axis=1) - allowed).argmax())
        sample = int(relative[output].argmax())
        return Equivalence(
            first=self._model.name,
            second=second.name,
            samples=len(self._arrays[0]),
            dtype=self._dtype or "model",
            max_abs_error=float(errors.max()),
            max_relative_error=float(relative[output, sample]),
            max_ulp=finding.ulp,
            variation=finding.variation(scales),
            tolerance=float(allowed[output]),
            worst_sample=sample,
            worst_output=output,
            worst_input=tuple(array[sample] for array in self._arrays),
        )

    def _copied(self, model: keras.Model) -> keras.Model:
        for layer in model._flatten_layers():
            if getattr(layer, "stateful", False):
                raise EquivalenceError(
                    f"layer {layer.name!r} ({type(layer).__name__}) of model {model.name!r} is stateful, so its output "
                    "is no function of a sample: compare models that are made with stateful=False"
                )
        return rebuild(model, dtype=self._dtype, bare=self._bare) if self._dtype else model

    def _run(self, copy: object) -> list[list[Array]]:
        """Return the outputs of `copy` for each batch, flat."""
        call = _call(copy, self._dtype, self._arrays)
        return [call(batch) for batch in self._batches]

    def _explained(self, relative: Array, scales: Array, dtype: str) -> NDArray[np.float64]:
        """Return for each output the largest relative error that rounding in `dtype` explains."""
        least = np.full(len(relative), _LEAST if dtype == "float64" else UNIT)
        if (relative.max(axis=1) <= least).all():
            return least
        some = np.unique([*relative.argmax(axis=1), *range(min(_BATCH, relative.shape[1]))])
        noise = rounding_noise(self._copy, [array[some] for array in self._arrays])
        drawn = np.array([np.abs(one).max(axis=(0, *range(2, one.ndim)), initial=0.0) for one in noise])
        sizes = np.where(scales[:, some] > 0, scales[:, some], 1.0)
        # Layers of a user's own keep their precision.
        layers = (
            x for x in self._copy._flatten_layers() if not (is_model(x) or isinstance(x, keras.layers.InputLayer))
        )
        kinds = {layer.compute_dtype for layer in layers if "float" in (layer.compute_dtype or "")}
        steps = max(map(unit_of, (dtype, *kinds))) / UNIT
        explained: NDArray[np.float64] = TIMES * steps * (drawn / sizes).max(axis=1)
        return np.asarray(np.maximum(least, explained))


def edge_inputs(model: keras.Model, samples: int = 8, seed: int = 0) -> list[Array]:
    """Make samples for borders and extremes: zeros, ones, +-1000, one-hot in corner and centre, and random ones.

    Args:
        model: the model whose inputs they fit; an axis of unknown size gets 8.
        samples: number of normally distributed samples beside the others.
        seed: seed of the random samples.
    """
    generator = np.random.default_rng(seed)
    found = []
    for tensor in graph_of(model).inputs:
        shape = tuple(8 if size is None else size for size in tensor.shape[1:])
        if not tensor.dtype.startswith(("float", "bfloat")):
            found.append(generator.integers(0, 2, size=(samples + 6, *shape)).astype(tensor.dtype))
            continue
        hot = np.zeros((2, *shape))
        hot[0].reshape(-1)[0] = 1.0
        hot[1].reshape(-1)[hot[1].size // 2] = 1.0
        edges = [np.zeros((1, *shape)), np.ones((1, *shape)), np.full((1, *shape), 1e3), np.full((1, *shape), -1e3)]
        found.append(np.concatenate([*edges, hot, generator.standard_normal((samples, *shape))]).astype(np.float32))
    return found


class _Finding:
    """Collects errors and scales for each output and sample, batch by batch."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self.dtype = dtype
        self.ulp = 0.0
        self._low: list[NDArray[np.float64]] = []
        self._high: list[NDArray[np.float64]] = []
        self._errors: list[list[NDArray[np.float64]]] = []
        self._scales: list[list[NDArray[np.float64]]] = []

    def add(self, first: Sequence[Array], second: Sequence[Array]) -> None:
        shapes = [[array.shape for array in arrays] for arrays in (first, second)]
        if shapes[0] != shapes[1]:
            raise EquivalenceError(f"outputs have shapes {shapes[0]} and {shapes[1]}; wanted equal ones")
        flat = [array.astype(np.float64).reshape(len(array), -1) for array in first]
        low, high = [x.min(axis=0) for x in flat], [x.max(axis=0) for x in flat]
        self._low = [np.fmin(a, b) for a, b in zip(self._low or low, low, strict=True)]
        self._high = [np.fmax(a, b) for a, b in zip(self._high or high, high, strict=True)]
        pairs = [self._compare(a, b) for a, b in zip(first, second, strict=True)]
        self._errors.append([error for error, _ in pairs])
        self._scales.append([scale for _, scale in pairs])

    def per_sample(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the largest error and the scale of each sample, both (outputs, samples)."""
        errors = np.array([np.concatenate(parts) for parts in zip(*self._errors, strict=True)])
        scales = np.array([np.concatenate(parts) for parts in zip(*self._scales, strict=True)])
        return errors, np.maximum(scales, np.median(scales, axis=1, keepdims=True))

    def variation(self, scales: NDArray[np.float64]) -> float:
        """Return an output's least variation: the largest range of an element over the samples / its median scale."""
        moves = [float((b - a).max(initial=0.0)) for a, b in zip(self._low, self._high, strict=True)]
        middle = np.median(scales, axis=1)
        return float(np.min(np.array(moves) / np.where(middle > 0, middle, 1.0)))

    def _compare(self, a: Array, b: Array) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        x, y = (array.astype(np.float64).reshape(len(array), -1) for array in (a, b))
        with np.errstate(invalid="ignore"):
            gap = np.where(x == y, 0.0, np.abs(x - y))  # equal infinities differ by 0, NaN by NaN
        gap = np.where(np.isnan(gap), np.inf, gap)
        larger = np.fmax(np.abs(x), np.abs(y)).astype(self.dtype)
        unit = np.spacing(np.where(np.isfinite(larger), larger, 1)).astype(np.float64)
        self.ulp = max(self.ulp, float((gap / unit).max(initial=0.0)))
        return gap.max(axis=1, initial=0.0), np.where(np.isfinite(x), np.abs(x), 0.0).max(axis=1, initial=0.0)


def _fits(got: tuple[int, ...], wanted: tuple[int | None, ...]) -> bool:
    """Return whether a sample's shape is that of an input, in which None is any size."""
    return len(got) == len(wanted) and all(two in (one, None) for one, two in zip(got, wanted, strict=True))


def _call(model: keras.Model, dtype: str | None, arrays: Sequence[Array]) -> Callable[[Sequence[Array]], list[Array]]:
    """Return a function from a batch to the flat outputs of `model`; traced once if there are many batches."""
    graph = graph_of(model) if dtype else None
    if graph is not None:
        got, wanted = ([tuple(x.shape[1:]) for x in inputs] for inputs in (arrays, graph.inputs))
        if len(got) != len(wanted) or not all(map(_fits, got, wanted)):
            raise EquivalenceError(f"inputs have samples of shape {got}; model {model.name!r} takes {wanted}")
    kinds = [x.dtype.name for x in arrays] if graph is None else [tensor.dtype for tensor in graph.inputs]

    def call(tensors: list[Any]) -> list[Any]:
        nested: Any = tensors
        if graph is not None:
            nested = keras.tree.pack_sequence_as(structures(graph)[0], tensors)
        elif len(tensors) == 1:
            nested = tensors[0]
        return list(keras.tree.flatten(model(nested, training=False)))

    if len(arrays[0]) >= TRACED_FROM:
        # One trace for all batches, including the smaller last one.
        shapes = [tf.TensorSpec((None, *x.shape[1:]), kind) for x, kind in zip(arrays, kinds, strict=True)]
        call = tf.function(call, input_signature=[shapes])

    def run(batch: Sequence[Array]) -> list[Array]:
        tensors = [keras.ops.convert_to_tensor(x, dtype=kind) for x, kind in zip(batch, kinds, strict=True)]
        return [value_of(x) for x in call(tensors)]

    return run
