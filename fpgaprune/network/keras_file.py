"""Reads `.keras` and `.h5` files without Keras.

The certificate of a file must not depend on the library that wrote it, so the weights are read with h5py alone, which
is also fast. A `.keras` file is a zip of `config.json`, `metadata.json` and `model.weights.h5`. In the last, each
layer's variables are under `.../vars/<i>` in creation order, and the attribute `name` of `vars` is the layer's name.
An `.h5` file of Keras 3 is read too: it is HDF5 as a whole, and names each array.
"""

from __future__ import annotations

import io
import itertools
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fpgaprune.errors import CertificateError
from fpgaprune.files import (
    PARSER_ERRORS,
    in_a_line,
    read_configuration,
    read_weights,
)
from fpgaprune.values import Array, NamedWeights, keras_names

_KERNEL_BIAS = ("kernel", "bias")
_RECURRENT = ("kernel", "recurrent_kernel", "bias")
# Each layer's variables in the order of their creation.
_VARIABLES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(
        ("Dense", "Conv1D", "Conv2D", "Conv3D", "Conv1DTranspose", "Conv2DTranspose", "Conv3DTranspose"), _KERNEL_BIAS
    ),
    # HGQ2's; what it trains of bits stands behind these.
    **dict.fromkeys(("QDense", "QBatchNormDense", "QConv1D", "QConv2D"), _KERNEL_BIAS),
    **dict.fromkeys(("DepthwiseConv1D", "DepthwiseConv2D", "EinsumDense"), _KERNEL_BIAS),
    **dict.fromkeys(("SeparableConv1D", "SeparableConv2D"), ("depthwise_kernel", "pointwise_kernel", "bias")),
    **dict.fromkeys(("LSTM", "GRU", "SimpleRNN"), _RECURRENT),
    "BatchNormalization": ("gamma", "beta", "moving_mean", "moving_variance"),
    "LayerNormalization": ("gamma", "beta"),
    "Normalization": ("mean", "variance", "count"),
    "PReLU": ("alpha",),
    "Embedding": ("embeddings",),
}
# The layers of QKeras 0.9.
_QKERAS = frozenset(
    {
        *("QActivation", "QAdaptiveActivation", "QAveragePooling2D", "QBatchNormalization", "QConv1D", "QConv2D"),
        *("QConv2DBatchnorm", "QConv2DTranspose", "QDense", "QDenseBatchnorm", "QDepthwiseConv2D"),
        *("QDepthwiseConv2DBatchnorm", "QGRU", "QGlobalAveragePooling2D", "QLSTM", "QMobileNetSeparableConv2D"),
        *("QSeparableConv1D", "QSeparableConv2D", "QSimpleRNN"),
    }
)
_LIBRARIES = {
    "QKeras": _QKERAS,
    "HGQ 1": frozenset({"FixedPointQuantizer"}),
    "BinaryNet": frozenset({"BinaryDense", "TernaryDense"}),
}
# Packages under which libraries register their classes with Keras 3.
_PACKAGES = {"hgq": "HGQ2", "qkeras": "QKeras"}
# The variables that a setting in the layer's config can leave out.
_SWITCHES = {"bias": "use_bias", "gamma": "scale", "beta": "center"}


def read_keras_weights(path: str | os.PathLike[str]) -> NamedWeights[Array]:
    """Read weight path to array, for every layer of a class that this module knows; exact bits.

    Raises:
        CertificateError: the file is missing, or is neither a `.keras` nor an `.h5` file with a whole model.
    """
    # Commands that read no model start faster without it.
    import h5py

    source = Path(path)
    config = _config(source)
    weights = read_weights(source, CertificateError)
    try:
        with h5py.File(io.BytesIO(weights), "r") as file:
            legacy = file.get("model_weights")
            found = list(_model_weights(config, file, "") if legacy is None else _legacy_weights(config, legacy))
    except PARSER_ERRORS as error:
        raise CertificateError(f"{path} is not a whole model file: {in_a_line(error)}") from error
    model = str(config.get("name"))
    names = {path: keras_names(model, nested, path) for nested, path, _ in found}
    return NamedWeights({path: array for _, path, array in found}, names)


@dataclass(frozen=True)
class Ends:
    """The inputs and outputs of a saved model, as far as its file tells.

    Attributes:
        inputs: name of each input to the shape of one sample; None for an unknown shape.
        outputs: name of each output.
        classes: number of units of the last layer if it is a Dense layer, else None.
    """

    inputs: Mapping[str, tuple[int | None, ...] | None]
    outputs: tuple[str, ...]
    classes: int | None


def read_keras_ends(path: str | os.PathLike[str]) -> Ends:
    """Return the inputs and outputs of the model saved at `path`.

    Raises:
        CertificateError: the file is missing, or is neither a `.keras` nor an `.h5` file with a whole model.
    """
    config = _config(Path(path))
    try:
        return _ends(config)
    except PARSER_ERRORS as error:
        raise CertificateError(f"{path} is not a whole model file: {in_a_line(error)}") from error


def _ends(config: dict[str, Any]) -> Ends:
    layers = config.get("layers", [])
    entries = [layer["config"] for layer in layers if layer["class_name"] == "InputLayer"]
    shapes = {str(entry["name"]): entry.get("batch_shape") or entry.get("batch_input_shape") for entry in entries}
    order = _names(config.get("input_layers")) or list(shapes)
    if not order:
        order, shapes = ["input"], {"input": config.get("build_input_shape")}
    found = {name: shapes.get(name) for name in order}
    last = [layer for layer in layers if layer["class_name"] not in ("Activation", "Softmax", "Dropout")][-1:]
    units = [layer["config"]["units"] for layer in last if layer["class_name"] == "Dense" and _is_known(layer)]
    last_layers = config.get("output_layers")
    # Losses, metrics and labels are named by the keys of a mapping.
    keys = sorted(last_layers) if isinstance(last_layers, Mapping) else _names(last_layers)
    outputs = keys or [layer["config"].get("name", "output") for layer in layers[-1:]]
    sizes = {name: None if shape is None else tuple(shape[1:]) for name, shape in found.items()}
    return Ends(sizes, tuple(outputs), units[0] if units and len(outputs) == 1 else None)


@dataclass(frozen=True)
class SavedLayer:
    """A layer of a saved model.

    Attributes:
        name: its name.
        kind: its class.
        module: the module of the class.
        nested: whether it is a model itself.
        phases: strides of a transposed convolution; None for any other layer.
    """

    name: str
    kind: str
    module: str
    nested: bool
    phases: tuple[int, ...] | None = None


def trained_bits(path: str | os.PathLike[str]) -> str | None:
    """Name the library that trained the bits of the network at `path`, such as `HGQ2` or `QKeras`; None for others.

    Nothing is loaded. HGQ2 and QKeras for Keras 3 register their classes. In files of Keras 2 a class such as `QDense`
    stands by its name alone.
    """
    try:
        found = read_configuration(Path(path), CertificateError)
    except CertificateError:
        return None
    packages = {name.partition(">")[0] for name in _named(found.document, "registered_name") if ">" in name}
    for package, library in _PACKAGES.items():
        if package in packages:
            return library
    classes = set(_named(found.document, "class_name")) if found.version.startswith("2.") else set()
    return next((library for library, known in _LIBRARIES.items() if classes & known), None)


def _named(document: object, key: str) -> Iterator[str]:
    """Yield the texts under `key` anywhere in `document`."""
    if isinstance(document, Mapping):
        name = document.get(key)
        if isinstance(name, str):
            yield name
    if isinstance(document, Mapping | list):
        for value in document.values() if isinstance(document, Mapping) else document:
            yield from _named(value, key)


def read_keras_layers(path: str | os.PathLike[str]) -> tuple[SavedLayer, ...]:
    """Return the layers of the model saved at `path`, in its order; those of a model inside it stand after that.

    Raises:
        CertificateError: the file is missing, or is neither a `.keras` nor an `.h5` file with a whole model.
    """
    return tuple(_saved_layers(_config(Path(path))))


def _saved_layers(config: dict[str, Any]) -> Iterator[SavedLayer]:
    for layer in config.get("layers", []):
        # A user's class may be registered under a module of Keras.
        module = str(layer.get("module") or layer.get("registered_name") or "")
        nested = "layers" in layer["config"]
        strides = layer["config"].get("strides") if layer["class_name"].endswith("Transpose") else None
        phases = tuple(strides) if isinstance(strides, list) else None
        yield SavedLayer(str(layer["config"].get("name")), str(layer["class_name"]), module, nested, phases)
        if nested:
            yield from _saved_layers(layer["config"])


def _names(ends: object) -> list[str]:
    """Name the layers in `ends`: Keras writes one as [name, node, tensor], several as a list or a mapping.

    A model has those of a mapping in the order of its keys.
    """
    if isinstance(ends, Mapping):
        return [name for _, end in sorted(ends.items()) for name in _names(end)]
    if not isinstance(ends, list) or not ends:
        return []
    if isinstance(ends[0], str):
        return [ends[0]]
    return [name for end in ends for name in _names(end)]


def _config(path: Path) -> dict[str, Any]:
    """Read the configuration of the model at `path`, and require a class and a configuration of each layer."""
    document = read_configuration(path, CertificateError).document
    config = document.get("config")
    if isinstance(config, dict) and _are_layers(config.get("layers", [])):
        return config
    raise CertificateError(f"{path} is not a whole model file: its configuration has no list of layers")


def _are_layers(layers: object) -> bool:
    return isinstance(layers, list) and all(
        isinstance(layer, dict)
        and isinstance(layer.get("class_name"), str)
        and isinstance(layer.get("config"), dict)
        and _are_layers(layer["config"].get("layers", []))
        for layer in layers
    )


def _model_weights(config: dict[str, Any], group: Any, nested: str) -> Iterator[tuple[str, str, Array]]:
    """Yield the names of the nested models around each weight, the weight's path, and its array."""
    stored = {_name_of(entry): entry for entry in group.get("layers", {}).values()}
    for layer in config.get("layers", []):
        name = layer["config"].get("name")
        entry = stored.get(name)
        if entry is None:
            continue
        if "layers" in layer["config"]:
            yield from _model_weights(layer["config"], entry, f"{nested}{name}/")
            continue
        for owner, variables, holder in _owners(entry, name, layer):
            for index, variable in enumerate(_variable_names(holder)):
                if str(index) in variables:
                    yield nested, f"{nested}{owner}/{variable}", np.asarray(variables[str(index)])


def _owners(entry: Any, path: str, layer: dict[str, Any]) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    """Yield the variables of `layer`, of the cell inside it and of the layers that it wraps.

    Each comes with the path of its owner and the layer that says its variables.
    """
    inner = [layer["config"].get(key) for key in ("layer", "backward_layer")]
    wrapped = {one["config"].get("name"): one for one in inner if isinstance(one, dict) and "config" in one}
    if len(entry["vars"]):
        yield path, entry["vars"], layer
    for child in entry.values():
        name = _name_of(child)
        if name in wrapped:
            yield from _owners(child, f"{path}/{name}", wrapped[name])
        elif "vars" in child and len(child["vars"]):
            yield f"{path}/{name}", child["vars"], layer


def _legacy_weights(config: dict[str, Any], group: Any) -> Iterator[tuple[str, str, Array]]:
    """Read as `_model_weights` the group of an `.h5` file: Keras names each array there by the variable's path."""
    for layer in config.get("layers", []):
        name = layer["config"].get("name")
        entry = group.get(name)
        if entry is None:
            continue
        inner = list(_leaves(layer, ""))
        for text in _texts(entry, "weight_names"):
            parts = text.split("/")
            nested, owner = next(((nested, owner) for nested, owner in inner if owner in parts), ("", name))
            tail = parts[parts.index(owner) :] if owner in parts else [owner, *parts]
            yield nested, nested + "/".join(tail), np.asarray(entry[text])


def _leaves(layer: dict[str, Any], nested: str) -> Iterator[tuple[str, str]]:
    """Yield the names of the nested models around each layer in `layer`, and its name; itself if it is no model."""
    name = layer["config"].get("name")
    if "layers" not in layer["config"]:
        yield nested, name
        return
    for inner in layer["config"]["layers"]:
        yield from _leaves(inner, f"{nested}{name}/")


def _texts(entry: Any, attribute: str) -> list[str]:
    """Return the texts in an attribute of an HDF5 group; Keras divides a long one into `NAME0`, `NAME1` and so on."""
    if attribute in entry.attrs:
        names = list(entry.attrs[attribute])
    else:
        parts = itertools.takewhile(lambda key: key in entry.attrs, (f"{attribute}{n}" for n in itertools.count()))
        names = [name for key in parts for name in entry.attrs[key]]
    return [name.decode("utf-8") if isinstance(name, bytes) else str(name) for name in names]


def _name_of(entry: Any) -> str | None:
    return str(entry["vars"].attrs["name"]) if "vars" in entry and "name" in entry["vars"].attrs else None


def _is_known(layer: Mapping[str, object]) -> bool:
    """Return whether the class of `layer` is Keras's or HGQ2's, and not a user's class of the same name."""
    registered = str(layer.get("registered_name") or "")
    # Keras 2 names no module.
    return registered.startswith("hgq>") or (not registered and str(layer.get("module") or "keras").startswith("keras"))


def _variable_names(layer: dict[str, Any]) -> list[str]:
    names = _VARIABLES.get(layer["class_name"], ()) if _is_known(layer) else ()
    return [name for name in names if layer["config"].get(_SWITCHES.get(name, ""), True)]
