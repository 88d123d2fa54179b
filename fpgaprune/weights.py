"""Weight paths: one stable name for every variable of a Keras model, however the model was built.

Keras puts a Sequential's own name in front of `variable.path`, and leaves out the name of a nested
functional model, so that one layer has several paths in its life and two layers may share one. Here a
path is the names of the layers from the model inwards and then the variable's own, as in
`conv2/kernel` or `encoder/conv2/kernel`. Nothing of Keras is imported: the model is only walked.
"""

from __future__ import annotations

import difflib
import fnmatch
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fpgaprune.errors import MaskError

# What TensorFlow takes as the name of a scope.
_SCOPE = re.compile(r"[A-Za-z0-9_.\\/>-]*")


def named_weights(model: Any) -> dict[str, Any]:
    """Every variable of `model` by weight path, in the model's order; a shared variable stands once.

    A model of layers without weights, as of poolings alone, has none.

    Raises:
        MaskError: the model is not built yet, or two variables would share a path.
    """
    found: dict[str, Any] = {}
    seen: set[int] = set()
    for path, variable in _walk(model, ""):
        if id(variable) in seen:
            continue
        seen.add(id(variable))
        if path in found:
            raise MaskError(f"two weights of model {model.name!r} share the path {path!r}; give the layers other names")
        found[path] = variable
    if not found and not getattr(model, "built", False):
        raise MaskError(f"model {getattr(model, 'name', model)!r} has no weights yet; call or build it first")
    return found


def _walk(model: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    for layer in model.layers:
        if hasattr(layer, "layers"):
            yield from _walk(layer, f"{prefix}{layer.name}/")
            continue
        for variable in layer.weights:
            yield prefix + _tail(variable, layer.name), variable
    # Weights that a subclassed model holds itself, outside any layer.
    for variable in model.weights:
        yield prefix + _tail(variable, model.name).removeprefix(f"{model.name}/"), variable


def _tail(variable: Any, layer_name: str) -> str:
    parts = variable.path.split("/")
    if layer_name in parts:
        return "/".join(parts[parts.index(layer_name) :])
    return f"{layer_name}/{variable.path}"


def uncomputed_names(model: Any) -> list[str]:
    """One line for each layer of `model` with whose name TensorFlow, which makes scopes of names, computes nothing."""
    return [
        f"layer {layer.name!r} has a name with which TensorFlow cannot compute: name it with letters, digits, '_', '-' "
        "and '.' only"
        for layer in getattr(model, "layers", ())
        if not _SCOPE.fullmatch(layer.name)
    ]


def weight_arrays(model: Any) -> dict[str, NDArray[Any]]:
    """The values of every variable of `model` by weight path, copied."""
    return {path: np.array(variable.numpy()) for path, variable in named_weights(model).items()}


def match_paths(pattern: str, paths: Iterable[str]) -> list[str]:
    """The paths that the glob `pattern` matches, in their order; `conv*/kernel`, `*/kernel`, `conv2/kernel`.

    Raises:
        MaskError: it matches none; the message lists near misses.
    """
    known = list(paths)
    if pattern in known:
        return [pattern]
    found = [path for path in known if fnmatch.fnmatchcase(path, pattern)]
    if not found:
        raise MaskError(f"{pattern!r} matches no weight; {near_misses(pattern, known)}")
    return found


def near_misses(name: str, known: Iterable[str]) -> str:
    """A half sentence that lists what `name` may have meant."""
    names = list(known)
    near = difflib.get_close_matches(name, names, n=4, cutoff=0.5)
    if near:
        return f"did you mean {', '.join(near)}?"
    shown = ", ".join(names[:8]) + (f", ... ({len(names)} in all)" if len(names) > 8 else "")
    return f"the model has {shown}"


def weight_shapes(model_or_shapes: Any) -> dict[str, tuple[int, ...]]:
    """Weight path to shape, of a Keras model or of a mapping that already is one."""
    if isinstance(model_or_shapes, Mapping):
        return {path: tuple(shape) for path, shape in model_or_shapes.items()}
    return {path: tuple(variable.shape) for path, variable in named_weights(model_or_shapes).items()}
