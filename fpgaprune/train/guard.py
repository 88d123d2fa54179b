"""A locked weight refuses to be trained by an optimizer that does not hold it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import keras

from fpgaprune.errors import LockError


class LockGuard(keras.constraints.Constraint):
    """The constraint of a locked weight: any optimizer but the locked one that trains it gets a `LockError`.

    So `model.compile("adam")` on a locked model does not lose the lock in silence. The lock itself sets the
    guard aside while it works; `constraint` is the weight's own.
    """

    def __init__(self, path: str, constraint: Any) -> None:
        self.path = path
        self.constraint = constraint

    def __call__(self, w: Any) -> NoReturn:
        """Never returns.

        Raises:
            LockError: always.
        """
        del w
        raise LockError(
            f"weight {self.path!r} is locked, but this optimizer does not hold it (was the model compiled again?); "
            "call fp.lock(model, masks) after compile, or fp.unlock before it"
        )


def set_guards(weights: Iterable[tuple[str, Any]]) -> None:
    """Each Keras variable is trained by its lock only; a tf.Variable has no place for a guard."""
    for path, variable in weights:
        if isinstance(variable, keras.Variable):
            variable.constraint = LockGuard(path, _own(variable))


def remove_guards(variables: Iterable[Any]) -> None:
    """Each variable has its own constraint back."""
    for variable in variables:
        if isinstance(variable.constraint, LockGuard):
            variable.constraint = _own(variable)


@contextmanager
def guards_aside(variables: Iterable[Any]) -> Iterator[None]:
    """Inside the block the variables have their own constraints."""
    guarded = [(v, v.constraint) for v in variables if isinstance(getattr(v, "constraint", None), LockGuard)]
    remove_guards(variable for variable, _ in guarded)
    try:
        yield
    finally:
        for variable, guard in guarded:
            variable.constraint = guard


def _own(variable: Any) -> Any:
    constraint = variable.constraint
    return constraint.constraint if isinstance(constraint, LockGuard) else constraint
