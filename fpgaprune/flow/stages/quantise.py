"""The stage `quantise`: trains the removed network while it rounds as its hardware does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from msgspec import Struct
from pydantic import Field, field_validator

from fpgaprune.certify import check_keras_file
from fpgaprune.errors import ConfigError
from fpgaprune.flow.file import FinetuneConfig, Flow, Section, judging, require, section_json
from fpgaprune.flow.run import RunDirectory
from fpgaprune.flow.stages.hls_config import HlsConfig, hardware_of, require_exact_types, rounding_settings, unroundable
from fpgaprune.flow.stages.stage import (
    MASKS,
    NETWORK,
    Artefacts,
    FlowStage,
    Known,
    NetworkFiles,
    OutcomeLine,
    ReportPart,
    StageContext,
    StageResult,
)
from fpgaprune.flow.task import Dataset, Loss, Reading, predict
from fpgaprune.measure import LinkCheck
from fpgaprune.network import read_keras_layers, save_keras
from fpgaprune.report import Check
from fpgaprune.select import parse_hold
from fpgaprune.values import HeldValues, MaskSet, gathered

if TYPE_CHECKING:
    import keras

_MODEL, _MASKS, _TYPES = "quantised.keras", "quantised_masks.npz", "quantised_types.json"
_HELD, _TYPES_BEFORE, _TRAINED = "quantised_held.npz", "finetuned_types.json", "trained.keras"


def _held_link(files: Artefacts) -> LinkCheck | None:
    path = files.file(_HELD)
    if not path.is_file():
        return None
    held = HeldValues.load(path)
    return check_keras_file(files.file(_MODEL), held.masks, held.values)


_LINKS = {
    _MODEL: lambda files: check_keras_file(files.file(_MODEL), files.masks(_MASKS)),
    f"{_MODEL}, held values": _held_link,
}


class QuantiseConfig(Section):
    """How the network is trained while it rounds as its hardware does. Example: `epochs = 8`.

    Types are those of `[hls]`, found before this training; batches and decay of weights are those of `[finetune]`.
    """

    epochs: int = Field(default=0, ge=0)
    """Passes over the training samples; 0 leaves this training out."""
    learning_rate: float | None = Field(default=None, gt=0)
    """Learning rate at the start; it falls as a cosine. The model's own if left out, 0.001 if it has none."""
    hold: str | None = None
    """Hold every kept weight at a value that costs few adders: `digits(1)` for powers of two, `digits(2)` for sums of
    two. It is done in rounds, the largest first, while the others make up for it."""
    rounds: int = Field(default=6, ge=1)
    """Rounds of `hold`: half of the weights are held in the first, half of the others in the next, all in the last."""

    @field_validator("hold")
    @classmethod
    def _cheap(cls, text: str | None) -> str | None:
        if text is not None:
            require(parse_hold, text)
        return text


def _train(context: StageContext, rounded: object, masks: MaskSet) -> HeldValues:
    """Train `rounded` on under `masks`; return the values that it holds at cheap values in the end."""
    from fpgaprune.flow.run import epochs_shown
    from fpgaprune.flow.task import FINETUNE_RATE, Resume, shuffled_batches, steps_in_epoch, steps_together
    from fpgaprune.lowering import smaller_kernels
    from fpgaprune.quantise import kernel_types, without_last_rounding
    from fpgaprune.select import GradualHold, hold_schedule
    from fpgaprune.train import finetune, relock, shorten_steps

    settings, data = context.config[QuantiseConfig], context.data
    finetuning, checkpoint = context.config[FinetuneConfig], context.checkpoint("quantise")
    batch_size = finetuning.batch_size
    steps, start = steps_in_epoch(data.x_train, batch_size), checkpoint.load()
    done = 0 if start is None else start.epoch
    # A rounded probability may be 0, whose logarithm tells the training nothing.
    model = without_last_rounding(rounded)
    task = context.task(model)
    steps_in_all = settings.epochs * steps
    task.compile(model, settings.learning_rate, FINETUNE_RATE, steps_in_all, decay=finetuning.weight_decay)
    shorten_steps(model, smaller_kernels(context.model(_TRAINED)))
    task.prepare(model, data.y_train)
    schedule = {} if settings.hold is None else hold_schedule(settings.epochs, settings.rounds)
    kinds = {} if settings.hold is None else kernel_types(rounded)
    hold = GradualHold(schedule, relock, masks, kinds, settings.hold or "digits(1)")
    if start is not None:
        hold.resume(HeldValues.from_arrays(start.arrays))
    with steps_together(model, steps):
        finetune(
            model,
            hold.initial_masks(model),
            shuffled_batches(data.x_train, data.y_train, batch_size, context.config.seed, done, task.weights),
            epochs=settings.epochs,
            initial_epoch=done,
            steps_per_epoch=steps,
            shuffle=False,
            values="zero" if settings.hold is None else hold.initial_values(model),
            callbacks=[
                Resume(checkpoint, start, lambda: ({}, hold.held.arrays)),
                hold,
                epochs_shown(context.progress, settings.epochs),
            ],
        )
    return hold.held


def _check_rounds(settings: QuantiseConfig) -> None:
    if settings.epochs < settings.rounds:
        raise ConfigError(
            f"quantise.hold is {settings.hold!r} in {settings.rounds} rounds, and quantise.epochs is "
            f"{settings.epochs}; wanted an epoch for each round, and some more after the last"
        )


class RoundingLoss(Struct, frozen=True):
    """The loss to rounding, before and after the network was trained under its types."""

    before: Loss
    after: Loss


class QuantiseResult(StageResult, frozen=True, kw_only=True, omit_defaults=True):
    """The network that was trained while it rounds.

    Attributes:
        metric: its metric, and its loss against the trained network.
        rounded: its loss to rounding.
        held: number of weights that are held at values of few signed digits.
    """

    metric: Reading
    rounded: RoundingLoss
    held: int


class QuantiseStage(FlowStage[QuantiseResult]):
    """Trains the removed network while it rounds as its hardware does."""

    name = "quantise"
    inputs = (_TRAINED, "trained_outputs.npz", NETWORK, MASKS, _TYPES_BEFORE)
    outputs = (_MODEL, _MASKS, _TYPES, _HELD)
    sections: ClassVar[Mapping[str, Section]] = {"quantise": QuantiseConfig()}
    network = NetworkFiles(_MODEL, _MASKS, _TYPES, _HELD)
    may_be_left_out = True
    masks = ("quantised_masks",)
    links = _LINKS
    result = QuantiseResult

    def run(self, context: StageContext) -> QuantiseResult | None:
        """Write the weights of the hardware, trained with its rounding under the same locks, to `quantised.keras`.

        It is a network of Keras's own layers. `quantised_types.json` says under which types it was trained, and
        `quantised_held.npz` which weights are held at cheap values.
        """
        run, data, settings = context.run, context.data, context.config[QuantiseConfig]
        for name in (_MODEL, _MASKS, _TYPES, _HELD):
            run.file(name).unlink(missing_ok=True)
        types = run.read_json(_TYPES_BEFORE) if run.file(_TYPES_BEFORE).is_file() else {}
        if not settings.epochs and not types:
            return None
        from fpgaprune.lowering import carry_masks, settle
        from fpgaprune.quantise import with_next_power

        model = context.model()
        judge_of = partial(context.judge_of, model)
        hardware = hardware_of(context.config, data).with_types(types)
        rounded = hardware.rounding(model, judge_of)
        if settings.hold is not None:
            wider = {layer: with_next_power(kinds) for layer, kinds in hardware.types_of(rounded).items()}
            rounded = hardware.with_types(wider).rounding(model, judge_of)
        masks = carry_masks(model, rounded, context.masks())
        judge, wanted = context.judge(model), context.trained_outputs()
        at_first = at_last = judge.lost(wanted, predict(rounded, data.x_test))
        held = HeldValues()
        if settings.epochs:
            held = _train(context, rounded, masks)
            at_last = judge.lost(wanted, predict(rounded, data.x_test))
        plain = settle(rounded)
        save_keras(plain, run.file(_MODEL))
        masks.save(run.file(_MASKS))
        run.write_json(_TYPES, hardware.types_of(rounded))
        if held.count:
            held.save(run.file(_HELD))
        context.checkpoint("quantise").remove()
        outputs = predict(plain, data.x_test)
        return QuantiseResult(
            metric=judge.reading(outputs, wanted),
            rounded=RoundingLoss(at_first, at_last),
            held=held.count,
            links=context.artefacts.proven(_LINKS),
        )

    def asked(self, config: Flow) -> bool:
        return config[QuantiseConfig].epochs > 0 or config[FinetuneConfig].quantised

    def settings(self, config: Flow) -> object:
        own = section_json(config[QuantiseConfig])
        finetuning = config[FinetuneConfig]
        if not (config[QuantiseConfig].epochs or finetuning.quantised):
            return own
        return [own, rounding_settings(config), finetuning.batch_size, finetuning.weight_decay, judging(config)]

    def checks(self, known: Known) -> Iterator[Callable[[], Any]]:
        settings = known.config[QuantiseConfig]
        if settings.epochs:
            yield partial(require_exact_types, known.config[HlsConfig].precision, "quantise.epochs", "0")
        if settings.hold is not None:
            yield partial(_check_rounds, settings)

    def foresee(self, config: Flow, _: Dataset, model: keras.Model) -> Iterator[str]:
        """Yield a line for each layer of the network that cannot be rounded in Keras."""
        if config[QuantiseConfig].epochs:
            yield from unroundable(model, "quantise.epochs", "0")

    def claims(self, run: RunDirectory) -> Iterator[str]:
        """Yield a line for each kernel whose mask differs from the mask before this training."""
        if not run.file(_MASKS).is_file():
            return
        before, after = (MaskSet.load(run.file(name)) for name in ("removed_masks.npz", _MASKS))
        phases = {layer.name: layer.phases for layer in read_keras_layers(run.file("removed.keras"))}
        for path in sorted(before.keys() & after.keys()):
            own = gathered(after[path], before[path].shape, phases.get(path.rpartition("/")[0].rpartition("/")[2]))
            if before[path].ndim > 1 and not np.array_equal(before[path], own):
                yield f"{_MASKS}: the mask for {path!r} is not that of removed_masks.npz"

    def part(self, context: StageContext, result: QuantiseResult) -> ReportPart:
        quantity, samples, rounded = f"{result.metric.name} lost", result.metric.samples, result.rounded
        return ReportPart(
            checks=[
                Check(f"types of the hardware, {when}", quantity, found.lost, samples=samples, about="metric")
                for found, when in (
                    (rounded.before, "before training under them"),
                    (rounded.after, "after training under them"),
                )
            ]
        )

    def readings(self, result: QuantiseResult) -> dict[str, Reading]:
        return {"after": result.metric}

    def outcome(self, result: QuantiseResult) -> Iterator[OutcomeLine]:
        before, after = result.rounded.before.lost, result.rounded.after.lost
        lost = f"{after:.4f}, and {before:.4f} before training under it"
        yield OutcomeLine(f"quantised   {result.metric.name} lost to rounding: {lost}")
        if result.held:
            yield OutcomeLine(f"held        {result.held:,} weights at values of few signed digits")


STAGE = QuantiseStage()
