"""The stage `remove`: removes the channels that have no effect."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from fpgaprune.certify import check_keras_file
from fpgaprune.errors import MaskError, RemovalError
from fpgaprune.flow.file import judging
from fpgaprune.flow.run import RunDirectory
from fpgaprune.flow.stages.stage import FlowStage, NetworkFiles, ReportPart, Results, StageContext
from fpgaprune.flow.task import for_keras, predict
from fpgaprune.keras_file import read_keras_weights, save_keras
from fpgaprune.masks import MaskSet
from fpgaprune.remove import read_plan
from fpgaprune.report import Check, layer_reports

_EQUIVALENCES = {
    "equivalence": "removal, computed in float64",
    "stored": "removal, as stored in float32",
}
_LINKS = {
    "removed.keras": lambda files: check_keras_file(files.file("removed.keras"), files.masks("removed_masks.npz"))
}


def _remove(context: StageContext) -> dict[str, Any]:
    """`removed.keras` is the network without dead and unread channels, proven equal in float64."""
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
    return {
        "metric": {**judge.reading(after), **judge.lost(before, after)},
        "equivalence": proof.to_json(),
        "stored": stored.to_json(),
        "channels": plan.channel_counts,
        "parameters": plan.parameters,
        "notes": [f"no rule for {path!r} ({kind}): its channels stay" for path, kind in plan.unsupported.items()],
        **context.artefacts.proven(_LINKS),
    }


def _claims(run: RunDirectory) -> Iterator[str]:
    """A line for each mask after removal that does not follow from the mask before and the applied plan."""
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
            yield f"removed_masks.npz: the mask for {path!r} is not the one before removal, carried over by the plan"


def _part(context: StageContext, results: Results) -> ReportPart:
    layers = layer_reports(
        read_keras_weights(context.run.file("trained.keras")),
        read_keras_weights(context.run.file("removed.keras")),
        context.masks("masks.npz"),
        read_plan(context.run.file("removal.json")).kept,
    )
    return ReportPart({"layers": layers}, [_equivalence(results[key], what) for key, what in _EQUIVALENCES.items()])


def _equivalence(found: Results, what: str) -> Check:
    quantity = "largest difference of the logits over their scale"
    return Check(what, quantity, found["max_relative_error"], found["tolerance"], samples=found["samples"])


STAGE = FlowStage(
    "remove",
    _remove,
    ("trained_outputs.npz", "finetuned.keras", "masks.npz"),
    ("removed.keras", "removed_masks.npz", "removal.json"),
    judging,
    network=NetworkFiles("removed.keras", "removed_masks.npz"),
    masks=("removed_masks",),
    links=_LINKS,
    claims=_claims,
    reported=("masks.npz", "removed_masks.npz", "removal.json", "trained.keras", "removed.keras"),
    part=_part,
    readings=lambda results: {"after": results["metric"]},
)
