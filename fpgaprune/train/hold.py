"""Restores the bits of locked elements of weights and of their slots after any update.

Only `Select` moves bits. A product with the mask, or an update by zero, is not exact: -1 * 0 is -0.0,
NaN * 0 is NaN, and TensorFlow's threads flush denormals in arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from fpgaprune.train.fused_writes import Destination, FusedWrites, write_selected
from fpgaprune.train.places import tf_variable

if TYPE_CHECKING:
    import keras


@dataclass(frozen=True)
class Hold:
    """A weight whose elements are held at `value` where `mask` is False.

    Attributes:
        path: weight path.
        variable: the weight.
        mask: bool Keras variable of its shape, True = free.
        value: Keras variable with the held values, or None if every locked element is zero.
        slots: the optimizer's state of this weight with one number for each element.
    """

    path: str
    variable: Any
    mask: Any
    value: Any | None
    slots: tuple[Any, ...]


@contextmanager
def held(holds: Sequence[Hold], optimizers: Sequence[object], strategy: object) -> Iterator[None]:
    """Restore the locked elements after the block: weights to their held values, slots to their bits from before.

    Args:
        holds: the held weights.
        optimizers: optimizers that write in the block and compute each element from that element alone. Their
            writes are fused with the restoration, which then takes one pass over each array and no copy.
        strategy: the distribution strategy of the variables.
    """
    if not optimizers or tf.executing_eagerly() or tf.distribute.has_strategy():
        before = [[tf.convert_to_tensor(slot.value) for slot in hold.slots] for hold in holds]
        yield
        _merge(strategy, holds, before)
        return
    writes = FusedWrites([target for hold in holds for target in _targets(hold)])
    with writes.of(optimizers):
        yield
    for target in writes.unsettled():
        write_selected(target, target.variable)


def _targets(hold: Hold) -> Iterator[Destination]:
    mask = tf.convert_to_tensor(hold.mask.value)
    value = None if hold.value is None else tf.convert_to_tensor(hold.value.value)
    yield Destination(tf_variable(hold.variable), mask, value)
    for slot in hold.slots:
        variable = tf_variable(slot)
        yield Destination(variable, mask, tf.convert_to_tensor(variable))


def _merge(strategy: object, holds: Sequence[Hold], before: list[list[Any]]) -> None:
    if tf.distribute.in_cross_replica_context():
        _restore(strategy, holds, before)
    else:
        tf.__internal__.distribute.interim.maybe_merge_call(
            lambda distribution, kept: _restore(distribution, holds, kept), strategy, before
        )


def _restore(strategy: Any, holds: Sequence[Hold], before: list[list[Any]]) -> None:
    def update(variable: keras.Variable, mask: object, locked: object = None) -> None:
        write_selected(Destination(variable, mask, locked), variable)

    for hold, kept in zip(holds, before, strict=True):
        mask = hold.mask.value
        args = (mask,) if hold.value is None else (mask, hold.value.value)
        strategy.extended.update(tf_variable(hold.variable), update, args=args, group=False)
        for slot, old in zip(hold.slots, kept, strict=True):
            strategy.extended.update(slot.value, update, args=(mask, old), group=False)
