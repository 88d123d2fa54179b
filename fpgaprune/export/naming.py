"""Names initialisers after the weights that they hold, and describes the layout of each weight."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from fpgaprune.errors import ExportError
from fpgaprune.export.tags import Place
from fpgaprune.export.weight_inputs import Constants
from fpgaprune.files import bodies
from fpgaprune.values import Array, named_weights

if TYPE_CHECKING:
    import keras
    import onnx

# Each scaled weight was rounded once to float32.
_SCALE_ROUNDING = 1e-6


def name_initialisers(
    graph: onnx.GraphProto, constants: Constants, model: keras.Model, folds: Mapping[str, str]
) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Replace the tags in initialisers by their values, and name each initialiser that is a weight by its path.

    Args:
        graph: the ONNX graph, with tags in place of weights.
        constants: the tags, and what was computed from weights.
        model: the user's model; the exported one has weights of the same paths.
        folds: layer name to the name of the BatchNorm folded into the layer.

    Returns:
        The layout: weight path to the initialiser, the weight's shape, the order of its axes in the initialiser, and
        whether a BatchNorm scales each output. And the names of all initialisers that are named after a weight; they
        include biases into which something was folded, which the layout leaves out.

    Raises:
        ExportError: a kernel is missing from the file.
    """
    from onnx import numpy_helper

    found = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    places = {name: constants.tags.place(array) for name, array in found.items()}
    names: dict[str, str] = {}
    stands: dict[str, tuple[Place, bool]] = {}
    for name, place in places.items():
        if place is None or place.name in constants.sources:
            continue
        # A layer that is used twice may store its kernel twice; one copy is enough if the axes have the same order.
        if stands.setdefault(place.name, (place, False))[0] == place:
            names[name] = place.name
    for name, place in places.items():
        path = _scaled_weight(place, constants) if place is not None else None
        if place is not None and path is not None and path not in stands:
            names[name] = path
            stands[path] = place, True
    kept = {}
    for tensor, array in zip(graph.initializer, found.values(), strict=True):
        name = names.get(tensor.name, tensor.name)
        kept[name] = numpy_helper.from_array(constants.tags.values(array), name)
    del graph.initializer[:]
    graph.initializer.extend(kept.values())
    _rename(graph, names)
    known = named_weights(model)
    for path, variable in known.items():
        # The exporter merges BatchNorm's vectors and biases before a BatchNorm; kernels must be there.
        if len(variable.shape) > 1 and path not in stands:
            raise ExportError(
                f"weight {path!r} of shape {tuple(variable.shape)} is missing from the ONNX file: no initialiser holds "
                "its elements, because the exporter computed something from it or dropped it; use another layer"
            )
    layout = {
        path: {
            "initializer": path,
            "permutation": list(place.permutation),
            "shape": list(known[path].shape),
            "scaled": is_computed or path.rpartition("/")[0] in folds,
        }
        for path, (place, is_computed) in stands.items()
        if path in known and (path.rpartition("/")[0] not in folds or len(known[path].shape) > 1)
    }
    return layout, list(names.values())


def _scaled_weight(place: Place, constants: Constants) -> str | None:
    """Return the weight that the constant at `place` is, times a factor for each output; None if there is none."""
    paths = constants.sources.get(place.name, frozenset())
    if len(paths) != 1:
        return None
    (path,) = paths
    weight, computed = constants.tags.arrays[path], constants.tags.arrays[place.name]
    return path if weight.ndim > 1 and weight.shape == computed.shape and is_scaled(weight, computed) else None


def _rename(graph: onnx.GraphProto, names: Mapping[str, str]) -> None:
    """Let the nodes of `graph`, and of the graphs inside it, read each tensor under its new name."""
    for node in graph.node:
        node.input[:] = [names.get(name, name) for name in node.input]
        for body in bodies(node):
            _rename(body, names)
    for value in graph.output:
        value.name = names.get(value.name, value.name)


def is_scaled(array: Array, found: Array) -> bool:
    """Return whether `found` is `array` times a factor for each output, as if a BatchNorm was folded into a kernel."""
    zero = array == 0
    if found.dtype != array.dtype or not np.array_equal(zero, found == 0):
        return False
    if zero.all():
        return True
    ratio = np.divide(found, array, where=~zero, out=np.full(array.shape, np.nan), dtype=np.float64, casting="unsafe")
    for outputs in (1, 2):  # a depthwise kernel has an output for each of its last two axes
        flat = np.ma.masked_invalid(ratio.reshape(-1, *ratio.shape[-outputs:]))
        spread = flat.max(axis=0) - flat.min(axis=0)
        if np.ma.all(spread <= _SCALE_ROUNDING * np.ma.abs(flat).max(axis=0)):
            return True
    return False
