"""Reads a tf_keras model, pruned with TF-MOT or not, and writes plain files. Runs in a process of its own.

Started as `python -P tfmot_reader.py SOURCE FOLDER [trusted]` with TF_USE_LEGACY_KERAS=1, because that setting and
tf_keras must not enter the process that holds Keras 3. Imports nothing of fpgaprune. Writes into FOLDER: `model.h5`
(the model without wrappers: JSON and arrays), `masks.npz`, `probe.npz` (inputs and what the model gives for them),
`report.json`.
"""

from __future__ import annotations

import json
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np

SAMPLES = 16
# Classes that hold code, and the packages whose classes are known.
_CODE = ("Lambda", "__lambda__")
_MODULES = ("builtins", "keras", "tensorflow", "tensorflow_model_optimization", "tf_keras")


def main(source: Path, folder: Path, *, trusted: bool = False) -> None:
    """The files stand in `folder`.

    Raises:
        ValueError: the model holds code (a Lambda layer, a class of an unknown module, a SavedModel that nobody
            trusts), or cannot be taken apart.
    """
    if not (source.is_dir() and trusted):
        _refuse_code(source)
    import tensorflow_model_optimization as tfmot
    import tf_keras

    with tfmot.sparsity.keras.prune_scope():
        model = tf_keras.models.load_model(str(source), compile=False)
    masks: dict[str, Any] = {}
    wrappers = []
    nonzero: dict[str, int] = {}
    for prefix, layer in _layers(model):
        if type(layer).__name__ != "PruneLowMagnitude":  # TF-MOT does not export the class
            continue
        wrappers.append(prefix + layer.name)
        for weight, mask, _ in layer.pruning_vars:
            path = f"{prefix}{layer.layer.name}/{_tail(weight)}"
            masks[path] = mask.numpy() != 0
            nonzero[path] = int(np.count_nonzero(weight.numpy()[~masks[path]]))
    # A wrapper multiplies its weight by its mask on every call, in inference too: what the file predicts is what the
    # masked weights give, and the weights are masked from here on.
    inputs = [_samples(tensor.shape) for tensor in model.inputs]
    outputs = model.predict(inputs[0] if len(inputs) == 1 else inputs, verbose=0)
    stripped = tfmot.sparsity.keras.strip_pruning(model) if wrappers else model
    stripped.save(str(folder / "model.h5"), save_format="h5", include_optimizer=False)
    np.savez(folder / "masks.npz", **masks)
    probe = {f"input_{at}": array for at, array in enumerate(inputs)}
    flat = outputs if isinstance(outputs, list) else [outputs]
    probe.update({f"output_{at}": np.asarray(array) for at, array in enumerate(flat)})
    np.savez(folder / "probe.npz", **probe)
    report = {"wrappers": wrappers, "left_nonzero": {path: count for path, count in nonzero.items() if count}}
    (folder / "report.json").write_text(json.dumps(report))


def _refuse_code(source: Path) -> None:
    """The file names no code but that of Keras and TF-MOT. Names count as JSON reads them, however they are written."""
    try:
        entries = list(_entries(json.loads(_config(source))))
    except RecursionError as error:
        raise ValueError("its configuration is nested too deep to be a model's") from error
    except json.JSONDecodeError as error:
        raise ValueError(f"its configuration is no JSON: {error}") from error
    for entry in entries:
        if entry.get("class_name") in _CODE:
            raise ValueError("the model has a Lambda layer, whose code would run on loading; replace it by a layer")
        module = entry.get("module")
        if isinstance(module, str) and module.split(".")[0] not in _MODULES:
            raise ValueError(f"the model names the module {module!r}, whose code would run on loading")


def _entries(config: Any) -> Iterator[dict[str, Any]]:
    if isinstance(config, dict):
        yield config
        config = list(config.values())
    if isinstance(config, list):
        for item in config:
            yield from _entries(item)


def _config(source: Path) -> str:
    if source.is_dir():
        raise ValueError(
            "a SavedModel holds a program that runs on loading; save the model as .keras or .h5, or say that you trust "
            "it: fpgaprune import-tfmot --trust"
        )
    if zipfile.is_zipfile(source):
        with zipfile.ZipFile(source) as archive:
            return archive.read("config.json").decode()
    if h5py.is_hdf5(source):
        with h5py.File(source, "r") as file:
            if "model_config" not in file.attrs:
                raise ValueError("the file holds weights without a model; save the whole model")
            config = file.attrs["model_config"]
            return config if isinstance(config, str) else str(config.decode())
    raise ValueError("it is no .keras, .h5 or SavedModel; save the model as one of them")


def _layers(model: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for layer in model.layers:
        if hasattr(layer, "layers"):
            yield from _layers(layer, f"{prefix}{layer.name}/")
        else:
            yield prefix, layer


def _tail(weight: Any) -> str:
    return str(weight.name).split("/")[-1].split(":")[0]


def _samples(shape: Any) -> Any:
    sizes = [8 if size is None else int(size) for size in shape[1:]]
    return np.random.default_rng(0).normal(size=(SAMPLES, *sizes)).astype(np.float32)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), trusted=sys.argv[3:] == ["trusted"])
