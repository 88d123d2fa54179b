"""Weight paths are stable names for the variables of a Keras model, however the model was built.

Keras puts a Sequential's name in front of `variable.path`, and leaves out the name of a nested functional model. So one
layer may have several paths over time, and two layers may share one. Here a path consists of the names of the nested
models, of the layer and of the variable, as in `conv2/kernel` or `encoder/conv2/kernel`. Keras's path is understood
too: `sequential/conv2/kernel` means `conv2/kernel` of a Sequential called `sequential`. Keras is not imported.
"""

from __future__ import annotations

import difflib
import fnmatch
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from fpgaprune.errors import MaskError

if TYPE_CHECKING:
    import keras

# The names that TensorFlow accepts for a scope.
_SCOPE = re.compile(r"[A-Za-z0-9_.\\/>-]*")

T = TypeVar("T")
V = TypeVar("V")


class NamedWeights(dict[str, T]):
    """Weight path to the variable, the array or the shape of each weight of a model.

    Attributes:
        keras_paths: other path that Keras gives a weight, to the weight paths that it may mean.
    """

    def __init__(self, values: Mapping[str, T], names: Mapping[str, Iterable[str]]) -> None:
        """Map weight paths to `values`; `names` maps them to Keras's own paths."""
        super().__init__(values)
        self.keras_paths: dict[str, list[str]] = {}
        for path, own in names.items():
            for name in own:
                if name not in values:
                    self.keras_paths.setdefault(name, []).append(path)

    def map(self, function: Callable[[T], V]) -> NamedWeights[V]:
        """Apply `function` to each value."""
        mapped: NamedWeights[V] = NamedWeights({path: function(value) for path, value in self.items()}, {})
        mapped.keras_paths = self.keras_paths
        return mapped


def keras_names(model: str, nested: str, path: str) -> set[str]:
    """Return the paths that Keras may give the weight `path`; they depend on how the model was built or loaded.

    Args:
        model: the model's name, which a Sequential puts in front.
        nested: the names of the nested models around the layer, as `encoder/` or ``; Keras leaves some of them out.
        path: the weight path, which begins with `nested`.
    """
    names = [model, *path.split("/")]
    return {"/".join(names[level:]) for level in range(nested.count("/") + 2)}


def weight_path(name: str, known: Collection[str]) -> str | None:
    """Return the weight path in `known` that `name` means; None if there is none.

    Args:
        name: a weight path, or Keras's `variable.path`; a weight path is tried first.
        known: weight paths; only `NamedWeights` know Keras's paths.

    Raises:
        MaskError: Keras gives several weights this path.
    """
    if name in known:
        return name
    meant = _keras_paths(known).get(name, [])
    if len(meant) > 1:
        raise MaskError(
            f"{name!r} is Keras's path of {len(meant)} weights, {' and '.join(map(repr, meant))}; name the one you mean"
        )
    return meant[0] if meant else None


def by_weight_path(given: Mapping[str, V], known: Collection[str]) -> dict[str, V]:
    """Return `given` with weight paths as keys; Keras's path of a weight in `known` is replaced, others stay.

    Raises:
        MaskError: two keys name one weight, or Keras gives several weights one of them.
    """
    found: dict[str, V] = {}
    keys: dict[str, str] = {}
    for key, value in given.items():
        path = weight_path(key, known) or key
        if path in found:
            raise MaskError(f"{keys[path]!r} and {key!r} name the same weight; leave one of them out")
        found[path], keys[path] = value, key
    return found


def _keras_paths(known: Collection[str]) -> Mapping[str, list[str]]:
    return known.keras_paths if isinstance(known, NamedWeights) else {}


def named_weights(model: Any) -> NamedWeights[Any]:
    """Map weight path to variable for every variable of `model`, in its order; a shared variable appears once.

    Raises:
        MaskError: `model` is no Keras model or not built yet, or two variables would share a path.
    """
    if not hasattr(model, "layers"):
        raise MaskError(f"model is a {type(model).__name__}; wanted a Keras model, as fp.load(path).model gives")
    found: dict[str, Any] = {}
    names: dict[str, set[str]] = {}
    seen: set[int] = set()
    for nested, tail, variable in _walk(model, ""):
        path = nested + tail
        if id(variable) in seen:
            continue
        seen.add(id(variable))
        if path in found:
            raise MaskError(f"two weights of model {model.name!r} share the path {path!r}; give the layers other names")
        found[path] = variable
        names[path] = {variable.path, *keras_names(model.name, nested, path)}
    if not found and not getattr(model, "built", False):
        raise MaskError(f"model {getattr(model, 'name', model)!r} has no weights yet; call or build it first")
    return NamedWeights(found, names)


def every_path(model: object) -> dict[str, Any]:
    """Map each path to its variable; a variable that several layers share has a path for each layer."""
    found: dict[str, Any] = {}
    borrowed: dict[str, Any] = {}
    for nested, tail, variable in _walk(model, ""):
        found.setdefault(nested + tail, variable)
        # A layer that takes the variable of another would have called its own so.
        borrowed.setdefault(f"{nested}{tail.split('/')[0]}/{variable.name}", variable)
    return {**borrowed, **found}


def _walk(model: Any, nested: str) -> Iterator[tuple[str, str, Any]]:
    """Yield the names of the nested models around each variable, its path within them, and the variable."""
    for layer in model.layers:
        if hasattr(layer, "layers"):
            yield from _walk(layer, f"{nested}{layer.name}/")
            continue
        for variable in layer.weights:
            yield nested, _tail(variable, layer.name), variable
    # Weights that a subclassed model holds itself, outside all layers.
    for variable in model.weights:
        yield nested, _tail(variable, model.name).removeprefix(f"{model.name}/"), variable


def _tail(variable: Any, layer_name: str) -> str:
    parts = variable.path.split("/")
    if layer_name in parts:
        return "/".join(parts[parts.index(layer_name) :])
    return f"{layer_name}/{variable.path}"


def uncomputed_names(model: object) -> list[str]:
    """Return one line for each layer of `model` whose name TensorFlow does not accept as the name of a scope."""
    return [
        f"layer {layer.name!r} has a name with which TensorFlow cannot compute: name it with letters, digits, '_', '-' "
        "and '.' only"
        for layer in getattr(model, "layers", ())
        if not _SCOPE.fullmatch(layer.name)
    ]


def weight_arrays(model: keras.Model) -> NamedWeights[NDArray[Any]]:
    """Map weight path to a copy of the values, for every variable of `model`.

    Examples:
        >>> {path: array.shape for path, array in fp.weight_arrays(model).items()}["conv1/kernel"]
        (3, 3, 1, 4)
    """
    return named_weights(model).map(lambda variable: np.array(variable.numpy()))


def match_paths(pattern: str, known: Collection[str]) -> list[str]:
    """Return the weight paths that the glob `pattern` matches, in their order: `conv*/kernel`, `*/kernel`.

    If it matches no weight path, Keras's own paths are tried: `sequential/conv*/kernel`.

    Raises:
        MaskError: it matches none (the message lists near misses), or Keras gives several weights this path.
    """
    path = weight_path(pattern, known)
    if path is not None:
        return [path]
    found = fitting_paths(lambda name: fnmatch.fnmatchcase(name, pattern), known)
    if not found:
        raise MaskError(f"{pattern!r} matches no weight; {near_misses(pattern, known)}")
    return found


def fitting_paths(fits: Callable[[str], Any], known: Collection[str]) -> list[str]:
    """Return the weight paths in `known` that fit, in their order; if none fits, those whose Keras path fits."""
    found = [path for path in known if fits(path)]
    if found:
        return found
    meant = {path for name, paths in _keras_paths(known).items() if fits(name) for path in paths}
    return [path for path in known if path in meant]


def near_misses(name: str, known: Iterable[str]) -> str:
    """Suggest known names near `name`, as the end of a sentence; for a kernel, kernels if some are near."""
    names = list(known)
    alike = [one for one in names if one.rpartition("/")[2] == name.rpartition("/")[2]]
    near = next(filter(None, (difflib.get_close_matches(name, some, n=4, cutoff=0.5) for some in (alike, names))), None)
    if near:
        return f"did you mean {', '.join(near)}?"
    shown = ", ".join(names[:8]) + (f", ... ({len(names)} in all)" if len(names) > 8 else "")
    return f"the model has {shown}"


def weight_shapes(model_or_shapes: object) -> NamedWeights[tuple[int, ...]]:
    """Map weight path to shape, from a Keras model or from such a mapping."""
    if isinstance(model_or_shapes, NamedWeights):
        return model_or_shapes.map(tuple)
    if isinstance(model_or_shapes, Mapping):
        return NamedWeights({path: tuple(shape) for path, shape in model_or_shapes.items()}, {})
    return named_weights(model_or_shapes).map(lambda variable: tuple(variable.shape))
