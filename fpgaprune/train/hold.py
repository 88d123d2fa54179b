"""Locked elements of one weight and of its slots, put back to their bits around any update."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import tensorflow as tf


@dataclass(frozen=True)
class Hold:
    """A weight whose elements are held at `value` where `mask` is False.

    Attributes:
        path: weight path.
        variable: the weight, a Keras variable.
        mask: bool Keras variable of its shape, True = free.
        value: Keras variable with the held values, or None where every locked element is zero.
        slots: the optimizer's per-element state of this weight.
    """

    path: str
    variable: Any
    mask: Any
    value: Any | None
    slots: tuple[Any, ...]


@contextmanager
def held(holds: Sequence[Hold], strategy: Any) -> Iterator[None]:
    """After the block, locked elements of weights are at their held values and those of slots as before it.

    `where` only moves bits, so it is exact for -0.0, denormals and for NaN in what is thrown away; a product
    with the mask, or an update by zero, is not (-1 * 0 is -0.0, NaN * 0 is NaN, and TensorFlow's threads flush
    denormals in arithmetic).
    """
    before = [[tf.convert_to_tensor(slot.value) for slot in hold.slots] for hold in holds]
    yield
    _merge(_restore, strategy, holds, before)


def _merge(function: Any, strategy: Any, holds: Sequence[Hold], before: list[list[Any]]) -> None:
    if tf.distribute.in_cross_replica_context():
        function(strategy, holds, before)
    else:
        tf.__internal__.distribute.interim.maybe_merge_call(
            lambda distribution, kept: function(distribution, holds, kept), strategy, before
        )


def _restore(strategy: Any, holds: Sequence[Hold], before: list[list[Any]]) -> None:
    for hold, kept in zip(holds, before, strict=True):
        mask = hold.mask.value
        value = None if hold.value is None else hold.value.value
        _update(strategy, hold.variable.value, mask, value)
        for slot, old in zip(hold.slots, kept, strict=True):
            _update(strategy, slot.value, mask, old)


def _update(strategy: Any, variable: Any, mask: Any, locked: Any | None) -> None:
    if locked is None:
        strategy.extended.update(variable, _select_or_zero, args=(mask,), group=False)
    else:
        strategy.extended.update(variable, _select, args=(mask, locked), group=False)


def _select(variable: Any, mask: Any, locked: Any) -> None:
    variable.assign(tf.where(mask, variable, locked))


def _select_or_zero(variable: Any, mask: Any) -> None:
    variable.assign(tf.where(mask, variable, tf.zeros_like(variable)))
