"""Files with layers of other libraries, as Keras 3 can load them: with a layer of Keras's own in the place of each."""

from __future__ import annotations

import copy
import io
import json
import re
import shutil
import tempfile
import warnings
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import keras
import numpy as np
from numpy.typing import NDArray

from fpgaprune.errors import ModelImportError
from fpgaprune.files import check_names, in_a_line, layer_configs, read_weights, to_keras3

# The variables of the layers of QKeras in a `.keras` file, in the order of their creation.
_VARIABLES: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("QDense", "QConv1D", "QConv2D", "Dense", "Conv1D", "Conv2D"), ("kernel", "bias")),
    **dict.fromkeys(("QDepthwiseConv2D", "DepthwiseConv2D"), ("depthwise_kernel", "bias")),
    "BatchNormalization": ("gamma", "beta", "moving_mean", "moving_variance"),
}
_SWITCHES = {"bias": "use_bias", "gamma": "scale", "beta": "center"}


def float_model(
    document: Mapping[str, object], file: Path, path: Path, kinds: Mapping[str, str], silent: Collection[str] = ()
) -> Any:
    """Return the network of Keras's own layers with the weights as they are trained.

    Args:
        document: the configuration of the model.
        file: the HDF5 file with its weights.
        path: the file of the user, for messages.
        kinds: class of a layer to that of the layer of Keras's that computes the same with floats.
        silent: names of layers whose weights are not loaded.

    Raises:
        ModelImportError: Keras cannot rebuild it.
    """
    plain = copy.deepcopy({"class_name": document.get("class_name"), "config": document.get("config")})
    if plain["class_name"] == "Sequential":
        plain["config"] = _with_input(plain["config"])
    for one in layer_configs(plain):
        kind, config = one["class_name"], one["config"]
        if kind == "PruneLowMagnitude":
            raise ModelImportError(
                f"{path} has pruning wrappers; save tfmot.sparsity.keras.strip_pruning(model) instead"
            )
        if kind in kinds:
            one["class_name"] = kind = kinds[kind]
            one["config"] = config = _float_settings(kind, config)
            one.pop("module", None)
            one.pop("registered_name", None)
        if isinstance(config.get("dtype"), str):
            config["dtype"] = "float32"
        to_keras3(one)
    try:
        check_names(plain)
        with tempfile.TemporaryDirectory(prefix="fpgaprune-float-") as folder:
            copied = shutil.copyfile(file, Path(folder) / "model.h5")
            _write_float(copied, plain, silent)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return keras.saving.load_model(copied, compile=False)
    except Exception as error:
        # A layer may raise anything if its settings are of another Keras.
        raise ModelImportError(f"Keras 3 cannot rebuild {path}: {in_a_line(error)}") from error


def _with_input(config: Any) -> dict[str, Any]:
    """Return the settings of a Sequential that begins with its input; Keras 2 may name its shape in another layer."""
    found: dict[str, Any] = {"name": "sequential", "layers": config} if isinstance(config, list) else config
    layers = found.get("layers")
    first = next(layer_configs(layers), None)
    if not isinstance(layers, list) or first is None or first["class_name"] == "InputLayer":
        return found
    shape = first["config"].pop("batch_input_shape", None)
    entry = {"name": f"{first['config'].get('name')}_input", "batch_shape": shape, "dtype": "float32"}
    return found if shape is None else {**found, "layers": [{"class_name": "InputLayer", "config": entry}, *layers]}


def _write_float(path: Path, document: Mapping[str, object], silent: Collection[str]) -> None:
    """Give the copy at `path` the configuration `document`, and to each layer the weights of its own alone."""
    import h5py

    with h5py.File(path, "r+") as file:
        file.attrs["model_config"] = json.dumps(document)
        for name, layer in file["model_weights"].items():
            names = list(layer.attrs.get("weight_names", ()))
            if name in silent:
                layer.attrs["weight_names"] = []
            elif any(_last_name(name) == "iteration" for name in names):
                layer.attrs["weight_names"] = [name for name in names if _last_name(name) in ("kernel", "bias")]


def _float_settings(kind: str, config: Mapping[str, object]) -> dict[str, Any]:
    """Return the settings of `config` that Keras's layer of class `kind` has and that are not about training."""
    layer = getattr(keras.layers, kind)
    known = {"name", "batch_input_shape", "units", "filters", "kernel_size", "strides", "padding", "data_format"}
    known |= {"dilation_rate", "groups", "use_bias", "depth_multiplier"}
    found = {name: value for name, value in config.items() if name in known}
    if layer is keras.layers.DepthwiseConv2D:
        found.pop("groups", None)
    if kind == "Activation":
        return {"name": config.get("name"), "activation": "linear"}
    return found


def stored_arrays(path: Path) -> dict[str, dict[str, NDArray[np.float32]]]:
    """Map layer name to name of a weight to its values, as Keras 2 writes them."""
    import h5py

    found: dict[str, dict[str, NDArray[np.float32]]] = {}
    with h5py.File(path, "r") as file:
        layers = file.get("model_weights", file)
        for layer in layers:
            names = layers[layer].attrs.get("weight_names", ())
            found[layer] = {
                _last_name(name): np.asarray(layers[layer][name if isinstance(name, str) else name.decode()])
                for name in names
            }
    return found


def _last_name(name: Any) -> str:
    text = name if isinstance(name, str) else name.decode()
    return text.rsplit("/", 1)[-1].split(":")[0]


@contextmanager
def as_hdf5(path: Path, document: Mapping[str, object]) -> Iterator[Path]:
    """Yield the `.h5` file at `path`, or one with the weights of the `.keras` file there, as Keras 2 writes them.

    Raises:
        ModelImportError: a layer has weights whose order is not known.
    """
    import h5py

    if h5py.is_hdf5(path):
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="fpgaprune-hdf5-") as folder:
        file = Path(folder) / "model.h5"
        with h5py.File(io.BytesIO(read_weights(path, ModelImportError)), "r") as source, h5py.File(file, "w") as made:
            _rewrite(path, document, source, made)
        yield file


def _variables(document: Mapping[str, Any], source: Any) -> dict[str, Any]:
    """Map layer name to its variables; Keras 2 numbers the layers of each class in place of a name."""
    if "layers" in source:
        groups = (one["vars"] for one in source["layers"].values() if "vars" in one)
        return {str(group.attrs["name"]): group for group in groups if "name" in group.attrs}
    found: dict[str, Any] = {}
    counts: Counter[str] = Counter()
    for one in layer_configs(document["config"].get("layers", [])):
        kind = re.sub("([a-z])([A-Z])", r"\1_\2", re.sub("(.)([A-Z][a-z]+)", r"\1_\2", one["class_name"])).lower()
        number = counts[kind]
        counts[kind] += 1
        group = source.get(f"_layer_checkpoint_dependencies/{kind}{f'_{number}' if number else ''}/vars")
        if group is not None:
            found[str(one["config"].get("name"))] = group
    return found


def _rewrite(path: Path, document: Mapping[str, Any], source: Any, made: Any) -> None:
    stored = _variables(document, source)
    group = made.create_group("model_weights")
    made.attrs["keras_version"] = "3.0.0"
    made.attrs["backend"] = "tensorflow"
    order: list[str] = []
    for one in layer_configs(document["config"].get("layers", [])):
        name = str(one["config"].get("name"))
        values = stored.pop(name, None)
        if values is None or not len(values):
            continue
        names = [
            key for key in _VARIABLES.get(one["class_name"], ()) if one["config"].get(_SWITCHES.get(key, ""), True)
        ]
        if len(names) != len(values):
            raise ModelImportError(
                f"{path}: layer {name!r} is a {one['class_name']} with {len(values)} weights, which is not taken over; "
                f"wanted one of {', '.join(_VARIABLES)}"
            )
        layer = group.create_group(name)
        for at, key in enumerate(names):
            if str(at) not in values:
                raise ModelImportError(f"{path}: layer {name!r} has no weight {at} in the file; save the model again")
            layer.create_dataset(f"{name}/{key}:0", data=values[str(at)][()])
        layer.attrs["weight_names"] = [f"{name}/{key}:0" for key in names]
        order.append(name)
    if not order:
        raise ModelImportError(f"{path} holds no weights of its layers; save the whole model again")
    group.attrs["layer_names"] = order
