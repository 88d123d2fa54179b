"""`narrowed`: a network without the channels that its locks end, and the way back to the whole one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fpgaprune.errors import MaskError
from fpgaprune.remove import RemovalPlan, apply_removal, plan_removal
from fpgaprune.values import Array, MaskSet, named_weights, weight_arrays

if TYPE_CHECKING:
    import keras


@dataclass(frozen=True)
class Narrowed:
    """A network without the channels that its locks end: it computes the same, and trains in less time.

    Attributes:
        small: the narrow network; it is not compiled.
        masks: masks of the whole network, True = free.
        plan: what left.
        arrays: weight path to value, of the whole network, with zeros where it is locked.
    """

    small: Any
    masks: MaskSet
    plan: RemovalPlan
    arrays: dict[str, Array]

    @property
    def small_masks(self) -> MaskSet:
        """The masks of the narrow network."""
        return self.plan.remap(self.masks)

    def whole_masks(self, small: MaskSet) -> MaskSet:
        """Return the masks `small` of the narrow network, for the whole one. What left keeps the locks that it had."""
        free = {path: np.ones(self.arrays[path].shape, dtype=bool) for path in small}
        return MaskSet(self.plan.spread(small, {**free, **self.masks}))

    def take_back(self, trained: object, model: keras.Model) -> None:
        """Copy the weights of the narrow network `trained` into the whole `model`; what left keeps its own."""
        variables = named_weights(model)
        for path, array in self.plan.spread(weight_arrays(trained), self.arrays).items():
            variables[path].assign(array)


def narrowed(model: keras.Model, masks: MaskSet) -> Narrowed:
    """Copy `model` with the locks of `masks` at zero and without the channels that die of them.

    Raises:
        MaskError: a locked filter hands on a constant other than zero, so that there is no way back.
    """
    masks = masks.fitted(model)
    with locked_at_zero(model, masks):
        plan = plan_removal(model)
        if not plan.only_drops:
            taker = next(iter((*plan.deltas, *plan.made, *plan.collapsed)))
            raise MaskError(
                f"filters of {model.name!r} that are locked hand on a constant other than 0, which goes into "
                f"{taker!r}; leave 'filters' out and lock them with granularity = \"filter\""
            )
        small, arrays = apply_removal(model, plan), weight_arrays(model)
    return Narrowed(small, masks, plan, arrays)


def folded_under(model: keras.Model, masks: MaskSet) -> tuple[Any, MaskSet]:
    """Set the locks of `masks` to zero, fold each BatchNorm into the layer before it, and return model and masks.

    Raises:
        UnsupportedLayerError: a layer cannot be rounded.
    """
    from fpgaprune.lowering import carry_masks, require_roundable

    masks = masks.fitted(model)
    with locked_at_zero(model, masks):
        folded = require_roundable(model)
    return folded, carry_masks(model, folded, masks)


@contextmanager
def locked_at_zero(model: keras.Model, masks: MaskSet) -> Iterator[None]:
    """Set all elements of `model` that `masks` lock to zero within the block; afterwards it has its weights again."""
    variables = named_weights(model)
    before = {path: variables[path].numpy() for path in masks}
    try:
        for path, array in before.items():
            variables[path].assign(np.where(masks[path], array, np.zeros_like(array)))
        yield
    finally:
        for path, array in before.items():
            variables[path].assign(array)
