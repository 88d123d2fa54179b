"""Reads saved models for a flow, of Keras and of every other format that comes in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fpgaprune.errors import ConfigError
from fpgaprune.flow.task.data import Dataset
from fpgaprune.flow.task.network import small_cnn
from fpgaprune.flow.task.samples import arrays_of
from fpgaprune.frontends import ImportedModel, import_tfmot, is_onnx, is_tf_keras, load, plan_onnx
from fpgaprune.keras_file import save_keras, trained_bits


def read_model(path: Path) -> tuple[Any, dict[str, Any] | None]:
    """The model saved at `path`, as an uncompiled Keras 3 model; what an import from another library found.

    Raises:
        ConfigError: there is no such file, or it holds no model.
        ModelImportError: another library saved it, and Keras 3 cannot make the same predictions with it.
        UnsupportedLayerError: a layer of HGQ2's or QKeras's has no exact counterpart.
    """
    found = load(path)
    if found.sources:
        return found.model, found.to_json()
    return found.model, dict(found.facts) or None


def starting_model(path: Path | None, data: Dataset) -> Any:
    """The model saved at `path`; if that is None, the network that a flow trains on `data`.

    Raises:
        ConfigError: as `read_model`.
        ModelImportError: as `read_model`.
    """
    if path is not None:
        return read_model(path)[0]
    return small_cnn(arrays_of(data.x_train)[0].shape[1:], data.classes or 0)


def load_saved_model(path: Path) -> Any:
    """The Keras model saved at `path`, uncompiled, in a quiet and deterministic session.

    Raises:
        ConfigError: as `read_model`.
        ModelImportError: as `read_model`.
    """
    if not path.exists():
        raise ConfigError(f"model file {path} does not exist")
    if is_onnx(path):
        plan_onnx(path)  # refuses most files before TensorFlow starts
    from fpgaprune.flow.task.session import start_session

    start_session(seed=0)
    return read_model(path)[0]


def import_pruned(source: Path, model_path: Path, masks_path: Path, *, trusted: bool = False) -> ImportedModel:
    """`model_path` holds the Keras 3 form of the model that tf_keras saved at `source`; `masks_path` its masks.

    Raises:
        ConfigError: Keras 3 or QKeras saved the model.
        ModelImportError: as `read_model`.
    """
    if source.exists() and not is_tf_keras(source):
        raise ConfigError(f"{source} is no model of tf_keras; Keras 3 and every command here read it as it is")
    if source.exists() and trained_bits(source) == "QKeras":
        raise ConfigError(f"{source} is a network of QKeras, not of TF-MOT; use it as it is: 'fpgaprune run {source}'")
    from fpgaprune.flow.task.session import start_session

    start_session(seed=0)
    found = import_tfmot(source, trusted=trusted)
    save_keras(found.model, model_path)
    found.masks.save(masks_path)
    return found
