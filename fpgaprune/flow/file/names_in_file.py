"""Locks in the names that a network's own file has for its weights, such as `features.0.weight[13, 29]` of PyTorch."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from fpgaprune.flow.file.section_type import Flow
from fpgaprune.flow.file.shared_sections import SelectConfig, TrainConfig
from fpgaprune.frontends import is_onnx, keras_slices, plan_onnx


def locks_in_keras(path: Path | None, locks: Iterable[str]) -> tuple[str, ...]:
    """The slices `locks` in the paths of the Keras model that the file at `path` becomes.

    Raises:
        MaskError: a slice cannot be read, or is out of range.
        ModelImportError: the file cannot come in.
    """
    locks = tuple(locks)
    if path is None or not locks or not is_onnx(path) or not path.exists():
        return locks
    network = plan_onnx(path)
    return tuple(one for text in locks for one in keras_slices(text, network.sources, network.shapes))


def with_locks_in_keras(config: Flow) -> Flow:
    """`config` with the locks of `[select]` in the paths of the Keras model.

    Raises:
        MaskError: as `locks_in_keras`.
        ModelImportError: as `locks_in_keras`.
    """
    select = config[SelectConfig]
    locks = locks_in_keras(config[TrainConfig].model, select.locks)
    if locks == select.locks:
        return config
    return config.model_copy(update={"select": select.model_copy(update={"locks": locks})})
