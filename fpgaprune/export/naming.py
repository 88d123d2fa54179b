"""Initialisers named after the weights that they hold, and where each weight stands."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpgaprune.errors import ExportError
from fpgaprune.weights import named_weights

# Each scaled weight was rounded once to float32.
_SCALE_ROUNDING = 1e-6


def name_initialisers(
    graph: Any, model: Any, written: Any, folds: Mapping[str, str]
) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Each initialiser that holds a weight has the weight's path as its name; where each weight of `model` stands.

    Args:
        graph: the ONNX graph.
        model: the model that was to be exported.
        written: the model that was, with weights of the same paths.
        folds: name of the BatchNorm that a layer of `written` took in, by layer name.

    Returns:
        By weight path the initialiser, the permutation of its axes, and whether each output is scaled by a BatchNorm;
        and the names of all initialisers that bear a weight's. A bias that took something in is one of these only.

    Raises:
        ExportError: what multiplies is not to be found in the file.
    """
    from onnx import numpy_helper

    free = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    known = named_weights(model)
    weights = {path: variable.numpy() for path, variable in named_weights(written).items()}
    layout: dict[str, dict[str, Any]] = {}
    names: dict[str, str] = {}
    # Every unchanged weight finds its place before a scaled one may take it.
    for is_same in (_same_bits, is_scaled):
        for path, array in weights.items():
            if path in names.values() or (is_same is is_scaled and array.ndim < 2):
                continue
            layer = path.rpartition("/")[0]
            found = _find(array, free, is_same, hint=layer.rpartition("/")[2])
            if found is None:
                continue
            name, permutation = found
            del free[name]
            names[name] = path
            if path in known and (layer not in folds or array.ndim > 1):
                scaled = is_same is is_scaled or layer in folds
                layout[path] = {"initializer": path, "permutation": list(permutation), "scaled": scaled}
    for path, variable in known.items():
        # BatchNorm's vectors, and biases before one, are merged by the exporter; what multiplies must be there.
        if len(variable.shape) > 1 and path not in layout:
            shape = tuple(variable.shape)
            raise ExportError(f"weight {path!r} of shape {shape} is not to be found in the ONNX file")
    for tensor in graph.initializer:
        tensor.name = names.get(tensor.name, tensor.name)
    for node in graph.node:
        node.input[:] = [names.get(name, name) for name in node.input]
    return layout, list(names.values())


def _find(
    array: NDArray[Any],
    stored: Mapping[str, NDArray[Any]],
    is_same: Callable[[NDArray[Any], NDArray[Any]], bool],
    hint: str,
) -> tuple[str, tuple[int, ...]] | None:
    # Layers may hold equal bits: a name that mentions the layer goes first.
    for name in sorted(stored, key=lambda name: (f"/{hint}" not in name, name)):
        if stored[name].size != array.size or stored[name].ndim != array.ndim:
            continue
        for permutation in itertools.permutations(range(array.ndim)):
            found = np.transpose(stored[name], np.argsort(permutation))
            if found.shape == array.shape and is_same(array, found):
                return name, permutation
    return None


def _same_bits(array: NDArray[Any], found: NDArray[Any]) -> bool:
    # tobytes, not ==: -0.0 equals 0.0 as a number.
    return array.tobytes() == found.tobytes()


def is_scaled(array: NDArray[Any], found: NDArray[Any]) -> bool:
    """Whether `found` is `array` times a factor for each output, as where a BatchNorm was folded into a kernel."""
    zero = array == 0
    if found.dtype != array.dtype or not np.array_equal(zero, found == 0):
        return False
    ratio = np.divide(found, array, where=~zero, out=np.full(array.shape, np.nan), dtype=np.float64, casting="unsafe")
    for outputs in (1, 2):  # a depthwise kernel has an output for each of its last two axes
        flat = np.ma.masked_invalid(ratio.reshape(-1, *ratio.shape[-outputs:]))
        spread = flat.max(axis=0) - flat.min(axis=0)
        if np.ma.all(spread <= _SCALE_ROUNDING * np.ma.abs(flat).max(axis=0)):
            return True
    return False
