"""`load`: the one door by which a network comes in, whatever its format."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from fpgaprune.errors import ConfigError, FpgaPruneError, ModelImportError
from fpgaprune.frontends.architecture import is_architecture, whole_model
from fpgaprune.frontends.keras_files import FORMAT, load_keras
from fpgaprune.frontends.loaded import ImportDifference, LoadedNetwork, zero_masks
from fpgaprune.frontends.onnx.front import load_onnx
from fpgaprune.frontends.tfmot_model import import_tfmot, is_tf_keras
from fpgaprune.keras_file import trained_bits

_OF_TORCH = (".pt", ".pth")


def is_onnx(path: Path) -> bool:
    """Whether `path` names an ONNX file."""
    return path.suffix.lower() == ".onnx"


def load(
    path: str | os.PathLike[str],
    weights: str | os.PathLike[str] | None = None,
    *,
    samples: Any = None,
    trusted: bool = False,
) -> LoadedNetwork:
    """Loads a trained network of any format that comes in, and compares it with that format's own interpreter.

    An ONNX file becomes a Keras model with its channels last; its weights keep the names of their file in `sources`,
    and `locks` takes them: `features.0.weight[13, 29]`.

    Args:
        path: an ONNX file, a `.keras` or `.h5` file of Keras 3, HGQ2, QKeras, tf_keras or TF-MOT, a SavedModel, or the
            architecture of a network of Keras or QKeras as JSON.
        weights: the file of the weights, if `path` is an architecture of Keras as JSON.
        samples: samples on which an ONNX file is compared with onnxruntime besides 256 random ones, in the shapes of
            the Keras model; one array for each input.
        trusted: whether a SavedModel may be read. Its program runs on loading, so trust only your own.

    Raises:
        ConfigError: there is no such file, or its format is not known.
        ModelImportError: the network cannot come in with the same meaning; the message says why and what to do.
        UnsupportedLayerError: a layer of HGQ2's or QKeras's has no exact counterpart.

    Examples:
        >>> _ = fp.export_onnx(model, "net.onnx")
        >>> net = fp.load("net.onnx")
        >>> masks = net.locks(["conv1/kernel[:, :, 0, 2]"])  # or as in PyTorch: "features.0.weight[13, 29]"
        >>> net.model.compile("adam", "sparse_categorical_crossentropy")
        >>> _ = fp.finetune(net.model, masks, x, y)
    """
    source = Path(path)
    if not source.exists():
        raise ConfigError(f"model file {source} does not exist")
    if source.suffix.lower() in _OF_TORCH:
        raise ModelImportError(f"{source} is a program of PyTorch, which is not run: export it: {export_lines(source)}")
    if is_architecture(source):
        return _in_parts(source, None if weights is None else Path(weights))
    if weights is not None:
        raise ConfigError(f"{source} holds its weights itself; leave weights={os.fspath(weights)!r} out")
    if is_onnx(source):
        return load_onnx(source, samples)
    library = trained_bits(source)
    if library is not None:
        return _with_bits(source, library)
    if is_tf_keras(source):
        found = import_tfmot(source, trusted=trusted)
        told = ImportDifference("tf_keras", None, found.max_abs_error, 16)
        return LoadedNetwork(found.model, found.masks, {}, {}, told, "tf_keras", found.to_json())
    model = load_keras(source)
    return LoadedNetwork(model, zero_masks(model), {}, {}, None, FORMAT)


def export_lines(path: Path) -> str:
    """The lines of Python that turn a module of PyTorch into the ONNX file beside `path`."""
    return (
        "module.eval(); torch.onnx.export(module, torch.zeros(1, CHANNELS, HEIGHT, WIDTH), "
        f"'{path.with_suffix('.onnx').name}', dynamo=True)"
    )


def _in_parts(architecture: Path, weights: Path | None) -> LoadedNetwork:
    """The network of an architecture and its weights, read as the whole model that Keras would have saved."""
    if weights is None:
        raise ConfigError(
            f"{architecture} is an architecture without weights; give them too: fp.load({architecture.name!r}, "
            "weights='weights.h5'), 'fpgaprune convert --weights'"
        )
    if not weights.exists():
        raise ConfigError(f"file of weights {weights} does not exist")
    with tempfile.TemporaryDirectory(prefix="fpgaprune-parts-") as name:
        whole = whole_model(architecture, weights, Path(name))
        try:
            return load(whole)
        except FpgaPruneError as error:
            said = str(error).replace(str(whole), f"{architecture} with {weights}")
            raise ModelImportError(said) from error


def _with_bits(path: Path, library: str) -> LoadedNetwork:
    from fpgaprune.quantise import import_hgq, import_layers, import_qkeras, kernel_types

    if library == "HGQ2":
        found = import_hgq(path)
    else:
        found = import_qkeras(path) if library == "QKeras" else import_layers(path, library)
    return LoadedNetwork(found.model, found.masks, kernel_types(found.model), {}, None, library, found.to_json())
