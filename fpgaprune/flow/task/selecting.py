"""Masks from a `[select]` section, and the sensitivity of a saved model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from fpgaprune.errors import ConfigError, MaskError
from fpgaprune.flow.file import (
    MULTIPLIER,
    Flow,
    SelectConfig,
    TargetConfig,
    TrainConfig,
    in_keras,
    is_function_name,
    named_function,
)
from fpgaprune.flow.task.data import Dataset, load_data
from fpgaprune.flow.task.data_layout import in_keras_layout
from fpgaprune.flow.task.samples import Samples, at, count_of, for_keras, predict
from fpgaprune.flow.task.saved_models import load_saved_model
from fpgaprune.processes import OnStep
from fpgaprune.select import CRITERIA, GRANULARITIES
from fpgaprune.target import Target
from fpgaprune.values import MaskSet

if TYPE_CHECKING:
    import keras

    from fpgaprune.flow.task.metric import Judge
    from fpgaprune.flow.task.task import Task

# Samples, labels and perhaps weights.
Data = tuple[Samples, ...]


def choose_masks(
    model: keras.Model,
    settings: SelectConfig,
    data: Data | None,
    seed: int,
    on_step: OnStep | None = None,
    target: Target | None = None,
    task: Task | None = None,
) -> tuple[MaskSet, list[dict[str, Any]]]:
    """Return the locks that `settings` describe for `model`, and a list of those that follow from other locks.

    A criterion that reads `data` (samples and labels) needs a compiled model, and with `filters` the `task` that
    compiles the narrow one. The criterion `random` needs the `seed`, the granularity `multiplier` the `target`.
    `on_step` is called with `(done, total, note)`.

    Raises:
        MaskError: a slice or a mask does not fit, or a sparsity cannot be reached.
    """
    from fpgaprune.flow.task.narrowing import narrowed
    from fpgaprune.select import select

    masks, additions = first_masks(model, settings, data, seed, on_step)
    narrow = narrowed(model, masks) if settings.filters else None
    if settings.share:
        options = score_options(settings, data, seed, target) | {"progress": on_step}
        if narrow is None:
            masks = select(model, settings.share, base=masks, **options)
        else:
            if task is not None:
                task.compile_for_scores(narrow.small)
            small = select(narrow.small, settings.share, base=narrow.small_masks, **options)
            masks = narrow.whole_masks(small)
    masks, more = close_masks(model, settings, masks)
    return masks, additions + more


def first_masks(
    model: keras.Model, settings: SelectConfig, data: Data | None, seed: int, on_step: OnStep | None = None
) -> tuple[MaskSet, list[dict[str, Any]]]:
    """Return the locks set before `sparsity` counts: named ones, whole filters, and what follows from filters.

    Raises:
        MaskError: as `choose_masks`.
    """
    from fpgaprune.select import close, select

    masks = explicit_masks(model, settings)
    if not settings.filters:
        return masks, []
    options = score_options(settings, data, seed) | {"granularity": "filter"}
    closed = close(select(model, settings.filters, base=masks, progress=on_step, **options), model, constants=True)
    return closed.masks, closed.to_json()


def check_units(model: keras.Model, settings: SelectConfig, target: Target | None) -> None:
    """Check that the weights of `model`, trained or not, divide into the units that `settings` ask for.

    Warns:
        ReuseWarning: the units are multipliers, and a layer gets another reuse factor than asked.

    Raises:
        MaskError: a weight has no such units.
    """
    from fpgaprune.select import select

    if settings.granularity in GRANULARITIES or not settings.share:
        return
    options = score_options(settings, None, 0, target) | {"criterion": "l1", "data": None}
    none = dict.fromkeys(settings.sparsity, 0.0) if isinstance(settings.sparsity, dict) else 0.0
    select(model, None if ":" in settings.granularity else none, **options)


def guard_masks(model: keras.Model, settings: SelectConfig, masks: MaskSet) -> list[dict[str, Any]]:
    """Return the warnings of `fpgaprune.select.guard` about `masks`, as JSON data; empty if there are none.

    Raises:
        MaskError: a mask does not fit the model.
    """
    from fpgaprune.select import guard

    asked = settings.sparsity if isinstance(settings.sparsity, float) and settings.sparsity else None
    return [
        warning.to_json()
        for warning in guard(model, masks, sparsity=asked, scope=settings.scope, normalize=settings.normalize)
    ]


def counts(masks: MaskSet) -> dict[str, Any]:
    """Return the number of locked elements and the digest of `masks`, as JSON data."""
    return {"locked": masks.locked_count, "elements": masks.size, "digest": masks.digest()}


def explicit_masks(model: keras.Model, settings: SelectConfig) -> MaskSet:
    """Return the locks of `settings` that do not depend on scores.

    Raises:
        MaskError: a slice or a mask does not fit the model.
    """
    from fpgaprune.select import from_fixed, from_zeros

    masks = MaskSet.from_slices(model, settings.locks)
    if settings.masks is not None:
        masks = masks & MaskSet.load(settings.masks).fitted(model)
    if settings.zeros:
        masks = masks & from_zeros(model)
    if settings.fixed:
        masks = masks & from_fixed(model, settings.fixed)
    return masks


def score_options(settings: SelectConfig, data: Data | None, seed: int, target: Target | None = None) -> dict[str, Any]:
    """Return the options of `fpgaprune.select.choose.select` from `settings`, without sparsity and base.

    Raises:
        ConfigError: the criterion is a function that cannot be imported.
        MaskError: the granularity is `multiplier` and there is no target.
    """
    from fpgaprune.select import Multiplier, Protection

    granularity: Any = settings.granularity
    if granularity == MULTIPLIER:
        if target is None:
            raise MaskError("granularity 'multiplier' needs a strategy; write 'multiplier(resource_unrolled, 9)'")
        granularity = Multiplier(target.strategy, target.reuse_factor, target.io_type)
    criterion: Any = settings.criterion
    reads_data = is_function_name(criterion) or CRITERIA[criterion].needs_data
    if is_function_name(criterion):
        criterion = named_function(criterion, "criterion", ConfigError)
    return {
        "granularity": granularity,
        "criterion": criterion,
        "scope": settings.scope,
        "paths": settings.paths,
        "data": criterion_data(settings, data) if data is not None and reads_data else None,
        "batch_size": settings.batch_size,
        "seed": seed,
        "normalize": settings.normalize,
        "cost": settings.cost,
        "protect": Protection(settings.protect, settings.min_free, min_free_channels=settings.min_free_channels),
    }


def criterion_data(settings: SelectConfig, data: Data) -> Any:
    """Return the first samples and labels in the form of `fpgaprune.select`: arrays, or batches for several inputs."""
    some = tuple(at(part, slice(settings.samples)) for part in data)
    if not any(isinstance(part, tuple) for part in some):
        return some
    starts = range(0, count_of(some[0]), settings.batch_size)
    rows = [slice(start, start + settings.batch_size) for start in starts]
    return [tuple(for_keras(at(part, index)) for part in some) for index in rows]


def close_masks(model: keras.Model, settings: SelectConfig, masks: MaskSet) -> tuple[MaskSet, list[dict[str, Any]]]:
    """Return `masks` with the locks that follow from them, if `settings` ask for these, and a list of those locks.

    Raises:
        UnsupportedLayerError: the model's graph cannot be read.
    """
    from fpgaprune.select import close

    rules = settings.close
    if rules is False:
        return masks, []
    named = {rule: rules is True or rule in rules for rule in ("bias", "batch_norm", "dead_inputs")}
    closed = close(masks, model, **named)
    return closed.masks, closed.to_json()


def select_masks(
    model_path: Path, settings: SelectConfig, source: str | None, seed: int, on_step: OnStep
) -> tuple[MaskSet, list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the results of `choose_masks` and `guard_masks` for a saved model; `source` names data as in a flow.

    Raises:
        ConfigError: the model cannot be read, or the criterion needs data and there are none.
        DataError: the data cannot be read.
        MaskError: as `choose_masks`.
    """
    if source is None and settings.criterion in CRITERIA and CRITERIA[settings.criterion].needs_data:
        raise ConfigError(f"criterion {settings.criterion!r} needs samples; name them with --data")
    score_options(settings, None, seed)
    data = in_keras_layout(load_data(source, on_step=on_step), model_path) if source is not None else None
    settings = in_keras(model_path, settings)
    model = load_saved_model(model_path)
    task = None if data is None else _compiled(TrainConfig(model=model_path), model, data)
    samples = None if data is None or task is None else task.training_data(data)
    masks, additions = choose_masks(model, settings, samples, seed, on_step, task=task)
    return masks, additions, guard_masks(model, settings, masks)


def _compiled(settings: TrainConfig, model: keras.Model, data: Dataset) -> Task:
    """Return the task of a saved `model`, which is compiled for criteria that read `data`."""
    from fpgaprune.flow.task.task import read_task

    task = read_task(settings, model, data)
    task.compile_for_scores(model)
    return task


def _judge(settings: TrainConfig, task: Task, model: keras.Model, data: Dataset) -> Judge:
    """Judge a saved `model`, which is compiled, by the held-out samples."""
    from fpgaprune.flow.task.metric import Judge

    return Judge(settings, task, model, data.y_test, data.sample_weight_test)


def measure_sensitivity(
    model_path: Path,
    source: str,
    folder: Path,
    settings: SelectConfig,
    sparsities: tuple[float, ...],
    seed: int,
    on_step: OnStep,
) -> tuple[Any, dict[str, Path]]:
    """Measure the metric of a saved model against the sparsity of each weight; write table, JSON and plot.

    `source` names the data as in a flow. An interrupted measurement continues from the results in `folder`.

    Raises:
        ConfigError: the model cannot be read.
        DataError: the data cannot be read, or do not fit the model.
        MaskError: an option is not allowed.
    """
    from fpgaprune.files import write_bytes
    from fpgaprune.select import sensitivity

    data = in_keras_layout(load_data(source, on_step=on_step), model_path)
    settings = in_keras(model_path, settings)
    model = load_saved_model(model_path)
    train = TrainConfig(model=model_path)
    task = _compiled(train, model, data)
    judge = _judge(train, task, model, data)
    options = score_options(settings, task.training_data(data), seed)
    for name in ("scope", "normalize"):  # they compare weights, and here each weight stands alone
        del options[name]
    files = {kind: folder / f"sensitivity.{kind}" for kind in ("json", "md", "svg")}
    found = sensitivity(
        model,
        lambda current: judge.value(predict(current, data.x_test)),
        sparsities,
        options.pop("paths"),
        base=explicit_masks(model, settings),
        results=files["json"],
        progress=on_step,
        measure=f"{judge.name} on {count_of(data.x_test):,} held-out samples",
        **options,
    )
    write_bytes(files["md"], found.to_markdown().encode())
    found.save_plot(files["svg"])
    return found, files


def network_before_finetuning(config: Flow, data: Dataset, model: keras.Model) -> Any:
    """Return `model` with the locks of `[select]` at zero and without the channels that they end.

    The weights of `model` are unchanged; it may be compiled anew.

    Raises:
        MaskError: the sparsity cannot be reached.
    """
    from fpgaprune.flow.task.narrowing import locked_at_zero
    from fpgaprune.flow.task.task import read_task
    from fpgaprune.remove import apply_removal, plan_removal

    settings, target = config[SelectConfig], config[TargetConfig].target()
    task = read_task(config[TrainConfig], model, data)
    task.compile_for_scores(model)
    masks, _ = choose_masks(model, settings, task.training_data(data), config.seed, None, target, task)
    with locked_at_zero(model, masks):
        return apply_removal(model, plan_removal(model))
