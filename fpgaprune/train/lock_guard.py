"""`LockGuard`: a Keras optimizer that does not hold the lock is refused when it trains a locked weight."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import keras

from fpgaprune.errors import LockError


@keras.saving.register_keras_serializable(package="fpgaprune")
class LockGuard(keras.constraints.Constraint):
    """The constraint of a locked weight: an optimizer that trains it without holding the lock gets a `LockError`.

    So the lock cannot get lost unnoticed, neither by `model.compile("adam")` on a locked model nor by loading a
    file without its optimizer. The lock itself removes the guard while it works. `constraint` is the weight's own.
    """

    def __init__(self, path: str, constraint: object) -> None:
        self.path = path
        self.constraint = constraint

    def __call__(self, w: object) -> NoReturn:
        """Raise: a guarded weight may not be assigned.

        Raises:
            LockError: always.
        """
        del w
        raise LockError(
            f"weight {self.path!r} is locked, but this optimizer does not hold it (was the model compiled again?); "
            "call fp.lock(model, masks) after compile, or fp.unlock(model) to train it as it is"
        )

    def get_config(self) -> dict[str, Any]:
        """Return the path and the weight's own constraint."""
        return {"path": self.path, "constraint": keras.constraints.serialize(self.constraint)}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> LockGuard:
        """Return the guard that `get_config` described."""
        return cls(config["path"], keras.constraints.get(config["constraint"]))


def set_guards(weights: Iterable[tuple[str, Any]]) -> None:
    """Set a guard on each Keras variable; a tf.Variable cannot have one."""
    for path, variable in weights:
        if isinstance(variable, keras.Variable):
            variable.constraint = LockGuard(path, _own(variable))


def remove_guards(variables: Iterable[Any]) -> bool:
    """Restore the constraint of each variable; return whether one had a guard."""
    guarded = [variable for variable in variables if isinstance(variable.constraint, LockGuard)]
    for variable in guarded:
        variable.constraint = _own(variable)
    return bool(guarded)


def write_guards(model: keras.Model, weights: Iterable[tuple[str, Any]]) -> None:
    """Write guards into the configuration of each layer that names constraints of locked weights.

    A model that is made from the configuration (for example from a file without the optimizer) then refuses to train
    unlocked. One guard is enough: if no layer names a constraint of a locked weight, another weight gets the guard.
    """
    places = list(_constrained(model))
    paths = {id(variable): path for path, variable in weights}
    guarded = [(layer, attribute, paths[id(weight)]) for layer, attribute, weight in places if id(weight) in paths]
    # A layer may build its inner layers again from its own configuration, as MultiHeadAttention does.
    outer = {id(layer) for layer in _layers(model)}
    if paths and not any(id(layer) in outer for layer, _, _ in guarded):
        lent = [(layer, attribute) for layer, attribute, _ in places if id(layer) in outer]
        guarded += [(*place, next(iter(paths.values()))) for place in lent[:1]]
    for layer, attribute, path in guarded:
        setattr(layer, attribute, LockGuard(path, _unguarded(getattr(layer, attribute))))


def erase_guards(model: keras.Model) -> None:
    """Remove the guards from the configuration of each layer."""
    for layer, attribute, _ in _constrained(model):
        setattr(layer, attribute, _unguarded(getattr(layer, attribute)))


def _layers(model: keras.Model) -> Iterator[Any]:
    for layer in model.layers:
        if hasattr(layer, "layers"):
            yield from _layers(layer)
        else:
            yield layer


def _constrained(model: keras.Model) -> Iterator[tuple[Any, str, Any]]:
    """Yield each layer with the name of a constraint attribute and the weight that it constrains.

    Keras names the attribute after the weight, except `recurrent_kernel`, `depthwise_kernel` and
    `pointwise_kernel`, which lose the last word, and the kernel of a depthwise convolution.
    """
    for layer in model._flatten_layers():
        for variable in layer._trainable_variables:
            for name in (variable.name, variable.name.removesuffix("_kernel"), "depthwise"):
                if hasattr(layer, f"{name}_constraint"):
                    yield layer, f"{name}_constraint", variable
                    break


@contextmanager
def constraints_aside(variables: Iterable[Any]) -> Iterator[dict[int, Any]]:
    """Take the constraints off the locked `variables` inside the block; yield each one's own by `id(variable)`."""
    guarded = [(v, v.constraint) for v in variables if isinstance(getattr(v, "constraint", None), LockGuard)]
    for variable, _ in guarded:
        variable.constraint = None
    try:
        yield {id(variable): guard.constraint for variable, guard in guarded if guard.constraint is not None}
    finally:
        for variable, guard in guarded:
            variable.constraint = guard


def _own(variable: keras.Variable) -> Any:
    return _unguarded(variable.constraint)


def _unguarded(constraint: object) -> Any:
    return constraint.constraint if isinstance(constraint, LockGuard) else constraint
