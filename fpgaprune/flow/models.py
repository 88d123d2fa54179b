"""Reads saved models: those of Keras 3, and those of tf_keras, which TF-MOT may have pruned."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from fpgaprune.errors import ConfigError
from fpgaprune.flow.data import Dataset
from fpgaprune.flow.network import small_cnn
from fpgaprune.flow.samples import arrays_of
from fpgaprune.keras_file import save_keras, trained_bits
from fpgaprune.memory import bounded_memory
from fpgaprune.parser_errors import in_a_line
from fpgaprune.saved_model import read_configuration, read_weights
from fpgaprune.saved_names import check_names, require_layers
from fpgaprune.select import ImportedModel, import_tfmot, is_tf_keras

# Loading a network may take this many bytes, plus this many times the size of its file.
_MAX_BYTES, _MAX_GROWTH = 1 << 32, 20


def read_model(path: Path) -> tuple[Any, dict[str, Any] | None]:
    """The model saved at `path`, as an uncompiled Keras 3 model; what an import from tf_keras, HGQ2 or QKeras found.

    Raises:
        ConfigError: there is no such file, or it holds no Keras model.
        ModelImportError: tf_keras, HGQ2 or QKeras saved it, and Keras 3 cannot make the same predictions with it.
        UnsupportedLayerError: a layer of HGQ2's or QKeras's has no exact counterpart.
    """
    if not path.exists():
        raise ConfigError(f"model file {path} does not exist")
    library = trained_bits(path)
    if library is not None:
        from fpgaprune.quantise import import_hgq, import_qkeras

        taken = import_hgq(path) if library == "HGQ2" else import_qkeras(path)
        return taken.model, taken.to_json()
    if is_tf_keras(path):
        imported = import_tfmot(path)
        return imported.model, imported.to_json()
    return load_keras(path), None


def starting_model(path: Path | None, data: Dataset) -> Any:
    """The model saved at `path`; if that is None, the network that a flow trains on `data`.

    Raises:
        ConfigError: as `read_model`.
        ModelImportError: as `read_model`.
    """
    if path is not None:
        return read_model(path)[0]
    return small_cnn(arrays_of(data.x_train)[0].shape[1:], data.classes or 0)


def load_keras(path: Path) -> Any:
    """The model that Keras 3 saved at `path`, uncompiled, because the file cannot hold a user's own loss function.

    No code in the file is run, and sizes that the file only declares do not fill the memory.

    Raises:
        ConfigError: the file is damaged, holds code, or Keras cannot build it.
    """
    document = read_configuration(path, ConfigError).document
    import keras

    try:
        require_layers(document)
        # Its compilation is not read.
        check_names({**document, "compile_config": None}, keras.saving.get_custom_objects().keys())
    except ValueError as error:
        raise ConfigError(f"{path} is refused: {error}") from error
    read_weights(path, ConfigError)
    try:
        with bounded_memory(_MAX_BYTES + _MAX_GROWTH * path.stat().st_size), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = keras.saving.load_model(path, compile=False)
    except Exception as error:
        # A layer may raise anything if its settings were not written by Keras.
        said = in_a_line(error, after="Exception encountered: ")
        raise ConfigError(f"{path} is no Keras model: {said}") from error
    if not isinstance(model, keras.Model):
        raise ConfigError(f"{path} is no Keras model: it holds a {type(model).__name__}; save the whole model")
    return model


def load_saved_model(path: Path) -> Any:
    """The Keras model saved at `path`, uncompiled, in a quiet and deterministic session.

    Raises:
        ConfigError: as `read_model`.
        ModelImportError: as `read_model`.
    """
    if not path.exists():
        raise ConfigError(f"model file {path} does not exist")
    from fpgaprune.flow.session import start_session

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
    from fpgaprune.flow.session import start_session

    start_session(seed=0)
    found = import_tfmot(source, trusted=trusted)
    save_keras(found.model, model_path)
    found.masks.save(masks_path)
    return found
