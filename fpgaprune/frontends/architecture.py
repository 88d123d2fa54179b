"""The front end of Keras architectures as JSON, whose weights lie in a file of their own."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

from fpgaprune.errors import ModelImportError
from fpgaprune.files import PARSER_ERRORS, in_a_line, parse_json, read_weights, storage_error

_MOST_BYTES = 1 << 26
_OLDEST = "2.0.0"


def is_architecture(path: Path) -> bool:
    """Return whether `path` names a JSON file."""
    return path.suffix.lower() == ".json"


def whole_model(architecture: Path, weights: Path, folder: Path) -> Path:
    """Return a file in `folder` that holds the architecture and the weights, as Keras saves a whole model.

    It is an `.h5` file for an architecture of Keras 2, of QKeras too, and a `.keras` file for one of Keras 3.

    Raises:
        ModelImportError: one of the two is no such file, or cannot be read.
    """
    document = _document(architecture)
    data = read_weights(weights, ModelImportError)
    try:
        if "module" in document:
            return _archive(document, data, folder / "whole.keras")
        return _hdf5(document, data, folder / "whole.h5")
    except PARSER_ERRORS as error:
        raise ModelImportError(f"{weights} holds no weights of Keras for {architecture}: {in_a_line(error)}") from error


def _document(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise ModelImportError(f"{path} takes {path.stat().st_size:,} bytes; wanted {_MOST_BYTES:,} at most")
        found = parse_json(path.read_text(encoding="utf-8"), infinite=True)
    except OSError as error:
        raise ModelImportError(str(storage_error(error, path, "read"))) from error
    except ValueError as error:
        raise ModelImportError(f"{path} cannot be read: {in_a_line(error)}") from error
    if not isinstance(found, dict) or "class_name" not in found or "config" not in found:
        raise ModelImportError(f"{path} is no architecture of Keras: it has no 'class_name' and 'config'")
    return found


def _hdf5(document: dict[str, object], data: bytes, path: Path) -> Path:
    import h5py

    config = {key: document[key] for key in ("class_name", "config")}
    with h5py.File(io.BytesIO(data), "r") as source, h5py.File(path, "w", libver="latest") as file:
        layers = source.get("model_weights", source)
        if "layer_names" not in layers.attrs and "layer_names0" not in layers.attrs:
            raise ValueError("it names no layers; save them with model.save_weights('weights.h5')")
        file.attrs["model_config"] = json.dumps(config)
        file.attrs["keras_version"] = str(document.get("keras_version", _OLDEST))
        file.attrs["backend"] = "tensorflow"
        group = file.create_group("model_weights")
        for name, value in layers.attrs.items():
            group.attrs[name] = value
        for name in layers:
            layers.copy(layers[name], group, name=name)
    return path


def _archive(document: dict[str, object], data: bytes, path: Path) -> Path:
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("config.json", json.dumps(document))
        file.writestr("metadata.json", json.dumps({"keras_version": str(document.get("keras_version", "3.0.0"))}))
        file.writestr("model.weights.h5", data)
    return path
