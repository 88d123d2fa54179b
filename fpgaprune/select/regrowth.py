"""`regrow` frees the locked units with the largest gradients of the loss."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from fpgaprune.errors import MaskError
from fpgaprune.masks import MaskSet
from fpgaprune.network import Weight, weights_of
from fpgaprune.select.batches import Progress
from fpgaprune.select.choose import select
from fpgaprune.select.data_criteria import mean_gradient_size
from fpgaprune.select.following import following_paths
from fpgaprune.select.granularity import parse_granularity
from fpgaprune.select.protection import Protection
from fpgaprune.select.units import Granularity, NofM
from fpgaprune.weights import by_weight_path, named_weights


def regrow(
    masks: MaskSet,
    fraction: float,
    model: Any = None,
    data: Any = None,
    granularity: str | Granularity = "kernel",
    *,
    base: MaskSet | None = None,
    gradients: Mapping[str, Any] | None = None,
    batch_size: int = 32,
    progress: Progress | None = None,
) -> MaskSet:
    """The masks with `round(fraction * locked)` of the locked units freed: those of the largest mean gradient.

    A freed element starts at the value that it was locked at. Only units that are locked whole are counted and
    freed; of equal ones the first.

    Source: Evci, Gale, Menick, Castro, Elsen, "Rigging the Lottery: Making All Tickets Winners", 2020, section 3
    (RigL); there the fraction is of the free weights, and it falls with time.

    Args:
        masks: True = free, False = locked.
        fraction: of the locked units, 0..1.
        model: a compiled Keras model, whose weights hold the locks' values.
        data: samples `(x, y)`, or an iterable of batches, for the gradient.
        granularity: as in `select`, but not `n:m`.
        base: elements that stay locked.
        gradients: weight path to an array of gradients, in the place of `data`.
        batch_size: samples in a batch of arrays.
        progress: told `(done, total, note)` after each batch.

    Raises:
        MaskError: the fraction, the granularity or the masks do not fit, or data are missing.
    """
    if not 0 <= fraction <= 1:
        raise MaskError(f"fraction is {fraction}; wanted 0 to 1")
    cut = parse_granularity(granularity)
    if isinstance(cut, NofM):
        raise MaskError("an n:m pattern keeps n of m at all times; regrow in another granularity")
    if model is not None:
        masks = masks.fitted(model)
        base = None if base is None else base.fitted(model)
        gradients = None if gradients is None else by_weight_path(gradients, named_weights(model))
    if gradients is None:
        if data is None:
            raise MaskError("regrowth needs samples for the gradient; give data=(x, y)")
        gradients = mean_gradient_size(model, list(masks), data, batch_size, progress)
    known = weights_of(model) if model is not None else {}
    labels, sizes, starts = {}, [], {}
    count = 0
    for path, mask in masks.items():
        axes = known.get(path, Weight(path, None, mask.ndim)).axes
        partition = cut.partition(path, mask.shape, axes)
        candidates = partition.all(~mask)
        if base is not None and path in base:
            candidates &= partition.all(base[path])
        sizes.append(np.where(candidates, partition.mean(np.abs(gradients[path])), -np.inf))
        labels[path], starts[path] = partition, count
        count += partition.count
    scores = np.concatenate(sizes) if sizes else np.empty(0)
    wanted = round(fraction * int(np.isfinite(scores).sum()))
    freed = np.zeros(count, dtype=bool)
    freed[np.argsort(-scores, kind="stable")[:wanted]] = True
    return MaskSet(
        {
            path: masks[path] | partition.spread(freed[starts[path] : starts[path] + partition.count])
            for path, partition in labels.items()
        }
    )


def check_regrowth(fraction: float, options: Mapping[str, Any]) -> None:
    """Refuses a fraction that `advance` cannot use with these options.

    Raises:
        MaskError: it is no fraction, or there are no data for the gradient.
    """
    if not 0 <= fraction < 1:
        raise MaskError(f"regrow_fraction is {fraction}; wanted 0 or more and below 1")
    if fraction and options.get("data") is None:
        raise MaskError("regrowth needs samples for the gradient; give data=(x, y)")


def advance(
    model: Any,
    sparsity: float,
    held: MaskSet | None,
    base: MaskSet | None,
    regrow_fraction: float,
    options: Mapping[str, Any],
) -> MaskSet:
    """The masks of the next round: `held` with some of its locks freed by gradient, others locked up to `sparsity`.

    What is freed stays free in this round, or its score of zero would lock it again at once.

    Args:
        model: a Keras model whose weights hold the locks of `held`.
        sparsity: of units, after the round.
        held: what was locked before.
        base: what is never freed.
        regrow_fraction: of the units that `held` locks.
        options: of `select`, but `sparsity` and `base`.

    Raises:
        MaskError: as in `select` and `regrow`.
    """
    held, base = (None if masks is None else masks.fitted(model) for masks in (held, base))
    if held is None or not regrow_fraction:
        return select(model, sparsity, base=held, **options)
    # Depthwise kernels that followed their channels are free again where the channels are.
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
