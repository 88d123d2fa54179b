"""Reads, converts and inspects saved models of every format, and makes the built-in network if a flow names none."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fpgaprune.errors import ConfigError
from fpgaprune.files import does_not_exist
from fpgaprune.flow.task.data import Dataset
from fpgaprune.flow.task.samples import arrays_of
from fpgaprune.frontends import LoadedNetwork, is_onnx, load, plan_onnx
from fpgaprune.network import save_keras
from fpgaprune.report import kernel_norm_png
from fpgaprune.values import NamedWeights, keras_names, named_weights

if TYPE_CHECKING:
    import keras


def read_model(path: Path) -> tuple[Any, dict[str, Any] | None]:
    """Return the model saved at `path`, as an uncompiled Keras 3 model; what an import from another library found.

    Its layers have the channels last, so that a CPU can train it.

    Raises:
        ConfigError: there is no such file, or it holds no model.
        ModelImportError: another library saved it, and Keras 3 cannot make the same predictions with it.
        UnsupportedLayerError: a layer of HGQ2's or QKeras's has no exact counterpart.
    """
    from fpgaprune.lowering import with_channels_last

    found = load(path)
    model = with_channels_last(found.model)
    if found.sources:
        return model, found.to_json()
    return model, dict(found.facts) or None


def starting_model(path: Path | None, data: Dataset) -> keras.Model:
    """Return the model saved at `path`; if that is None, the network that a flow trains on `data`.

    Raises:
        ConfigError: as `read_model`.
        ModelImportError: as `read_model`.
    """
    if path is not None:
        return read_model(path)[0]
    return small_cnn(arrays_of(data.x_train)[0].shape[1:], data.classes or 0)


def load_saved_model(path: Path) -> keras.Model:
    """Return the Keras model saved at `path`, uncompiled, in a quiet and deterministic session.

    Raises:
        ConfigError: as `read_model`.
        ModelImportError: as `read_model`.
    """
    if not path.exists():
        raise ConfigError(does_not_exist(path, "model file"))
    if is_onnx(path):
        plan_onnx(path)  # refuses most files before TensorFlow starts
    from fpgaprune.flow.task.session import start_session

    start_session(seed=0)
    return read_model(path)[0]


def convert_network(
    source: Path,
    out: Path | None = None,
    masks: Path | None = None,
    weights: Path | None = None,
    *,
    trusted: bool = False,
) -> tuple[LoadedNetwork, Path]:
    """Write the network at `source` in the Keras 3 form, and its locks to `masks` if that is given.

    Returns:
        The network, and its file.

    Args:
        source: a file or folder that `load` takes.
        out: the `.keras` file to write; None for a new one in the current folder, with the name of `source`.
        masks: the mask file to write; None for none.
        weights: the file of the weights, if `source` is an architecture of Keras as JSON.
        trusted: whether a SavedModel may be read.

    Raises:
        ConfigError: there is no such file, `out` is no `.keras` file, or a file would be lost.
        ModelImportError: the network cannot come in with the same meaning.
    """
    if out is None:
        out = Path(source.with_suffix(".keras").name)
        if out.exists():
            raise ConfigError(f"{out} exists; name the file to write with --out")
    if out.exists() and source.exists() and out.samefile(source):
        raise ConfigError(f"--out {out} is the network itself, which would be lost; name another file")
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
    return found, out


def inspect_model(path: Path, folder: Path | None = None) -> dict[str, Any]:
    """Return layers with shapes, parameters and l1 norms per kernel as JSON data; plot each convolution to `folder`.

    Raises:
        ConfigError: `path` is no Keras model.
    """
    model = load_saved_model(path)
    paths = {id(variable): name for name, variable in named_weights(model).items()}
    layers, heat_maps = [], []
    for layer in model.layers:
        arrays = {paths[id(v)]: v.numpy() for v in layer.variables if id(v) in paths}
        norms = {
            name: np.abs(array).sum(axis=tuple(range(array.ndim - 2)))
            for name, array in arrays.items()
            if name.endswith("/kernel") and array.ndim > 2
        }
        if folder is not None:
            for name, of_kernels in norms.items():
                heat_maps.append(kernel_norm_png(of_kernels, name, folder / f"{name.replace('/', '_')}.png"))
        layers.append(
            {
                "name": layer.name,
                "class": type(layer).__name__,
                "output_shape": _shape(layer),
                "parameters": sum(array.size for array in arrays.values()),
                "zeros": sum(int((array == 0).sum()) for array in arrays.values()),
                "weights": {name: list(array.shape) for name, array in arrays.items()},
                "kernels": _kernel_counts(norms),
            }
        )
    return {"model": str(path), "layers": layers, "heat_maps": [str(heat_map) for heat_map in heat_maps]}


def _shape(layer: object) -> list[int | None]:
    shape = getattr(getattr(layer, "output", None), "shape", None)
    return [] if shape is None else list(shape[1:])


def _kernel_counts(norms: dict[str, Any]) -> dict[str, Any] | None:
    if not norms:
        return None
    return {
        "total": sum(norm.size for norm in norms.values()),
        "zero": sum(int((norm == 0).sum()) for norm in norms.values()),
        "l1_norms": {name: norm.round(6).tolist() for name, norm in norms.items()},
    }


NAME = "small_cnn"
FILTERS = (32, 32, 16)


def small_cnn(input_shape: tuple[int, ...], classes: int) -> keras.Model:
    """Return an uncompiled Keras CNN: three 3x3 convolutions with BatchNorm and ReLU, one pooling, a Dense head."""
    import keras
    from keras import layers

    stack: list[Any] = [keras.Input(input_shape, name="input")]
    for number, filters in enumerate(FILTERS, start=1):
        padding = "same" if number < len(FILTERS) else "valid"
        stack += [
            layers.Conv2D(filters, 3, padding=padding, name=f"conv{number}"),
            layers.BatchNormalization(momentum=0.9, name=f"bn{number}"),
            layers.ReLU(name=f"relu{number}"),
        ]
        if number == 2:
            stack.append(layers.MaxPooling2D(name="pool"))
    stack += [
        layers.Flatten(name="flatten"),
        layers.Dropout(0.2, name="dropout"),
        layers.Dense(classes, name="dense"),
        layers.Softmax(name="softmax"),
    ]
    return keras.Sequential(stack, name=NAME)


def small_cnn_shapes(input_shape: tuple[int, ...], classes: int) -> NamedWeights[tuple[int, ...]]:
    """Map weight path to shape in `small_cnn`, without loading TensorFlow."""
    height, width, channels = input_shape
    shapes: dict[str, tuple[int, ...]] = {}
    for number, filters in enumerate(FILTERS, start=1):
        shapes[f"conv{number}/kernel"] = (3, 3, channels, filters)
        shapes[f"conv{number}/bias"] = (filters,)
        for vector in ("gamma", "beta", "moving_mean", "moving_variance"):
            shapes[f"bn{number}/{vector}"] = (filters,)
        channels = filters
    shapes["dense/kernel"] = ((height // 2 - 2) * (width // 2 - 2) * channels, classes)
    shapes["dense/bias"] = (classes,)
    return NamedWeights(shapes, {path: keras_names(NAME, "", path) for path in shapes})
