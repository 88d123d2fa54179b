"""`load`: the one door by which a network comes in, whatever its format; files of Keras run none of their code."""

from __future__ import annotations

import os
import tempfile
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from fpgaprune.errors import ConfigError, FpgaPruneError, ModelImportError, require_kind
from fpgaprune.files import check_names, does_not_exist, in_a_line, read_configuration, read_weights, require_layers
from fpgaprune.frontends.architecture import is_architecture, whole_model
from fpgaprune.frontends.loaded import ImportDifference, LoadedNetwork, zero_masks
from fpgaprune.frontends.onnx.front import load_onnx
from fpgaprune.frontends.tfmot_model import import_tfmot, is_tf_keras
from fpgaprune.network import trained_bits
from fpgaprune.processes import bounded_memory

if TYPE_CHECKING:
    import keras

_OF_TORCH = (".pt", ".pth")


def is_onnx(path: Path) -> bool:
    """Return whether `path` names an ONNX file."""
    return path.suffix.lower() == ".onnx"


def load(
    path: str | os.PathLike[str],
    weights: str | os.PathLike[str] | None = None,
    *,
    samples: object = None,
    trusted: bool = False,
) -> LoadedNetwork:
    """Load a trained network of any format that comes in, and compare it with that format's own interpreter.

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
    require_kind(path, (str, os.PathLike), ConfigError, "path", "the path of a network")
    source = Path(path)
    if not source.exists():
        raise ConfigError(does_not_exist(source, "model file"))
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
    """Return the lines of Python that turn a module of PyTorch into the ONNX file beside `path`."""
    return (
        "module.eval(); torch.onnx.export(module, torch.zeros(1, CHANNELS, HEIGHT, WIDTH), "
        f"'{path.with_suffix('.onnx').name}', dynamo=True)"
    )


def _in_parts(architecture: Path, weights: Path | None) -> LoadedNetwork:
    """Return the network of an architecture and its weights, read as the whole model that Keras would have saved."""
    if weights is None:
        raise ConfigError(
            f"{architecture} is an architecture without weights; give them too: fp.load({architecture.name!r}, "
            "weights='weights.h5'), 'fpgaprune convert --weights'"
        )
    if not weights.exists():
        raise ConfigError(does_not_exist(weights, "file of weights"))
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


FORMAT = "Keras 3"
# Loading a network may take this many bytes, plus this many times the size of its file.
_MAX_BYTES, _MAX_GROWTH = 1 << 32, 20


def load_keras(path: Path) -> keras.Model:
    """Load the model that Keras 3 saved at `path`, uncompiled: the file cannot hold a user's own loss function.

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
