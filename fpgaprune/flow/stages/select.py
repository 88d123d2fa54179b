"""The stage `select`: chooses the elements that will be locked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from fpgaprune.errors import MaskError
from fpgaprune.flow.file import (
    MULTIPLIER,
    FinetuneConfig,
    Flow,
    Section,
    SelectConfig,
    TargetConfig,
    file_digest,
    is_function_name,
    named_function,
    section_json,
)
from fpgaprune.flow.stages.requirements import Row, package
from fpgaprune.flow.stages.stage import FlowStage, Known, MaskCounts, StageContext
from fpgaprune.flow.task import Dataset
from fpgaprune.select import Addition
from fpgaprune.values import MaskSet, match_paths

if TYPE_CHECKING:
    import keras


class SelectStage(FlowStage[MaskCounts]):
    """Chooses the elements that will be locked."""

    name = "select"
    inputs = ("trained.keras",)
    outputs = ("selection.npz",)
    sections: ClassVar[Mapping[str, Section]] = {
        "select": SelectConfig(
            locks=("conv2/kernel[:, :, 29, 13]", "conv3/kernel[:, :, :, 5]"), sparsity=0.85, granularity="kernel"
        )
    }
    result = MaskCounts

    def run(self, context: StageContext) -> MaskCounts:
        """Write the masks from the first step of fine-tuning on to `selection.npz`."""
        from fpgaprune.flow.task import choose_masks, counts, first_masks, guard_masks

        config, data = context.config, context.data
        settings, model = config[SelectConfig], context.model("trained.keras")
        task = context.task(model)
        task.compile_for_scores(model)
        samples, target = task.training_data(data), config[TargetConfig].target()
        masks, additions = choose_masks(model, settings, samples, config.seed, context.progress.step, target, task)
        if config[FinetuneConfig].schedule.kind != "one_shot":
            # The choice has shown that the sparsity can be reached. The schedule will choose the units.
            masks, additions = first_masks(model, settings, samples, config.seed)
        masks.save(context.run.file("selection.npz"))
        warnings = guard_masks(model, settings, masks)
        return MaskCounts(
            **counts(masks),
            additions=tuple(Addition(**added) for added in additions),
            warnings=tuple(warning["text"] for warning in warnings),
        )

    def settings(self, config: Flow) -> object:
        select = config[SelectConfig]
        target = section_json(config[TargetConfig]) if select.granularity == MULTIPLIER else None
        return [section_json(select), file_digest(select.masks), config[FinetuneConfig].schedule.kind, target]

    def checks(self, known: Known) -> Iterator[Callable[[], Any]]:
        settings, shapes = known.config[SelectConfig], known.shapes
        if is_function_name(settings.criterion):
            yield partial(named_function, settings.criterion, "criterion", MaskError)
        if settings.masks is not None:
            yield partial(MaskSet.load, settings.masks)
        if shapes is None:
            return
        yield from (partial(MaskSet.from_slices, shapes, (text,)) for text in settings.locks)
        yield from (partial(match_paths, pattern, shapes) for pattern in settings.patterns)
        if settings.masks is not None and settings.masks.exists():
            masks = settings.masks
            yield lambda: MaskSet.load(masks).fitted(shapes)

    def foresee(self, config: Flow, _: Dataset, model: keras.Model) -> Iterator[str]:
        """Yield an error if the weights cannot be divided into the units of `granularity`."""
        from fpgaprune.flow.task import check_units

        try:
            check_units(model, config[SelectConfig], config[TargetConfig].target())
        except MaskError as error:
            yield f"select.granularity: {error}"

    def needs(self) -> list[Row]:
        return [package("select", "tensorflow-model-optimization", "models that were pruned with it")]


STAGE = SelectStage()
