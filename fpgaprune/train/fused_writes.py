"""Fuses the writes of an optimizer to held variables with the restoration of the locked elements."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from fpgaprune.train.places import tf_variable

if TYPE_CHECKING:
    import keras

_READS = frozenset({"ReadVariableOp", "ResourceGather", "VariableShape"})


@dataclass(frozen=True)
class Destination:
    """A tf.Variable that gets the bits of `locked` where `mask` is False; None stands for zeros."""

    variable: Any
    mask: Any
    locked: Any | None


def write_selected(target: Destination, new: object) -> None:
    """Write `new` to the variable where its mask is True, and the locked bits elsewhere."""
    new = tf.convert_to_tensor(new)
    locked = tf.zeros_like(new) if target.locked is None else target.locked
    # `tf.where` also only moves bits, but it broadcasts and is slower.
    target.variable.assign(tf.raw_ops.Select(condition=target.mask, x=new, y=locked), read_value=False)


class FusedWrites:
    """Replaces `assign`, `assign_add` and `assign_sub` of optimizers while a graph is traced.

    Keras optimizers write through these three. Any other write (weight decay, EMA, a branch of a condition, a
    user's own `variable.assign`) is visible in the graph: `unsettled` reports its variable, which needs one more
    assignment. So the result is exact for any optimizer, and usual ones cost one `Select` for each variable.

    The optimizer reads slots in which the locked elements are already restored. So it must compute each element from
    that element alone.
    """

    def __init__(self, targets: Sequence[Destination]) -> None:
        self._targets = {id(target.variable): target for target in targets}
        self._graph = tf.compat.v1.get_default_graph()
        self._seen = {key: self._touches(target.variable) for key, target in self._targets.items()}
        self._untouched = dict(self._seen)

    @contextmanager
    def of(self, optimizers: Sequence[object]) -> Iterator[None]:
        """Fuse the writes of `optimizers` inside the block."""
        ways: dict[str, Callable[[Any, Any], Any]] = {
            "assign": lambda _, value: value,
            "assign_add": tf.add,
            "assign_sub": tf.subtract,
        }
        try:
            for optimizer in optimizers:
                for name, combine in ways.items():
                    setattr(optimizer, name, self._write(getattr(optimizer, name), combine))
            yield
        finally:
            for optimizer in optimizers:
                for name in ways:
                    optimizer.__dict__.pop(name, None)

    def unsettled(self) -> list[Destination]:
        """Return the destinations whose last write was not fused."""
        return [
            target
            for key, target in self._targets.items()
            if self._seen[key] is self._untouched[key] or self._touches(target.variable) != self._seen[key]
        ]

    def _write(self, original: Callable[[Any, Any], None], combine: Callable[[Any, Any], Any]) -> Any:
        def write(variable: keras.Variable, value: object) -> None:
            inside = tf_variable(variable)
            target = self._targets.get(id(inside))
            here = tf.compat.v1.get_default_graph() is self._graph
            if target is None or not here or isinstance(value, tf.IndexedSlices):
                original(variable, value)
                return
            write_selected(target, combine(inside, tf.cast(value, inside.dtype)))
            self._seen[id(inside)] = self._touches(inside)

        return write

    def _touches(self, variable: keras.Variable) -> frozenset[Any]:
        """Return the operations of this graph that may have changed `variable`."""
        handle = self._graph.capture(variable.handle)
        return frozenset(operation.name for operation in handle.consumers() if operation.type not in _READS)
