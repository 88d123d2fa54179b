"""`prune_rounds` locks, fine-tunes and locks more; between rounds it can set weights back to an earlier state."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from fpgaprune.errors import MaskError
from fpgaprune.select.regrowth import advance, check_regrowth
from fpgaprune.values import Array, MaskSet, NamedWeights, by_weight_path, named_weights, weight_arrays

if TYPE_CHECKING:
    import keras

Weights = NamedWeights[Array]


def snapshot(model: keras.Model) -> Weights:
    """Copy every weight of `model`, by weight path, for `rewind`."""
    return weight_arrays(model)


def rewind(model: keras.Model, weights: Mapping[str, Array], masks: MaskSet) -> None:
    """Set free elements of `model` to `weights` and locked ones to zero; the optimizer keeps its state.

    Source: Frankle, Dziugaite, Roy, Carbin, "Linear Mode Connectivity and the Lottery Ticket Hypothesis", 2020,
    section 4 (weights set back to an early step of training).

    Raises:
        MaskError: a weight is unknown or has another shape.
    """
    variables = named_weights(model)
    weights, masks = by_weight_path(weights, variables), masks.fitted(model)
    for path, array in weights.items():
        if path not in variables or tuple(variables[path].shape) != array.shape:
            got = f"the weight has {tuple(variables[path].shape)}" if path in variables else "there is no such weight"
            raise MaskError(f"weights to rewind to have {path!r} of shape {array.shape}; {got}")
    for path, array in weights.items():
        mask = masks.get(path)
        variables[path].assign(array if mask is None else np.where(mask, array, np.zeros_like(array)))


def prune_rounds(
    model: keras.Model,
    sparsities: Sequence[float],
    finetune: Callable[[Any, MaskSet], Any],
    *,
    base: MaskSet | None = None,
    rewind_to: Mapping[str, Array] | None = None,
    regrow_fraction: float = 0.0,
    after_round: Callable[[int, MaskSet], None] | None = None,
    within: tuple[int, MaskSet] | None = None,
    **options: object,
) -> MaskSet:
    """Fine-tune `model` at each sparsity in turn; return the masks of the last round.

    Elements that a round locks stay locked, except those that `regrow_fraction` frees.

    Args:
        model: a Keras model.
        sparsities: the sparsity of each round; none is below the one before.
        finetune: trains the model under masks, as `lambda model, masks: fp.finetune(model, masks, x, y)`.
        base: elements that are locked in every round.
        rewind_to: weights (`snapshot`) to which free elements are set before each fine-tuning.
        regrow_fraction: share of the locked units that is freed before each round, those with the largest gradients;
            as many others are locked for them. Needs `data` among the options.
        after_round: called with the number of the round, from 0, and its masks.
        within: number and masks of the round in which a pruning was stopped; it continues with the fine-tuning of this
            round.
        **options: options of `select`, except `sparsity` and `base`.

    Raises:
        MaskError: there are no rounds, they fall, or a round's sparsity cannot be reached.
    """
    if not sparsities or any(later < earlier for earlier, later in pairwise(sparsities)):
        raise MaskError(f"sparsities of the rounds are {list(sparsities)}; wanted at least one, and none that falls")
    check_regrowth(regrow_fraction, options)
    held = base
    masks = MaskSet({})
    for number, sparsity in enumerate(sparsities):
        if within is not None and number < within[0]:
            continue
        if within is not None and number == within[0]:
            masks = within[1]
        else:
            masks = advance(model, sparsity, held, base, regrow_fraction, options)
            if rewind_to is not None:
                rewind(model, rewind_to, masks)
        finetune(model, masks)
        held = masks
        if after_round is not None:
            after_round(number, masks)
    return masks
