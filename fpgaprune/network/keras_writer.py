"""`save_keras`: writes `.keras` files with the same bytes for the same model."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from fpgaprune.errors import UnsupportedLayerError
from fpgaprune.files import DRAFT, WEIGHTS, know_weights, make_folder, storage, write_bytes
from fpgaprune.network import described, own_functions

_ERRNO = re.compile(r"errno = (\d+)")
# The earliest date that a zip can store; the real date would make two files of one model differ.
_EPOCH = (1980, 1, 1, 0, 0, 0)


def save_keras(model: object, path: str | os.PathLike[str]) -> Path:
    """Write the model to `path` (.keras); equal models saved by equal versions give equal bytes.

    Raises:
        UnsupportedLayerError: the file would name another function than the one that a layer applies.
        StorageError: the file cannot be written; the old file stays.
    """
    _require_same_functions(model)
    target = Path(path)
    make_folder(target.parent)
    with storage(target):
        folder = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}.", suffix=DRAFT))
    try:
        draft = folder / "draft.keras"
        with storage(target):
            _save(model, draft)
            data = _reproducible(draft)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return write_bytes(target, data)


def _require_same_functions(model: object) -> None:
    """Check that each function of a layer keeps its meaning when Keras saves it by its name."""
    for layer in getattr(model, "layers", ()):
        for own in own_functions(layer):
            if not own.is_kept_in_files:
                raise UnsupportedLayerError(
                    f"layer {layer.name!r} has as {own.name} {described(own.function)}, which Keras cannot save, or "
                    "saves as another function: use a layer such as keras.layers.ReLU(max_value=6), or register a "
                    "function of yours with keras.saving.register_keras_serializable"
                )


def _save(model: Any, draft: Path) -> None:
    try:
        model.save(draft)
    except RuntimeError as error:
        # HDF5 reports a full disk only in the text of its error.
        number = _ERRNO.search(str(error))
        if number is None:
            raise
        raise OSError(int(number[1]), os.strerror(int(number[1]))) from error


def _reproducible(path: Path) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(buffer, "w") as target:
        for name in sorted(source.namelist()):
            data = source.read(name)
            if name == "metadata.json":
                metadata = {**json.loads(data), "date_saved": "1980-01-01@00:00:00"}
                data = json.dumps(metadata, sort_keys=True).encode()
            if name == WEIGHTS:
                know_weights(data)
            if name == "config.json":
                data = json.dumps(_numbered(json.loads(data), {})).encode()
            target.writestr(zipfile.ZipInfo(name, _EPOCH), data)
    return buffer.getvalue()


def _numbered(config: object, numbers: dict[Any, int]) -> Any:
    """Return `config` with shared objects numbered in their order; Keras numbers them by their address in memory."""
    if isinstance(config, list):
        return [_numbered(item, numbers) for item in config]
    if not isinstance(config, dict):
        return config
    return {
        key: numbers.setdefault(value, len(numbers)) if key == "shared_object_id" else _numbered(value, numbers)
        for key, value in config.items()
    }
