"""The stage `select`: which elements will be locked."""

from __future__ import annotations

from typing import Any

from fpgaprune.flow.context import Context
from fpgaprune.flow.facts import counts


def select(context: Context) -> dict[str, Any]:
    """`selection.npz` says which elements will be locked from the first step of fine-tuning on."""
    from fpgaprune.flow.selecting import choose_masks, explicit_masks, guard_masks
    from fpgaprune.flow.task import FINETUNE_RATE

    config, data = context.config, context.data
    model = context.model("trained.keras")
    # Criteria that read the data ask for the loss.
    context.task(model).compile(model, None, FINETUNE_RATE, steps=1)
    samples = (data.x_train, data.y_train)
    masks, additions = choose_masks(
        model, config.select, samples, config.seed, context.progress.step, config.target.target()
    )
    if config.finetune.schedule.kind != "one_shot":
        # That the sparsity can be reached is known now; which units go is decided on the way.
        masks, additions = explicit_masks(model, config.select), []
    masks.save(context.run.file("selection.npz"))
    warnings = guard_masks(model, config.select, masks)
    return {**counts(masks), "additions": additions, "warnings": [warning["text"] for warning in warnings]}
