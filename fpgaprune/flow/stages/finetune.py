"""The stage `finetune`: fine-tunes the network under its locks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from fpgaprune.errors import ConfigError
from fpgaprune.files import does_not_exist, read_npz
from fpgaprune.flow.file import (
    FinetuneConfig,
    Flow,
    Section,
    SelectConfig,
    TargetConfig,
    TrainConfig,
    check_schedule,
    code_digest,
    file_digest,
    judging,
    named_function,
    section_json,
)
from fpgaprune.flow.stages.hls_config import HlsConfig, hardware_of, require_exact_types, rounding_settings, unroundable
from fpgaprune.flow.stages.stage import FlowStage, Known, MaskCounts, OutcomeLine, ReportPart, StageContext
from fpgaprune.flow.task import Dataset, Reading, predict, steps_in_epoch
from fpgaprune.network import save_keras, trained_bits
from fpgaprune.select import Addition
from fpgaprune.values import weight_arrays, weight_shapes

if TYPE_CHECKING:
    import keras

# Layer to role to type, where the network was trained under types; later stages keep them.
_TYPES = "finetuned_types.json"


def _check_rewind(config: Flow) -> None:
    schedule = config[FinetuneConfig].schedule
    if getattr(schedule, "rewind_to", None) is not None:
        raise ConfigError(
            "finetune.schedule.rewind_to names weights of a network that does not round; leave it out, or set "
            "finetune.quantised = false"
        )


def _check_schedule(config: Flow, data: Dataset) -> None:
    settings, model = config[FinetuneConfig], config[TrainConfig].model
    epoch, file = settings.rewind_epoch, settings.rewind_file
    if epoch is not None and model is not None:
        raise ConfigError(
            f"finetune.schedule.rewind_to is epoch {epoch}, but train.model skips the training; name a .keras file "
            "that holds the early weights"
        )
    if epoch is not None and epoch > config[TrainConfig].epochs:
        raise ConfigError(
            f"finetune.schedule.rewind_to is epoch {epoch}; the training has {config[TrainConfig].epochs} epochs"
        )
    for key, path in (("schedule.rewind_to", file), ("start", settings.start)):
        if path is not None and not path.exists():
            raise ConfigError(does_not_exist(path, f"finetune.{key}:"))
    if settings.fit is not None and settings.schedule.kind != "one_shot":
        raise ConfigError(
            f"finetune.fit is a training loop of your own, and finetune.schedule is {settings.schedule.kind!r}; a "
            "schedule needs ours: leave out one of them"
        )
    if settings.fit is not None and settings.callbacks is not None:
        raise ConfigError(
            "finetune.fit is a training loop of your own, and finetune.callbacks are for ours: leave out one of them"
        )
    library = trained_bits(model) if settings.epochs and model is not None else None
    if library is not None:
        raise ConfigError(
            f"finetune.epochs is {settings.epochs}, but {model} has weights whose bits {library} trained, and they "
            f"would leave them: let finetune.epochs be 0, and train on in {library}"
        )
    select = config[SelectConfig]
    steps = steps_in_epoch(data.x_train, settings.batch_size)
    check_schedule(settings.schedule, settings.epochs, steps, select.share, select.granularity)


class FinetuneResult(MaskCounts, frozen=True, kw_only=True, omit_defaults=True):
    """The fine-tuned network and its locks.

    Attributes:
        metric: the metric of the network.
        changes: for each change of the locks its step, or its round, and the sparsity that was asked for.
        losses: the loss of each epoch.
    """

    metric: Reading
    changes: tuple[tuple[int, float], ...]
    losses: tuple[float, ...] = ()


class FinetuneStage(FlowStage[FinetuneResult]):
    """Fine-tunes the network under its locks."""

    name = "finetune"
    inputs = ("trained.keras", "early.npz", "selection.npz")
    outputs = ("finetuned.keras", "masks.npz", _TYPES)
    sections: ClassVar[Mapping[str, Section]] = {
        "finetune": FinetuneConfig(epochs=40, batch_size=32, learning_rate=0.002)
    }
    masks = ("masks",)
    result = FinetuneResult

    def run(self, context: StageContext) -> FinetuneResult:
        """Write `finetuned.keras`: the fine-tuned network, in which every locked element is exactly zero."""
        from fpgaprune.flow.task import Finetuning, counts, folded_under, guard_masks, narrowed, read_model
        from fpgaprune.lowering import carry_masks, smaller_kernels
        from fpgaprune.quantise import unrounded, without_last_rounding

        config, data = context.config, context.data
        settings = config[FinetuneConfig]
        early: Mapping[str, Any] | None = None
        if settings.rewind_epoch is not None:
            early = read_npz(context.run.file("early.npz"))
        elif settings.rewind_file is not None:
            early = weight_arrays(read_model(settings.rewind_file)[0])
        model, selection = context.model("trained.keras"), context.masks("selection.npz")
        smaller = smaller_kernels(model) if settings.quantised else {}
        if settings.start is not None:
            trained, model = model, read_model(settings.start)[0]
            if weight_shapes(trained) != weight_shapes(model):
                # It was fine-tuned as a network that rounds, which has each BatchNorm in the layer before it, and zeros
                # between the taps of a dilated kernel.
                _, selection = folded_under(trained, selection)
        checkpoint = context.checkpoint("finetune")
        rounded, narrow, whole = None, None, model
        if config[SelectConfig].filters:
            if settings.quantised:
                whole, selection = folded_under(model, selection)
            narrow = narrowed(whole, selection)
            model, selection = narrow.small, narrow.small_masks
        if settings.quantised:
            hardware = hardware_of(config, data)
            rounded = hardware.rounding(model, partial(context.judge_of, model))
            selection = carry_masks(model, rounded, selection)
            model = without_last_rounding(rounded)
        task = context.task(model)
        found = Finetuning(model, config, task, selection, data, context.progress, checkpoint, smaller).run(early)
        if rounded is not None:
            model = unrounded(rounded)
            context.run.write_json(_TYPES, hardware.types_of(rounded))
        else:
            context.run.file(_TYPES).unlink(missing_ok=True)
        if narrow is not None:
            narrow.take_back(model, whole)
            model = whole
            # What followed from locks has the numbers of the narrow network.
            found = replace(found, masks=narrow.whole_masks(found.masks), additions=())
        save_keras(model, context.run.file("finetuned.keras"))
        found.masks.save(context.run.file("masks.npz"))
        checkpoint.remove()
        return FinetuneResult(
            **counts(found.masks),
            metric=context.judge(model).reading(predict(model if rounded is None else rounded, data.x_test)),
            additions=tuple(Addition(**added) for added in found.additions),
            changes=tuple(found.changes),
            losses=tuple(found.losses),
            warnings=tuple(warning["text"] for warning in guard_masks(model, config[SelectConfig], found.masks)),
        )

    def settings(self, config: Flow) -> object:
        settings = config[FinetuneConfig]
        # A schedule chooses its locks during the fine-tuning, as [select] says.
        chooses = settings.schedule.kind != "one_shot"
        return [
            section_json(settings),
            *(
                file_digest(settings.rewind_file),
                file_digest(settings.start),
                judging(config),
                code_digest(settings.fit),
                code_digest(settings.callbacks),
            ),
            [section_json(config[SelectConfig]), section_json(config[TargetConfig])] if chooses else None,
            bool(config[SelectConfig].filters),
            rounding_settings(config) if settings.quantised else None,
        ]

    def checks(self, known: Known) -> Iterator[Callable[[], Any]]:
        settings = known.config[FinetuneConfig]
        for key, name in (("finetune.fit", settings.fit), ("finetune.callbacks", settings.callbacks)):
            if name is not None:
                yield partial(named_function, name, key, ConfigError)
        if known.config[FinetuneConfig].quantised:
            yield partial(require_exact_types, known.config[HlsConfig].precision, "finetune.quantised", "false")
            yield partial(_check_rewind, known.config)
        if known.data is not None:
            yield partial(_check_schedule, known.config, known.data)

    def foresee(self, config: Flow, _: Dataset, model: keras.Model) -> Iterator[str]:
        """Yield a line for each layer of the network that cannot be rounded in Keras."""
        if config[FinetuneConfig].quantised:
            yield from unroundable(model, "finetune.quantised", "false")

    def part(self, context: StageContext, result: FinetuneResult) -> ReportPart:
        return ReportPart({"warnings": result.warnings, "losses": result.losses})

    def outcome(self, result: FinetuneResult) -> Iterator[OutcomeLine]:
        return (OutcomeLine(f"warning: {warning}", warning=True) for warning in result.warnings)


STAGE = FinetuneStage()
