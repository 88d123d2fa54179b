"""`search_document`: the flow from which every trial of a search is made."""

from __future__ import annotations

from typing import Any

from fpgaprune.errors import ConfigError, HlsError, UnsupportedLayerError
from fpgaprune.flow import Flow, TrainConfig
from fpgaprune.keras_file import trained_bits


def search_document(config: Flow, model: Any, notes: list[str]) -> dict[str, Any]:
    """The flow `config` as plain data; its network rounds while it is fine-tuned, if it can, else `notes` says why not.

    Raises:
        ConfigError: it names no trained network, or one that cannot be trained on.
    """
    document: dict[str, Any] = config.model_dump(mode="json", exclude_unset=True)
    path = config[TrainConfig].model
    if path is None:
        raise ConfigError("fit starts from a trained network: name it with train.model, or as MODEL.keras")
    library = trained_bits(path)
    if library is not None:
        raise ConfigError(
            f"{path} has weights whose bits {library} trained, and fit would train them anew; "
            "make its hardware with 'fpgaprune run'"
        )
    document.setdefault("finetune", {})
    if "quantised" not in document["finetune"] and "fit" not in document["finetune"]:
        from fpgaprune.lowering import require_roundable

        try:
            require_roundable(model)
            document["finetune"]["quantised"] = True
        except (HlsError, UnsupportedLayerError) as error:
            notes.append(f"the network is fine-tuned without rounding: {error}")
    return document
