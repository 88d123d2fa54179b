"""`regrow` frees the locked units with the largest gradients of the loss."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fpgaprune.errors import MaskError
from fpgaprune.network import Weight, weights_of
from fpgaprune.processes import OnStep
from fpgaprune.select.choose import select
from fpgaprune.select.closure import following_paths
from fpgaprune.select.data_criteria import mean_gradient_size
from fpgaprune.select.protection import Protection
from fpgaprune.select.units import Granularity, NofM, parse_granularity
from fpgaprune.values import MaskSet, by_weight_path, named_weights

if TYPE_CHECKING:
    import keras

_NO_REGROWTH = "an n:m pattern always keeps n of m; regrow in another granularity"


def regrow(
    masks: MaskSet,
    fraction: float,
    model: keras.Model = None,
    data: object = None,
    granularity: str | Granularity = "kernel",
    *,
    base: MaskSet | None = None,
    gradients: Mapping[str, Any] | None = None,
    batch_size: int = 32,
    progress: OnStep | None = None,
) -> MaskSet:
    """Free `round(fraction * locked)` of the locked units: those with the largest mean gradient.

    A freed element starts at the value at which it was locked. Only units whose elements are all locked are counted and
    freed; of equal units the first.

    Source: Evci, Gale, Menick, Castro, Elsen, "Rigging the Lottery: Making All Tickets Winners", 2020, section 3
    (RigL); there the fraction is of the free weights, and it falls with time.

    Args:
        masks: True = free, False = locked.
        fraction: fraction of the locked units to free, 0..1.
        model: a compiled Keras model, whose weights hold the locks' values.
        data: samples `(x, y)`, or an iterable of batches, for the gradient.
        granularity: as in `select`, but not `n:m`.
        base: elements that stay locked.
        gradients: weight path to an array of gradients, in place of `data`.
        batch_size: samples in a batch of arrays.
        progress: called with `(done, total, note)` after each batch.

    Raises:
        MaskError: the fraction, the granularity or the masks do not fit, or data are missing.
    """
    if not 0 <= fraction <= 1:
        raise MaskError(f"fraction is {fraction}; wanted 0 to 1")
    cut = parse_granularity(granularity)
    if isinstance(cut, NofM):
        raise MaskError(_NO_REGROWTH)
    if model is not None:
        masks = masks.fitted(model)
        base = None if base is None else base.fitted(model)
        gradients = None if gradients is None else by_weight_path(gradients, named_weights(model))
    if gradients is None:
        if data is None:
            raise MaskError("regrowth needs samples for the gradient; give data=(x, y)")
        gradients = mean_gradient_size(model, list(masks), data, batch_size, progress)
    known = weights_of(model) if model is not None else {}
    partitions, sizes = {}, []
    for path, mask in masks.items():
        axes = known.get(path, Weight(path, None, mask.ndim)).axes
        partition = partitions[path] = cut.partition(path, mask.shape, axes)
        candidates = partition.all(~mask)
        if base is not None and path in base:
            candidates &= partition.all(base[path])
        sizes.append(np.where(candidates, partition.mean(np.abs(gradients[path])), -np.inf))
    scores = np.concatenate(sizes) if sizes else np.empty(0)
    wanted = round(fraction * int(np.isfinite(scores).sum()))
    freed = np.zeros(len(scores), dtype=bool)
    freed[np.argsort(-scores, kind="stable")[:wanted]] = True
    of_each = zip(partitions.items(), np.split(freed, np.cumsum([len(size) for size in sizes])), strict=False)
    return MaskSet({path: masks[path] | partition.spread(flags) for (path, partition), flags in of_each})


def check_regrowth(fraction: float, options: Mapping[str, Any]) -> None:
    """Require that `advance` can use the fraction with these options.

    Raises:
        MaskError: it is not a fraction, or there are no data for the gradient.
    """
    if not 0 <= fraction < 1:
        raise MaskError(f"regrow_fraction is {fraction}; wanted 0 or more and below 1")
    if fraction and isinstance(parse_granularity(options.get("granularity", "kernel")), NofM):
        raise MaskError(_NO_REGROWTH)
    if fraction and options.get("data") is None:
        raise MaskError("regrowth needs samples for the gradient; give data=(x, y)")


def advance(
    model: keras.Model,
    sparsity: float,
    held: MaskSet | None,
    base: MaskSet | None,
    regrow_fraction: float,
    options: Mapping[str, Any],
) -> MaskSet:
    """Return the masks of the next round: `held` with some locks freed by gradient, and others locked up to `sparsity`.

    An n:m pattern keeps more than n of m until `sparsity` is its own.

    Freed elements stay free in this round, because their scores are zero and would lock them again.

    Args:
        model: a Keras model whose weights hold the locks of `held`.
        sparsity: fraction of units to lock.
        held: the masks of the last round.
        base: masks whose locks are never freed.
        regrow_fraction: share of the units that `held` locks and this round frees.
        options: options of `select`, except `sparsity` and `base`.

    Raises:
        MaskError: as in `select` and `regrow`.
    """
    held, base = (None if masks is None else masks.fitted(model) for masks in (held, base))
    granularity = parse_granularity(options.get("granularity", "kernel"))
    if isinstance(granularity, NofM):
        return select(model, base=held, **{**options, "granularity": granularity.on_the_way(sparsity)})
    if held is None or not regrow_fraction:
        return select(model, sparsity, base=held, **options)
    # Depthwise kernels that followed their channels become free with their channels.
    followed = [] if options.get("paths") else following_paths(model)
    held = MaskSet({path: mask for path, mask in held.items() if path not in followed})
    left = regrow(
        held,
        regrow_fraction,
        model,
        options["data"],
        options.get("granularity", "kernel"),
        base=base,
        batch_size=options.get("batch_size", 32),
        progress=options.get("progress"),
    )
    freed = MaskSet({path: mask & ~held[path] for path, mask in left.items()})
    given = options.get("protect", ())
    if base is not None:
        left = left & MaskSet({path: base[path] for path in followed if path in base})
    protection = given if isinstance(given, Protection) else Protection(tuple(given))
    return select(model, sparsity, base=left, **{**options, "protect": replace(protection, free=freed)})
