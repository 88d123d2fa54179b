"""Finds the slots of an optimizer that belong to a weight."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from fpgaprune.train.places import place_of

if TYPE_CHECKING:
    import keras


def find_slots(optimizer: keras.optimizers.Optimizer, variables: Sequence[object]) -> list[list[Any]]:
    """For each of `variables`, the slots in which `optimizer` keeps one number for each element.

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
    """`optimizer` and every optimizer inside it."""
    yield optimizer
    for inner in getattr(optimizer, "optimizers", ()):
        yield from members(inner)
    if hasattr(optimizer, "inner_optimizer"):
        yield from members(optimizer.inner_optimizer)


def _attribute(owner: Any, trained: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    """Pairs of a slot and the weight that it belongs to."""
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
