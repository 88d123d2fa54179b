"""The stage `certify`: compares the fine-tuned network with its masks."""

from __future__ import annotations

from typing import Any

from fpgaprune.certify import check_keras_file, check_model
from fpgaprune.flow.stages.stage import FlowStage, StageContext

_LINKS = {"finetuned.keras": lambda files: check_keras_file(files.file("finetuned.keras"), files.masks("masks.npz"))}


def _certify(context: StageContext) -> dict[str, Any]:
    """Every locked element is exactly zero in memory and in `finetuned.keras`."""
    memory = check_model(context.model("finetuned.keras"), context.masks("masks.npz"))
    return context.artefacts.proven(_LINKS, memory)


STAGE = FlowStage("certify", _certify, ("finetuned.keras", "masks.npz"), (), links=_LINKS)
