"""The stage `remove`: removes the channels that have no effect."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from msgspec import Struct

from fpgaprune.certify import check_keras_file
from fpgaprune.errors import MaskError, RemovalError
from fpgaprune.flow.file import Flow, judging
from fpgaprune.flow.run import RunDirectory
from fpgaprune.flow.stages.stage import FlowStage, NetworkFiles, ReportPart, StageContext, StageResult
from fpgaprune.flow.task import Reading, for_keras, predict
from fpgaprune.network import read_keras_layers, read_keras_weights, save_keras
from fpgaprune.remove import read_plan
from fpgaprune.report import Check, in_names_of, layer_reports
from fpgaprune.values import MaskSet

_LINKS = {
    "removed.keras": lambda files: check_keras_file(files.file("removed.keras"), files.masks("removed_masks.npz"))
}


def _equivalence(found: RemovalDifference, what: str) -> Check:
    quantity = "largest difference of the logits over their scale"
    return Check(what, quantity, found.max_relative_error, found.tolerance, samples=found.samples)


class RemovalDifference(Struct, frozen=True, kw_only=True):
    """The differences of two networks, as `fpgaprune.Equivalence` has them; inf and NaN are texts."""

    first: str
    second: str
    samples: int
    dtype: str
    max_abs_error: float | str
    max_relative_error: float
    max_ulp: float | str
    variation: float | str
    tolerance: float
    worst_sample: int
    worst_output: int
    ok: bool


class RemoveResult(StageResult, frozen=True, kw_only=True, omit_defaults=True):
    """The network without the channels that have no effect.

    Attributes:
        metric: its metric, and its loss against the trained network.
        equivalence: its differences from the fine-tuned network, computed in float64.
        stored: the same as it is stored, in float32.
        channels: number of channels before and after.
        parameters: number of weight elements before and after.
        notes: the layers without a rule, whose channels stay.
    """

    metric: Reading
    equivalence: RemovalDifference
    stored: RemovalDifference
    channels: tuple[int, int]
    parameters: tuple[int, int]
    notes: tuple[str, ...]


class RemoveStage(FlowStage[RemoveResult]):
    """Removes the channels that have no effect."""

    name = "remove"
    inputs = ("trained_outputs.npz", "finetuned.keras", "masks.npz")
    outputs = ("removed.keras", "removed_masks.npz", "removal.json")
    network = NetworkFiles("removed.keras", "removed_masks.npz")
    masks = ("removed_masks",)
    links = _LINKS
    reported = ("masks.npz", "removed_masks.npz", "removal.json", "trained.keras", "removed.keras")
    result = RemoveResult

    def run(self, context: StageContext) -> RemoveResult:
        """Write `removed.keras`: the network without dead and unread channels, proven equal in float64."""
        from fpgaprune.remove import Reference, apply_removal, plan_removal

        model = context.model("finetuned.keras")
        plan = plan_removal(model)
        reference = Reference(model, for_keras(context.data.x_test))
        exact = apply_removal(model, plan, dtype="float64")
        proof = reference.compare(exact).require()
        small = apply_removal(model, plan)
        # Each bias into which a constant was folded is rounded.
        stored = reference.compare(small, rounded="float32").require()
        masks = plan.remap(context.masks("masks.npz"))
        save_keras(small, context.run.file("removed.keras"))
        masks.save(context.run.file("removed_masks.npz"))
        context.run.write_json("removal.json", plan.to_json())
        judge, before, after = context.judge(small), context.trained_outputs(), predict(small, context.data.x_test)
        return RemoveResult(
            metric=judge.reading(after, before),
            equivalence=RemovalDifference(**proof.to_json()),
            stored=RemovalDifference(**stored.to_json()),
            channels=plan.channel_counts,
            parameters=plan.parameters,
            notes=tuple(f"no rule for {path!r} ({kind}): its channels stay" for path, kind in plan.unsupported.items()),
            links=context.artefacts.proven(_LINKS),
        )

    def settings(self, config: Flow) -> object:
        return judging(config)

    def claims(self, run: RunDirectory) -> Iterator[str]:
        """Yield a line for each mask after removal that does not follow from the mask before and the applied plan."""
        masks, removed = (MaskSet.load(run.file(name)) for name in ("masks.npz", "removed_masks.npz"))
        try:
            expected = read_plan(run.file("removal.json")).remap(masks)
        except (RemovalError, MaskError) as error:
            yield f"removal.json: {error}"
            return
        for path in expected.keys() | removed.keys():
            if path not in removed:
                yield f"removed_masks.npz has no mask for {path!r}, which was locked before removal"
            elif path not in expected:
                yield f"removed_masks.npz has a mask for {path!r}, which masks.npz and the removal plan do not know"
            elif not np.array_equal(removed[path], expected[path]):
                yield f"removed_masks.npz: the mask for {path!r} is not the one of masks.npz, carried over by the plan"

    def part(self, context: StageContext, result: RemoveResult) -> ReportPart:
        trained, tuned, removed = (
            read_keras_weights(context.run.file(f"{name}.keras")) for name in ("trained", "finetuned", "removed")
        )
        layers = layer_reports(
            in_names_of(tuned, trained),
            removed,
            context.masks("masks.npz"),
            read_plan(context.run.file("removal.json")).kept,
            [layer.name for layer in read_keras_layers(context.run.file("finetuned.keras")) if layer.phases],
        )
        return ReportPart(
            {"layers": layers},
            [
                _equivalence(result.equivalence, "removal, computed in float64"),
                _equivalence(result.stored, "removal, as stored in float32"),
            ],
        )

    def readings(self, result: RemoveResult) -> dict[str, Reading]:
        return {"after": result.metric}


STAGE = RemoveStage()
