"""The stage `finetune`: the network trained on under its locks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fpgaprune.flow.context import Context
from fpgaprune.flow.facts import counts
from fpgaprune.flow.samples import predict
from fpgaprune.keras_file import save_keras
from fpgaprune.npz_file import read_npz
from fpgaprune.weights import weight_arrays


def finetune(context: Context) -> dict[str, Any]:
    """`finetuned.keras` is the network trained on, with every element that `masks.npz` locks at exact zero."""
    from fpgaprune.flow.finetuning import finetune_model
    from fpgaprune.flow.models import read_model
    from fpgaprune.flow.selecting import guard_masks

    config, data = context.config, context.data
    early: Mapping[str, Any] | None = None
    if config.finetune.rewind_epoch is not None:
        early = read_npz(context.run.file("early.npz"))
    elif config.finetune.rewind_file is not None:
        early = weight_arrays(read_model(config.finetune.rewind_file)[0])
    model, checkpoint = context.model("trained.keras"), context.checkpoint("finetune")
    selection, task = context.masks("selection.npz"), context.task(model)
    found = finetune_model(model, config, task, selection, data, early, context.progress, checkpoint)
    save_keras(model, context.run.file("finetuned.keras"))
    found.masks.save(context.run.file("masks.npz"))
    checkpoint.remove()
    return {
        "metric": context.judge(model).reading(predict(model, data.x_test)),
        **counts(found.masks),
        "additions": list(found.additions),
        "changes": [list(change) for change in found.changes],
        "warnings": [warning["text"] for warning in guard_masks(model, config.select, found.masks)],
    }
