"""`import_tfmot`: a tf_keras model pruned with TF-MOT as a Keras 3 model and its masks."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fpgaprune.errors import ModelImportError
from fpgaprune.files import (
    check_names,
    in_a_line,
    layer_configs,
    number_from_zero,
    read_configuration,
    read_npz,
    read_weights,
    to_keras3,
)
from fpgaprune.network import graph_of, largest_difference, structures
from fpgaprune.values import MaskSet, named_weights

if TYPE_CHECKING:
    import keras

# What `quantize_model` puts around layers and in front of the first one.
_EIGHT_BIT = ("QuantizeWrapper", "QuantizeWrapperV2", "QuantizeLayer")
_READER = Path(__file__).with_name("tfmot_reader.py")
_ERROR_LINE = re.compile(r"^(?:\w+\.)*\w*(?:Error|Exception|Warning): (?P<text>.+)$")


@dataclass(frozen=True)
class ImportedModel:
    """An imported model, its masks, and facts about the import.

    Attributes:
        model: Keras 3, without wrappers, not compiled.
        masks: the pruning masks of a wrapped model; the zeros in the kernels of a stripped one.
        wrappers: names of the removed pruning wrappers.
        negative_zeros: weight path to the number of -0.0, if there are any.
        left_nonzero: weight path to the number of elements that TF-MOT's mask locks and that are not zero in the file.
            A wrapper sets them to zero at each call of the model, so here they are zero (or -0.0).
        max_abs_error: largest difference between the two models' predictions on random inputs; rounding explains it.
    """

    model: Any
    masks: MaskSet
    wrappers: tuple[str, ...]
    negative_zeros: dict[str, int]
    left_nonzero: dict[str, int]
    max_abs_error: float

    def to_json(self) -> dict[str, object]:
        """Return all but the model and the masks, as JSON data."""
        return {
            "wrappers": list(self.wrappers),
            "negative_zeros": self.negative_zeros,
            "left_nonzero": self.left_nonzero,
            "max_abs_error": self.max_abs_error,
            "masks": self.masks.digest(),
        }


def is_tf_keras(path: str | os.PathLike[str]) -> bool:
    """Return whether tf_keras saved a model (TF-MOT prunes such models), and not Keras 3.

    A `.keras` or `.h5` file names the version that wrote it. A folder with a `saved_model.pb` is one too, because
    Keras 3 loads no such folder. Nothing is loaded.
    """
    source = Path(path)
    if source.is_dir():
        return (source / "saved_model.pb").is_file()
    try:
        return read_configuration(source, ModelImportError).version.startswith("2.")
    except ModelImportError:
        return False


def import_tfmot(path: str | os.PathLike[str], *, timeout_s: float = 600.0, trusted: bool = False) -> ImportedModel:
    """Import the tf_keras model at `path` as a Keras 3 model that predicts the same, but for rounding, and its masks.

    Another process loads tf_keras and TF-MOT, so that this process keeps its Keras. Weights have the bits with which
    the tf_keras model predicts, including negative zeros; `fp.lock` makes these positive.

    Args:
        path: a `.keras` or `.h5` file or a SavedModel folder, saved with or without pruning wrappers.
        timeout_s: time limit of the process that reads it.
        trusted: whether a SavedModel folder may be read. Its program runs on loading, so trust only your own.

    Raises:
        ModelImportError: there is no such model, it cannot be read or rebuilt, holds code (a Lambda layer, a class of
            an unknown module, a SavedModel that is not trusted), or predicts something else afterwards.
    """
    source = Path(path)
    if not source.exists():
        raise ModelImportError(f"model {source} does not exist; wanted a .keras or .h5 file or a SavedModel folder")
    with tempfile.TemporaryDirectory(prefix="fpgaprune-tfmot-") as name:
        folder = Path(name)
        _run_reader(source, folder, timeout_s, trusted)
        report = json.loads((folder / "report.json").read_text())
        model = _rebuild(folder / "model.h5", source)
        masks = read_npz(folder / "masks.npz")
        error, allowed = _difference(model, read_npz(folder / "probe.npz"), source)
    if not error <= allowed:
        raise ModelImportError(
            f"{source} predicts other values in Keras 3, by {error:.3g} where rounding explains {allowed:.3g}"
        )
    values = {path: np.asarray(variable.numpy()) for path, variable in named_weights(model).items()}
    if not report["wrappers"]:
        masks = {path: array != 0 for path, array in values.items() if path.endswith("kernel") and (array == 0).any()}
    found = MaskSet(masks).fitted(model)
    negative = {path: int(np.count_nonzero((array == 0) & np.signbit(array))) for path, array in values.items()}
    return ImportedModel(
        model,
        found,
        tuple(report["wrappers"]),
        {path: count for path, count in negative.items() if count},
        report["left_nonzero"],
        error,
    )


def _refuse_code(source: Path) -> None:
    document = read_configuration(source, ModelImportError).document
    wrapper = next((one for one in layer_configs(document) if one["class_name"] in _EIGHT_BIT), None)
    if wrapper is not None:
        raise ModelImportError(
            f"{source}: layer {wrapper['config'].get('name')!r} is a {wrapper['class_name']} of TF-MOT's "
            "quantize_model, whose 8-bit scales are no powers of two, so no fixed-point type holds them: save the "
            "network as it was before quantize_model, and train its bits here (quantised = true in [finetune])"
        )
    try:
        check_names({**document, "compile_config": None})
    except ValueError as error:
        raise ModelImportError(f"{source} is refused: {error}") from error
    read_weights(source, ModelImportError)


def _has_layers(folder: Path) -> bool:
    """Return whether the SavedModel in `folder` has objects of tf_keras, by their names; nothing is loaded."""
    graph = folder / "saved_model.pb"
    return (folder / "keras_metadata.pb").exists() or not graph.exists() or b"_tf_keras_" in graph.read_bytes()


def _run_reader(source: Path, folder: Path, timeout_s: float, trusted: bool) -> None:
    if not source.is_dir():
        _refuse_code(source)
    elif not _has_layers(source):
        raise ModelImportError(
            f"{source}: this SavedModel holds functions without layers, as export of Keras 3 writes them; save the "
            f"model itself, as model.save('{source.name}.keras')"
        )
    elif not trusted:
        raise ModelImportError(
            f"{source}: a SavedModel holds a program that runs on loading; save the model as .keras or .h5, or say "
            f"that you trust it: 'fpgaprune convert {source} --trust'"
        )
    environment = {**os.environ, "TF_USE_LEGACY_KERAS": "1", "TF_CPP_MIN_LOG_LEVEL": "3"}
    try:
        done = subprocess.run(
            [sys.executable, "-P", str(_READER), str(source.resolve()), str(folder)],
            env=environment,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ModelImportError(f"reading {source} took more than {timeout_s:g} s; give a larger timeout_s") from error
    if done.returncode:
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        named = [found["text"] for line in lines if (found := _ERROR_LINE.match(line))]
        reason = (named or lines or [f"exit status {done.returncode}"])[-1]
        raise ModelImportError(f"tf_keras cannot read {source}: {reason}")


def _rebuild(path: Path, source: Path) -> keras.Model:
    import h5py
    import keras

    with h5py.File(path, "r+") as file:
        config = file.attrs["model_config"]
        document = json.loads(config if isinstance(config, str) else config.decode())
        for layer in layer_configs(document):
            to_keras3(layer)
        number_from_zero(document)
        file.attrs["model_config"] = json.dumps(document)
    try:
        with warnings.catch_warnings():
            # Keras 3 would rather have another form of old configurations.
            warnings.simplefilter("ignore")
            return keras.saving.load_model(path, compile=False)
    except Exception as error:
        # A layer may raise anything if its settings are of another Keras.
        raise ModelImportError(f"Keras 3 cannot rebuild {source}: {in_a_line(error)}") from error


def _difference(model: Any, probe: dict[str, Any], source: Path) -> tuple[float, float]:
    import keras

    inputs = [probe[f"input_{at}"] for at in range(len(model.inputs))]
    # Not `predict`: tracing the network takes far longer than these few samples.
    given = model(keras.tree.pack_sequence_as(structures(graph_of(model))[0], inputs), training=False)
    outputs = [np.asarray(array) for array in (given if isinstance(given, list) else [given])]
    wanted = [probe[name] for name in sorted(probe) if name.startswith("output_")]
    if [array.shape for array in wanted] != [np.shape(array) for array in outputs]:
        raise ModelImportError(f"{source} has other outputs in Keras 3; wanted {[array.shape for array in wanted]}")
    return largest_difference(model, inputs, wanted, outputs)
