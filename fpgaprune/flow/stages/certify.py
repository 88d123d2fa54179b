"""The stage `certify`: compares the fine-tuned network with its masks."""

from __future__ import annotations

from fpgaprune.certify import check_keras_file, check_model
from fpgaprune.flow.stages.stage import FlowStage, StageContext, StageResult

_LINKS = {"finetuned.keras": lambda files: check_keras_file(files.file("finetuned.keras"), files.masks("masks.npz"))}


class CertifyStage(FlowStage[StageResult]):
    """Compares the fine-tuned network with its masks."""

    name = "certify"
    inputs = ("finetuned.keras", "masks.npz")
    outputs = ()
    links = _LINKS
    result = StageResult

    def run(self, context: StageContext) -> StageResult:
        """Require that every locked element is exactly zero, in memory and in `finetuned.keras`."""
        memory = check_model(context.model("finetuned.keras"), context.masks("masks.npz"))
        return StageResult(links=context.artefacts.proven(_LINKS, memory))


STAGE = CertifyStage()
