"""`search_document`: the flow of every trial of a search, as plain data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fpgaprune.errors import ConfigError, HlsError, UnsupportedLayerError
from fpgaprune.flow import Flow, TrainConfig
from fpgaprune.network import trained_bits

if TYPE_CHECKING:
    import keras


def search_document(config: Flow, model: keras.Model, notes: list[str]) -> dict[str, Any]:
    """Return the flow of every trial as plain data; the network rounds in fine-tuning, else `notes` says why not.

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
