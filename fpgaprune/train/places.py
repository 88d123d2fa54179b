"""Finds the variable of an optimizer that a weight path means, and the slots that belong to a weight."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import keras

from fpgaprune.errors import LockError
from fpgaprune.values import MaskSet, NamedWeights, near_misses

if TYPE_CHECKING:
    import keras
    import tensorflow as tf


def tf_variable(variable: keras.Variable) -> tf.Variable:
    """Return the tf.Variable inside a Keras variable; a tf.Variable itself."""
    return variable.value if isinstance(variable, keras.Variable) else variable


def place_of(variable: keras.Variable) -> int:
    """Return one number for a weight, the same for the Keras variable and for the tf.Variable inside it."""
    return id(tf_variable(variable))


def resolve_places(
    masks: MaskSet, variables: Sequence[Any], weights: Mapping[str, Any], positions: Mapping[str, int]
) -> dict[str, int]:
    """Map weight path to index in `variables`, for each path in `masks`.

    Args:
        masks: the masks of the lock.
        variables: the variables that an optimizer is built for.
        weights: weight path to variable, if the model is known.
        positions: weight path to the index that it had when the lock was saved.

    Raises:
        LockError: a path means no variable or several, or its mask does not fit.
    """
    by_identity = {place_of(variable): at for at, variable in enumerate(variables)}
    places: dict[str, int] = {}
    for path, mask in masks.items():
        if path in weights:
            at = by_identity.get(place_of(weights[path]))
            if at is None:
                raise LockError(f"weight {path!r} is not among the variables that the optimizer trains")
        elif path in positions and positions[path] < len(variables):
            at = positions[path]
        else:
            at = _by_name(path, variables)
        shape = tuple(variables[at].shape)
        if mask.shape != shape:
            raise LockError(f"mask for {path!r} has shape {mask.shape}; the weight has {shape}")
        twin = next((other for other, place in places.items() if place == at), None)
        if twin is not None:
            raise LockError(f"masks for {twin!r} and {path!r} are of the same weight; leave one of them out")
        places[path] = at
    return places


def known_variables(variables: Mapping[str, object]) -> NamedWeights[Any]:
    """Return `variables` by the names that a lock gives them; Keras's own paths find them too."""
    return NamedWeights(variables, {path: [_keras_path(variable)] for path, variable in variables.items()})


def _keras_path(variable: keras.Variable) -> str:
    return str(getattr(variable, "path", variable.name))


def _by_name(path: str, variables: Sequence[object]) -> int:
    names = [_keras_path(variable) for variable in variables]
    fitting = [at for at, name in enumerate(names) if name == path]
    fitting = fitting or [at for at, name in enumerate(names) if name.endswith("/" + path) or path.endswith("/" + name)]
    if not fitting:
        raise LockError(f"mask for {path!r} fits no variable of the optimizer; {near_misses(path, names)}")
    if len(fitting) > 1:
        raise LockError(
            f"mask for {path!r} fits {len(fitting)} variables ({', '.join(names[at] for at in fitting)}); "
            "give weights=named_weights(model) to tell them apart"
        )
    return fitting[0]


def find_slots(optimizer: keras.optimizers.Optimizer, variables: Sequence[object]) -> list[list[Any]]:
    """Find for each of `variables` the slots in which `optimizer` keeps one number for each element.

    A slot is a variable of the optimizer that `add_variable_from_reference` made for a weight (moments,
    EMA average, gradient accumulator). Keras names it `{path of the weight}_{name of the slot}` and gives it the
    weight's shape, so slots are found in any built optimizer, also in a user's subclass. Factored statistics
    (Adafactor's rows and columns), step counters and rates belong to no element and are left out.

    Args:
        optimizer: a built Keras optimizer; optimizers inside it (`optimizers`, `inner_optimizer`) are searched too.
        variables: the weights that it was built for.
    """
    found: list[list[Any]] = [[] for _ in variables]
    places = {place_of(variable): at for at, variable in enumerate(variables)}
    for owner in members(optimizer):
        trained = list(owner._trainable_variables)
        for slot, reference in _attribute(owner, trained):
            at = places.get(place_of(reference))
            if at is not None:
                found[at].append(slot)
    return found


def members(optimizer: keras.optimizers.Optimizer) -> Iterator[Any]:
    """Yield `optimizer` and every optimizer inside it."""
    yield optimizer
    for inner in getattr(optimizer, "optimizers", ()):
        yield from members(inner)
    if hasattr(optimizer, "inner_optimizer"):
        yield from members(optimizer.inner_optimizer)


def _attribute(owner: Any, trained: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    """Yield pairs of a slot and the weight that it belongs to."""
    by_name: dict[str, list[Any]] = {}
    for variable in trained:
        by_name.setdefault(_slot_prefix(variable), []).append(variable)
    turns: Counter[str] = Counter()
    for slot in owner._variables:
        prefix = _longest_prefix(slot.name, by_name)
        if prefix is None:
            continue
        # Two weights may have the same path (nested models); their slots stand in the order of the weights.
        namesakes = by_name[prefix]
        reference = namesakes[turns[slot.name] % len(namesakes)]
        turns[slot.name] += 1
        if tuple(slot.shape) == tuple(reference.shape):
            yield slot, reference


def _slot_prefix(variable: keras.Variable) -> str:
    if hasattr(variable, "path"):
        return str(variable.path).replace("/", "_") + "_"
    return str(variable.name).replace("/", "_").replace(":", "_") + "_"


def _longest_prefix(name: str, prefixes: Any) -> str | None:
    fitting = [prefix for prefix in prefixes if name.startswith(prefix)]
    return max(fitting, key=len, default=None)
