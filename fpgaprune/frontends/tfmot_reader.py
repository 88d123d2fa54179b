"""Reads a tf_keras model, pruned with TF-MOT or not, and writes plain files. Runs in a process of its own.

Started as `python -P tfmot_reader.py SOURCE FOLDER` with TF_USE_LEGACY_KERAS=1, because that setting and tf_keras must
not enter the process that holds Keras 3. Whoever starts it has refused files that hold code. Imports nothing of
fpgaprune. Writes into FOLDER: `model.h5` (the model without wrappers: JSON and arrays), `masks.npz`, `probe.npz`
(inputs and what the model gives for them), `report.json`.
"""

from __future__ import annotations

import atexit
import gc
import json
import resource
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

SAMPLES = 16
# Loading a model may take this many bytes, plus this many times the size of its file.
_MAX_BYTES, _MAX_GROWTH = 1 << 34, 50


def main(source: Path, folder: Path) -> None:
    """Read the model, and leave its files in `folder`.

    Raises:
        ValueError: the model cannot be taken apart.
    """
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
    # A wrapper multiplies its weight by its mask on every call, in inference too: the predictions of the file are those
    # of the masked weights, and after the first call the weights are masked.
    inputs = [_samples(tensor.shape) for tensor in model.inputs]
    # Not `predict`: tracing the network takes far longer than these few samples.
    outputs = model(inputs[0] if len(inputs) == 1 else inputs, training=False)
    stripped = tfmot.sparsity.keras.strip_pruning(model) if wrappers else model
    stripped.save(str(folder / "model.h5"), save_format="h5", include_optimizer=False)
    np.savez(folder / "masks.npz", **masks)
    probe = {f"input_{at}": array for at, array in enumerate(inputs)}
    flat = outputs if isinstance(outputs, list) else [outputs]
    probe.update({f"output_{at}": np.asarray(array) for at, array in enumerate(flat)})
    np.savez(folder / "probe.npz", **probe)
    report = {"wrappers": wrappers, "left_nonzero": {path: count for path, count in nonzero.items() if count}}
    (folder / "report.json").write_text(json.dumps(report))


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
    # One short task: the libraries' objects stay, and looking through them at the end takes as long as the task.
    gc.disable()
    atexit.register(gc.freeze)
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    if most == resource.RLIM_INFINITY:
        given = Path(sys.argv[1])
        size = given.stat().st_size if given.is_file() else 0
        resource.setrlimit(resource.RLIMIT_DATA, (_MAX_BYTES + _MAX_GROWTH * size, most))
    main(Path(sys.argv[1]), Path(sys.argv[2]))
