"""`convert_network`: a network of any format that comes in as a `.keras` file and a mask file."""

from __future__ import annotations

from pathlib import Path

from fpgaprune.errors import ConfigError
from fpgaprune.frontends import LoadedNetwork, is_onnx, load, plan_onnx
from fpgaprune.keras_file import save_keras


def convert_network(
    source: Path, out: Path, masks: Path | None = None, weights: Path | None = None, *, trusted: bool = False
) -> LoadedNetwork:
    """`out` holds the Keras 3 form of the network at `source`; `masks`, if given, what is locked in it.

    Args:
        source: a file or folder that `load` takes.
        out: the `.keras` file to write.
        masks: the mask file to write; None for none.
        weights: the file of the weights, if `source` is an architecture of Keras as JSON.
        trusted: whether a SavedModel may be read.

    Raises:
        ConfigError: there is no such file, or `out` is no `.keras` file.
        ModelImportError: the network cannot come in with the same meaning.
    """
    if out.suffix != ".keras":
        raise ConfigError(f"--out {out} is no .keras file; wanted a name such as {out.with_suffix('.keras').name}")
    if source.exists() and is_onnx(source):
        plan_onnx(source)  # refuses most files before TensorFlow starts
    from fpgaprune.flow.task.session import start_session

    start_session(seed=0)
    found = load(source, weights, trusted=trusted)
    save_keras(found.model, out)
    if masks is not None:
        found.masks.save(masks)
    return found
