"""The stage `certify`: the fine-tuned network against its masks."""

from __future__ import annotations

from typing import Any

from fpgaprune.certify.link_checks import check_keras_file, check_model
from fpgaprune.flow.context import Context
from fpgaprune.flow.facts import proven


def certify(context: Context) -> dict[str, Any]:
    """Every locked element is exactly zero in memory and in `finetuned.keras`."""
    masks = context.masks("masks.npz")
    return proven(
        check_model(context.model("finetuned.keras"), masks),
        check_keras_file(context.run.file("finetuned.keras"), masks),
    )
