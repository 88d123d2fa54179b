"""The stage `quantise`: the removed network trained on while it rounds as its hardware does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from pydantic import Field

from fpgaprune.certify import check_keras_file
from fpgaprune.errors import ConfigError, HlsError, UnsupportedLayerError
from fpgaprune.flow.data import Dataset
from fpgaprune.flow.dependence import judging, section_json
from fpgaprune.flow.run_directory import RunDirectory
from fpgaprune.flow.samples import predict
from fpgaprune.flow.section import Flow, Section
from fpgaprune.flow.sections import FinetuneConfig, TargetConfig
from fpgaprune.flow.stage import MASKS, NETWORK, FlowStage, Known, NetworkFiles, ReportPart, Results, StageContext
from fpgaprune.flow.stages.hls import HlsConfig, hardware_of
from fpgaprune.keras_file import save_keras
from fpgaprune.masks import MaskSet
from fpgaprune.report import Check

_MODEL, _MASKS, _TYPES = "quantised.keras", "quantised_masks.npz", "quantised_types.json"
_LINKS = {_MODEL: lambda files: check_keras_file(files.file(_MODEL), files.masks(_MASKS))}


class QuantiseConfig(Section):
    """How the network is trained on while it rounds as its hardware does, as `epochs = 8`.

    Types are those of `[hls]`, found before this training; batches are those of `[finetune]`.
    """

    epochs: int = Field(default=0, ge=0)
    """Passes over the training samples; 0 leaves this training out."""
    learning_rate: float | None = Field(default=None, gt=0)
    """Learning rate at the start; it falls as a cosine. The model's own if left out, 0.001 where it has none."""


def _quantise(context: StageContext) -> dict[str, Any]:
    """`quantised.keras` holds the weights of the hardware, trained with its rounding under the same locks.

    It is a network of Keras's own layers; `quantised_types.json` says under which types it was trained.
    """
    run, data = context.run, context.data
    if not context.config[QuantiseConfig].epochs:
        for name in (_MODEL, _MASKS, _TYPES):
            run.file(name).unlink(missing_ok=True)
        return {}
    from fpgaprune.hls import carry_masks, settle
    from fpgaprune.quantise import rounded_types

    model = context.model()
    rounded = hardware_of(context.config, data).rounding(model, partial(context.judge_of, model))
    masks = carry_masks(model, rounded, context.masks())
    judge, wanted = context.judge(model), context.trained_outputs()
    at_first = judge.lost(wanted, predict(rounded, data.x_test))
    _train(context, rounded, masks)
    plain = settle(rounded)
    save_keras(plain, run.file(_MODEL))
    masks.save(run.file(_MASKS))
    run.write_json(_TYPES, {layer: _texts(kinds) for layer, kinds in rounded_types(rounded).items()})
    context.checkpoint("quantise").remove()
    outputs = predict(plain, data.x_test)
    return {
        "metric": {**judge.reading(outputs), **judge.lost(wanted, outputs)},
        "rounded": {"before": at_first, "after": judge.lost(wanted, predict(rounded, data.x_test))},
        **context.artefacts.proven(_LINKS),
    }


def _train(context: StageContext, rounded: Any, masks: MaskSet) -> None:
    from fpgaprune.flow.checkpoint import Resume
    from fpgaprune.flow.epochs import shuffled_batches, steps_in_epoch
    from fpgaprune.flow.progress import epochs_shown
    from fpgaprune.flow.task import FINETUNE_RATE
    from fpgaprune.quantise import without_last_rounding
    from fpgaprune.train import finetune

    settings, data = context.config[QuantiseConfig], context.data
    batch_size, checkpoint = context.config[FinetuneConfig].batch_size, context.checkpoint("quantise")
    steps, start = steps_in_epoch(data.x_train, batch_size), checkpoint.load()
    done = 0 if start is None else start.epoch
    # A rounded probability may be 0, whose logarithm tells the training nothing.
    model = without_last_rounding(rounded)
    task = context.task(model)
    task.compile(model, settings.learning_rate, FINETUNE_RATE, settings.epochs * steps)
    finetune(
        model,
        masks,
        shuffled_batches(data.x_train, data.y_train, batch_size, context.config.seed, done),
        epochs=settings.epochs,
        initial_epoch=done,
        steps_per_epoch=steps,
        class_weight=task.class_weight,
        shuffle=False,
        callbacks=[Resume(checkpoint, start), epochs_shown(context.progress, settings.epochs)],
    )


def _texts(kinds: Any) -> dict[str, str]:
    return {role: str(kind) for role, kind in kinds.items()}


def _checks(known: Known) -> Iterator[Callable[[], Any]]:
    precision = known.config[HlsConfig].precision
    if known.config[QuantiseConfig].epochs and precision not in ("widths", "auto"):
        yield partial(_refuse, f"hls.precision is {precision!r}, one type for every sum too; wanted 'widths' or 'auto'")


def _refuse(problem: str) -> None:
    raise ConfigError(f"quantise.epochs: {problem}, or epochs = 0")


def _foresee(config: Flow, _: Dataset, model: Any) -> Iterator[str]:
    """Each layer of the network can be rounded in Keras."""
    if not config[QuantiseConfig].epochs:
        return
    from fpgaprune.hls import require_roundable

    try:
        require_roundable(model)
    except (HlsError, UnsupportedLayerError) as error:
        yield f"quantise.epochs: {error}; or let epochs be 0"


def _settings(config: Flow) -> Any:
    hls, target = section_json(config[HlsConfig]), section_json(config[TargetConfig])
    own = section_json(config[QuantiseConfig])
    asked = config[QuantiseConfig].epochs > 0
    return [own, hls, target, config[FinetuneConfig].batch_size, judging(config)] if asked else own


def _claims(run: RunDirectory) -> Iterator[str]:
    """Whether every kernel that was locked before this training is locked as before."""
    if not run.file(_MASKS).is_file():
        return
    before, after = (MaskSet.load(run.file(name)) for name in ("removed_masks.npz", _MASKS))
    for path in sorted(before.keys() & after.keys()):
        if before[path].ndim > 1 and not np.array_equal(before[path], after[path]):
            yield f"{_MASKS}: the mask for {path!r} is not that of removed_masks.npz"


def _part(_: StageContext, results: Results) -> ReportPart:
    if not results:
        return ReportPart()
    metric, rounded = results["metric"], results["rounded"]
    quantity, samples = f"{metric['name']} lost", metric["samples"]
    return ReportPart(
        checks=[
            Check(f"types of the hardware, {when}", quantity, rounded[key]["lost"], samples=samples, about="metric")
            for key, when in (("before", "before training under them"), ("after", "after training under them"))
        ]
    )


def _outcome(results: Results) -> Iterator[tuple[str, str]]:
    if results:
        before, after = (results["rounded"][when]["lost"] for when in ("before", "after"))
        name = results["metric"]["name"]
        yield f"quantised   {name} lost to rounding: {after:.4f}, and {before:.4f} before training under it", ""


STAGE = FlowStage(
    "quantise",
    _quantise,
    ("trained_outputs.npz", NETWORK, MASKS),
    (_MODEL, _MASKS, _TYPES),
    _settings,
    sections={"quantise": QuantiseConfig()},
    network=NetworkFiles(_MODEL, _MASKS, _TYPES),
    may_be_left_out=True,
    not_asked="the flow does not ask for it; epochs above 0 in [quantise] do",
    checks=_checks,
    foresee=_foresee,
    masks=("quantised_masks",),
    links=_LINKS,
    claims=_claims,
    part=_part,
    readings=lambda results: {"after": results["metric"]} if results else {},
    outcome=_outcome,
)
