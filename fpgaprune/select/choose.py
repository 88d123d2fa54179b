"""`select` locks the units with the lowest scores until the sparsity is reached."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fpgaprune.errors import MaskError, fraction_meant
from fpgaprune.network import coupled_outputs, require_in_use, weights_of
from fpgaprune.processes import OnStep
from fpgaprune.select.allot import NORMALIZATIONS, Units, lock_lowest, merge_units
from fpgaprune.select.closure import follow
from fpgaprune.select.cost import Adders, parse_cost
from fpgaprune.select.criteria import CRITERIA, Criterion
from fpgaprune.select.data_criteria import Question
from fpgaprune.select.pools import chosen_paths, pool_of
from fpgaprune.select.protection import Protection
from fpgaprune.select.skeleton import skeleton
from fpgaprune.select.units import SINGLE, Granularity, Named, NofM, Partition, parse_granularity
from fpgaprune.values import Array, Mask, MaskSet, by_weight_path, match_paths, named_weights

if TYPE_CHECKING:
    import keras

SCOPES = ("network", "layer")
Scoring = Callable[[Any, Any], Mapping[str, Any]]
Sparsity = float | Mapping[str, float] | None


@dataclass(frozen=True)
class _Choice:
    """The checked options for all weights."""

    granularity: Granularity
    criterion: Criterion
    normalize: str
    cost: Adders | None
    protection: Protection


def select(
    model: keras.Model,
    sparsity: Sparsity = None,
    granularity: str | Granularity = "kernel",
    criterion: str | Scoring = "l1",
    scope: str = "network",
    paths: Sequence[str] = (),
    base: MaskSet | None = None,
    *,
    data: object = None,
    batch_size: int = 32,
    seed: int = 0,
    normalize: str = "lamp",
    cost: str | Adders | None = None,
    protect: Protection | Sequence[str] = (),
    progress: OnStep | None = None,
    again: bool = False,
) -> MaskSet:
    """Select the least important units up to `sparsity`; return masks that lock them and what `base` locks.

    Of the kernels of convolutions `round(sparsity * kernels)` are locked, and separately the same share of the weights
    of Dense and recurrent layers; with granularity `weight`, of all weights together. Units that `base` locks count.
    Equal scores are locked in the order of their index, so the same scores give the same masks. The score of a unit is
    a mean, so that kernels of different sizes can be compared. At least an eighth of each layer's channels stays alive,
    and one unit of each weight stays free.

    Args:
        model: a Keras model; its weights are only read.
        sparsity: fraction of units to lock, 0..1; or globs of weight paths to fractions, of which the first match
            counts, and which replace `paths`. None only if the granularity has its own sparsity (`2:4`).
        granularity: `weight`, `kernel` (one `W[..., i, o]`), `filter` (one `W[..., o]`), `input_channel`,
            `n:m` as in `2:4` or `6:all`, a `Block` or a `Multiplier`.
        criterion: one of `CRITERIA`, or a function `scores(model, data)` that gives each weight path an array
            which broadcasts to the weight; the lowest scores are locked first.
        scope: `network` for one threshold over all weights (or over all that a glob of `sparsity` matches), separately
            for convolutions and for the others unless the granularity is `weight`; `layer` for the same sparsity in
            each layer, or less if more must stay free. Layers with coupled filters count as one.
        paths: globs of weight paths. The default is the kernels of convolutions, and of Dense and recurrent layers
            if these do a quarter of the multiplications (`fpgaprune.select.pools.default_paths`). With the default,
            the depthwise kernels of dead or unread channels are locked too.
        base: elements that are locked whatever their score.
        data: samples, for a criterion that needs them: `(x, y)` or an iterable of batches.
        batch_size: samples in a batch of arrays.
        seed: seed of the criterion `random`.
        cost: the divisor of the score of a unit: an `Adders`, or the text `adders(6)` for the adders of weights of 6
            bits; None or `none` for no division.
        normalize: how the scores of each weight are then made comparable across weights: `lamp`, `mean`, `max`, `l2` or
            `none` (`fpgaprune.select.allot`).
        protect: a `Protection`, or globs of weight paths that stay as they are.
        progress: called with `(done, total, note)` after each batch of data.
        again: whether `model` computes as it did when these weights were last selected from. It is not traced then to
            see that it computes with them.

    Raises:
        DataError: the data have a wrong form.
        MaskError: an option is not allowed, data are missing, no weight fits, a weight or a score is NaN, the
            sparsity cannot be reached (the message names the largest that can), or a layer computes with something else
            than its weight, as after `enable_lora` or Keras's `quantize`.

    Examples:
        >>> masks = fp.select(model, {"conv1/kernel": 0.5})
        >>> masks
        MaskSet: 1 weights, 18 of 36 elements locked
        weight                shape  locked  of
        conv1/kernel  3 × 3 × 1 × 4      18  36
    """
    protection = protect if isinstance(protect, Protection) else Protection(_strings(protect, "protect"))
    choice = _Choice(
        parse_granularity(granularity), _criterion(criterion, data), normalize, parse_cost(cost), protection
    )
    for name, value, allowed in (("scope", scope, SCOPES), ("normalize", normalize, tuple(NORMALIZATIONS))):
        if value not in allowed:
            raise MaskError(f"{name} {value!r} is unknown; wanted one of {', '.join(allowed)}")
    variables = named_weights(model)
    base = None if base is None else base.fitted(model)
    shares = _shares(model, sparsity, choice.granularity, variables, _strings(paths, "paths"))
    if not again:
        require_in_use(model, {path: _one_locked(variables[path].shape) for path in shares}, MaskError, stays=True)
    question = _question(model, variables, shares, data, batch_size, seed, progress)
    scores = _scores(choice.criterion, question, criterion)
    protected = protection.paths(variables)
    if isinstance(choice.granularity, NofM):
        masks = _lock_pattern(choice.granularity, choice.cost, question, scores, base, protected)
    else:
        masks = _lock_units(choice, question, scores, base, protected, shares, scope)
    selected = MaskSet(masks)
    selected = selected & base if base is not None else selected
    if paths or isinstance(sparsity, Mapping):
        return selected
    followed = follow(model, selected)
    return selected & MaskSet({path: mask for path, mask in followed.items() if path not in protected})


def _one_locked(shape: Sequence[int]) -> Mask:
    mask = np.ones(shape, dtype=bool)
    mask.flat[:1] = False
    return mask


def _strings(values: Sequence[str], name: str) -> tuple[str, ...]:
    if isinstance(values, str):
        raise MaskError(f"{name} is the string {values!r}; wanted a sequence of patterns, as [{values!r}]")
    return tuple(values)


def _criterion(criterion: str | Scoring, data: object) -> Criterion:
    if callable(criterion):
        return Criterion(lambda question: {p: np.asarray(s) for p, s in criterion(question.model, data).items()})
    if criterion not in CRITERIA:
        raise MaskError(f"criterion {criterion!r} is unknown; wanted one of {', '.join(CRITERIA)}, or a function")
    if CRITERIA[criterion].needs_data and data is None:
        raise MaskError(f"criterion {criterion!r} needs samples; give data=(x, y)")
    return CRITERIA[criterion]


def _shares(
    model: keras.Model,
    sparsity: Sparsity,
    granularity: Granularity,
    variables: Mapping[str, object],
    paths: Sequence[str],
) -> dict[str, tuple[str, float]]:
    """Map each chosen weight path to its group (the glob that chose it, and its pool) and its sparsity."""
    chosen: dict[str, tuple[str, float]] = {}
    if isinstance(sparsity, Mapping):
        if paths:
            raise MaskError("sparsity is given by pattern, which already names the weights; leave 'paths' out")
        for pattern, share in sparsity.items():
            for path in match_paths(pattern, variables):
                chosen.setdefault(path, (pattern, _fraction(share, granularity)))
        if not chosen:
            raise MaskError("sparsity is given by pattern, but there is no pattern; wanted at least one")
    else:
        share = _fraction(sparsity, granularity)
        chosen = dict.fromkeys(chosen_paths(model, paths, variables), ("", share))
    if granularity == SINGLE:
        return chosen
    known = weights_of(model)
    return {path: (f"{pattern} {pool_of(known[path])}", share) for path, (pattern, share) in chosen.items()}


def _fraction(sparsity: Any, granularity: Granularity) -> float:
    if isinstance(granularity, NofM):
        if sparsity is not None and abs(sparsity - granularity.sparsity) > 1e-9:
            raise MaskError(f"sparsity is {sparsity}; granularity '{granularity}' decides it: leave sparsity out")
        return granularity.sparsity
    if isinstance(sparsity, bool) or not isinstance(sparsity, int | float | np.number) or not 0 <= sparsity <= 1:
        raise MaskError(f"sparsity is {sparsity}; wanted a fraction from 0 to 1{fraction_meant(sparsity)}")
    return float(sparsity)


def _question(
    model: keras.Model,
    variables: Mapping[str, Any],
    chosen: Iterable[str],
    data: Any,
    batch_size: int,
    seed: int,
    progress: OnStep | None,
) -> Question:
    weights = {path: np.asarray(variables[path].numpy()) for path in chosen}
    for path, array in weights.items():
        if not np.isfinite(array).all():
            raise MaskError(f"weight {path!r} holds NaN or infinity; no score orders it: retrain the model")
    known = weights_of(model)
    axes = {path: known[path].axes for path in weights}
    return Question(model, weights, axes, data, batch_size, seed, progress)


def _scores(criterion: Criterion, question: Question, asked: object) -> dict[str, Array]:
    name = asked if isinstance(asked, str) else getattr(asked, "__name__", "given")
    answer = by_weight_path(criterion.scores(question), named_weights(question.model))
    scores = {}
    for path, weight in question.weights.items():
        if path not in answer:
            raise MaskError(f"criterion {name!r} gives no scores for {path!r}; wanted an array for each weight")
        array = np.asarray(answer[path])
        if array.dtype.name == "bfloat16":  # no number to NumPy
            array = array.astype(np.float32)
        try:
            fits = np.broadcast_shapes(array.shape, weight.shape) == weight.shape
        except ValueError:
            fits = False
        if not fits or array.dtype.kind not in "fiub":
            raise MaskError(
                f"criterion {name!r} gives {path!r} scores of shape {array.shape} and dtype {array.dtype}; "
                f"wanted numbers that broadcast to {weight.shape}"
            )
        if not np.isfinite(array).all():
            raise MaskError(f"criterion {name!r} gives {path!r} scores with NaN or infinity; wanted finite numbers")
        scores[path] = array
    return scores


def _lock_pattern(
    pattern: NofM,
    cost: Adders | None,
    question: Question,
    scores: Mapping[str, Array],
    base: MaskSet | None,
    protected: frozenset[str],
) -> dict[str, Mask]:
    masks = {}
    for path, weight in question.weights.items():
        pattern.partition(path, weight.shape, question.axes[path])  # refuses weights without channels
        if path in protected:
            masks[path] = np.ones(weight.shape, dtype=bool)
            continue
        values = np.broadcast_to(scores[path], weight.shape).astype(np.float64)
        if cost is not None:
            single = Named("weight").partition(path, weight.shape, question.axes[path])
            values = cost.divided(values.ravel(), path, weight, single).reshape(weight.shape)
        if base is not None and path in base:
            values = np.where(base[path], values, -np.inf)
        masks[path] = pattern.lock(values, question.axes[path])
    return masks


def _lock_units(
    choice: _Choice,
    question: Question,
    scores: Mapping[str, Array],
    base: MaskSet | None,
    protected: frozenset[str],
    shares: Mapping[str, tuple[str, float]],
    scope: str,
) -> dict[str, Mask]:
    partitions: dict[str, Partition] = {}
    pooled: dict[str, NDArray[np.float64]] = {}
    already: dict[str, NDArray[np.bool_]] = {}
    for path, weight in question.weights.items():
        partition = choice.granularity.partition(path, weight.shape, question.axes[path])
        pool = partition.mean if choice.criterion.pool == "mean" else partition.first
        partitions[path] = partition
        pooled[path] = pool(scores[path])
        if choice.cost is not None:
            pooled[path] = choice.cost.divided(pooled[path], path, weight, partition)
        pooled[path] = NORMALIZATIONS[choice.normalize](pooled[path])
        known = base is not None and path in base
        already[path] = partition.all(~base[path]) if known and base is not None else np.zeros(partition.count, bool)
    coupled: Mapping[str, NDArray[np.intp]] = {}
    if choice.granularity == Named("filter") and choice.protection.coupled:
        coupled = coupled_outputs(question.model, question.weights)
    units = merge_units(pooled, already, coupled, average=choice.criterion.pool == "mean")
    _keep(choice.protection, question, partitions, units, protected)
    lock_lowest(units, shares, per_layer=scope == "layer")
    return {path: partition.spread(~units.locked[units.numbers[path]]) for path, partition in partitions.items()}


def _keep(
    protection: Protection,
    question: Question,
    partitions: Mapping[str, Partition],
    units: Units,
    protected: frozenset[str],
) -> None:
    """Mark the units that must stay free as kept."""
    scores = {path: units.scores[units.numbers[path]] for path in partitions}
    locked = {path: units.locked[units.numbers[path]] for path in partitions}
    free = {path: protection.freed(path, partition) for path, partition in partitions.items()}
    # Units that stay free in any case are the first choice to keep channels alive, so that few others are needed.
    first = {path: own + free[path] * (2 * np.abs(own).max(initial=0.0) + 1) for path, own in scores.items()}
    alive = skeleton(question.model, partitions, question.axes, first, locked, protection.min_free_channels)
    for path in partitions:
        mine = units.numbers[path]
        if path in protected:
            units.kept[mine] = True
            continue
        sure = (alive[path] | free[path]) & ~locked[path]
        units.kept[mine] |= protection.kept(scores[path], locked[path], sure)
