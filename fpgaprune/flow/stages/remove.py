"""The stage `remove`: the network without the channels that do nothing."""

from __future__ import annotations

from typing import Any

from fpgaprune.certify.link_checks import check_keras_file
from fpgaprune.flow.context import Context
from fpgaprune.flow.facts import proven
from fpgaprune.flow.samples import for_keras, predict
from fpgaprune.keras_file import save_keras

EQUIVALENCE_TOLERANCE = 1e-9
# What is stored rounds each bias that took in a constant to float32, once.
ROUNDING_TOLERANCE = 1e-6


def remove(context: Context) -> dict[str, Any]:
    """`removed.keras` is the network without dead and unread channels, proven equal in float64."""
    from fpgaprune.remove.apply import apply_removal
    from fpgaprune.remove.planning import plan_removal
    from fpgaprune.remove.proof import Reference

    model = context.model("finetuned.keras")
    plan = plan_removal(model, strict=True)
    reference = Reference(model, for_keras(context.data.x_test))
    exact = apply_removal(model, plan, dtype="float64")
    proof = reference.compare(exact, tolerance=EQUIVALENCE_TOLERANCE).require()
    small = apply_removal(model, plan)
    stored = reference.compare(small, tolerance=ROUNDING_TOLERANCE).require()
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
        **proven(check_keras_file(context.run.file("removed.keras"), masks)),
    }
